"""A skill and a path that a model wrote -> the text of that file, or the files there are."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from skillkit.core.exceptions import ContentLoadError
from skillkit.core.models import Skill, open_at_once
from skillkit.core.paths import FilePathResolver
from skillkit.present.tool_result import SHOWN_CHARACTERS, shortened

__all__ = ["LISTED_FILES", "bundled_files", "file_text"]

LEFT_OUT_FOLDERS = frozenset(("node_modules", "__pycache__", "venv"))
READ_BYTES = 10_000_000
SNIFFED_BYTES = 8_192
LISTED_FILES = 200


def file_text(skill: Skill, path: str) -> str:
    """Text only, and no more of it than a model should read at once."""
    real = FilePathResolver.resolve_path(skill.base_directory, path)
    raw, size = regular_file_bytes(skill, path, real)
    if b"\0" in raw[:SNIFFED_BYTES]:
        return f"[{path} is a binary file of {size:,} bytes. It cannot be shown as text; a script can read it.]"
    text = raw.decode("utf-8-sig", "replace")
    if len(text) > SHOWN_CHARACTERS or size > len(raw):
        return shortened(text, f"The file has {size:,} bytes and is at {real}.")
    return text


def regular_file_bytes(skill: Skill, path: str, real: Path) -> tuple[bytes, int]:
    """Its first bytes and its size; a miss says what exists."""
    try:
        status = os.stat(real)
        if not stat.S_ISREG(status.st_mode):
            raise missing(skill, path, "is no file")
        with open(real, "rb", opener=open_at_once) as file:
            return file.read(READ_BYTES) or b"", status.st_size
    except OSError as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        raise missing(skill, path, reason) from error


def missing(skill: Skill, path: str, reason: str) -> ContentLoadError:
    files = ["SKILL.md", *(script.path.as_posix() for script in skill.scripts), *bundled_files(skill)]
    more = len(files) - LISTED_FILES
    there = ", ".join(files[:LISTED_FILES]) + (f" and {more} more" if more > 0 else "")
    return ContentLoadError(f"{path!r} of {skill.name!r} {reason}. There are: {there}.")


def plain_files(base: str) -> Iterator[str]:
    """Paths inside a skill, however deep; hidden ones, links and folders of packages are left out."""
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        with suppress(OSError), os.scandir(os.path.join(base, inside)) as listing:
            for entry in listing:
                path = f"{inside}{entry.name}"
                if entry.name.startswith("."):
                    continue
                if entry.is_file(follow_symlinks=False):
                    yield path
                elif entry.is_dir(follow_symlinks=False) and entry.name not in LEFT_OUT_FOLDERS:
                    waiting.append(f"{path}/")


def bundled_files(skill: Skill) -> list[str]:
    """What comes with the skill beside its instructions and scripts, by path; hidden files and links are left out."""
    base = str(skill.base_directory)
    own = {skill.metadata.skill_path.name, *(script.path.as_posix() for script in skill.scripts)}
    return sorted(path for path in plain_files(base) if path not in own)
