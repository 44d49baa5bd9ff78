"""A part of the state -> an error, unless nobody but this user and the system's owner can have written it.

The state says what a person approved. Whoever can write it can approve in that person's name.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from skillkit.core.exceptions import StateUnavailableError

__all__ = ["REMEDY", "is_own", "is_own_state", "problem_with", "require_own_file", "require_own_folder"]

FOLDER, FILE = "folder", "regular file"
OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH
# Elsewhere neither owner nor mode says who can write.
HAS_OWNERS = hasattr(os, "geteuid")
REMEDY = "Name another state folder with SKILLKIT_STATE_DIR, or remove what is not yours."


def require_own_folder(path: str | Path, *, may_be_link: bool = False) -> None:
    """One of this user's that others can write to is closed to them; what they put in it is judged by itself.

    `may_be_link` allows a link that this user or the system's owner made: the state folder may lie elsewhere.
    """
    if not HAS_OWNERS:
        return
    if may_be_link and os.path.islink(path):
        _require(path, "" if _is_ours(os.lstat(path)) else _of_another(os.lstat(path)))
        path = os.path.realpath(path)
    status = os.lstat(path)
    is_shared = bool(status.st_mode & OF_OTHERS) and not status.st_mode & stat.S_ISVTX
    if stat.S_ISDIR(status.st_mode) and is_shared and status.st_uid == os.geteuid():
        os.chmod(path, stat.S_IMODE(status.st_mode) & ~OF_OTHERS)
        status = os.lstat(path)
    _require(path, _problem(status, FOLDER))


def require_own_file(path: str | Path) -> None:
    """Nothing at all is well too. One that others can write to is not closed to them: it may hold their words."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    _require(path, _problem(status, FILE))


def is_own(*paths: str | Path) -> bool:
    """Whether each of these, a file or a folder, can be believed; what is not there cannot."""
    try:
        return not any(map(problem_with, paths))
    except OSError:
        return False


def is_own_state(folder: Path, *paths: Path) -> bool:
    """Whether a state folder, and these in it, can be believed."""
    try:
        require_own_folder(folder, may_be_link=True)
    except (OSError, StateUnavailableError):
        return False
    return is_own(*paths)


def problem_with(path: str | Path) -> str:
    """Why a file or a folder cannot be believed; empty when it can. Nothing is changed."""
    return _problem(os.lstat(path))


def _problem(status: os.stat_result, kind: str = "") -> str:
    if not HAS_OWNERS:
        return ""
    if stat.S_ISLNK(status.st_mode):
        return "is a link"
    found = FOLDER if stat.S_ISDIR(status.st_mode) else FILE if stat.S_ISREG(status.st_mode) else ""
    if not found or kind not in ("", found):
        return f"is not a {kind or FILE}"
    if not _is_ours(status):
        return _of_another(status)
    return "can be written by other users" if status.st_mode & OF_OTHERS else ""


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0)


def _of_another(status: os.stat_result) -> str:
    return f"belongs to another user (number {status.st_uid})"


def _require(path: str | Path, problem: str) -> None:
    if problem:
        raise StateUnavailableError(
            f"The state in {path} cannot be believed: it {problem}, and only what this user alone can write counts. "
            f"{REMEDY}"
        )
