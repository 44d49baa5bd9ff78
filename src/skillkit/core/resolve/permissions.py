"""A script's file -> refused when it is of a kind that is never run."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from skillkit.core.digest import LEFT_OUT
from skillkit.core.exceptions import ScriptNotFoundError, ScriptPermissionError

__all__ = ["require_part_of_skill", "require_plain_file"]


def require_part_of_skill(path: Path, skill_name: str, base_directory: Path) -> None:
    """What the digest leaves out is no part of the skill: nobody would notice a change in it."""
    if LEFT_OUT in path.relative_to(base_directory).parts:
        raise ScriptNotFoundError(
            f"{path} is inside {LEFT_OUT!r}, which is no part of the skill {skill_name!r}. Move the script out of it.",
            skill_name=skill_name,
            script_name=path.name,
        )


def require_plain_file(path: str, skill_name: str) -> None:
    """A regular file without setuid and setgid bits, there and readable now."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise ScriptNotFoundError(
            f"The script {os.path.basename(path)!r} of {skill_name!r} is not there any more ({error.strerror}): "
            f"{path}. Put it back, or name another.",
            skill_name=skill_name,
            script_name=os.path.basename(path),
        ) from error
    if not stat.S_ISREG(mode):
        raise ScriptPermissionError(f"{path} is not a regular file; only regular files are run. Replace it.")
    if mode & (stat.S_ISUID | stat.S_ISGID):
        bits = [name for name, bit in (("setuid", stat.S_ISUID), ("setgid", stat.S_ISGID)) if mode & bit]
        raise ScriptPermissionError(
            f"{path} has the {' and '.join(bits)} bit; such scripts are never run. Remove it with 'chmod a-s'."
        )
    if not os.access(path, os.R_OK):
        raise ScriptPermissionError(f"{path} cannot be read. Make it readable with 'chmod u+r'.")
