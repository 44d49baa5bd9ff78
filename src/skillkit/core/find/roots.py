"""What the caller configured -> the folders to search, in order of precedence."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillkit.core.exceptions import ConfigurationError

__all__ = [
    "AGENT",
    "PATH",
    "PROJECT",
    "PathLike",
    "Root",
    "agent_roots",
    "existing_folder",
    "path_roots",
    "project_roots",
]

PROJECT = "project"
AGENT = "agent"
PATH = "path"

PathLike = str | Path


@dataclass(frozen=True, slots=True)
class Root:
    """One folder to search; `source` qualifies the names found there."""

    path: Path
    source: str
    plugin_root: Path | None = None


def project_roots(given: PathLike | None) -> list[Root]:
    """The given folder, or those of the current folder that exist."""
    return roots(given, PROJECT, "project_skill_dir", Path.cwd, ("skills", ".claude/skills", ".agents/skills"))


def agent_roots(given: PathLike | None) -> list[Root]:
    """The given folder, or those of the home folder that exist."""
    return roots(given, AGENT, "anthropic_config_dir", Path.home, (".claude/skills", ".agents/skills"))


def path_roots(given: Sequence[PathLike] | None) -> list[Root]:
    return [Root(existing_folder(path, "additional_search_paths"), PATH) for path in given or ()]


def roots(
    given: PathLike | None, source: str, setting: str, base: Callable[[], Path], defaults: Sequence[str]
) -> list[Root]:
    """None means the defaults that exist, an empty text means off, anything else must exist."""
    if given == "":
        return []
    if given is not None:
        return [Root(existing_folder(given, setting), source)]
    try:
        folders = [base() / relative for relative in defaults]
    except (OSError, RuntimeError):  # the current folder was deleted; the user has no home
        return []
    return [Root(folder, source) for folder in folders if os.path.isdir(folder)]


def existing_folder(path: PathLike, setting: str) -> Path:
    try:
        folder = Path(path).expanduser().absolute()
        if ".." in folder.parts:  # a folder's name is shown, and may become a skill's
            folder = Path(os.path.realpath(folder))
    except (OSError, RuntimeError, ValueError) as error:  # `~nobody`; no current folder; half a character
        raise ConfigurationError(f"{setting}: {str(path)!r} cannot be found: {error} Give an absolute path.") from error
    if not os.path.isdir(folder):
        raise ConfigurationError(
            f"{setting}: {folder} is not a folder. Create it, correct the path, or leave the setting out."
        )
    return folder
