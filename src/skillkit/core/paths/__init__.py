"""Paths: whether one that somebody wrote is proven to be inside a skill, what one really is, and whose it is.

The state says what a person approved. Whoever can write it can approve in that person's name; so what could have been
written by others than this user and the system's owner is not believed.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import NamedTuple

from skillkit.core.exceptions import PathSecurityError, StateUnavailableError
from skillkit.core.values.text import grouped

__all__ = [
    "PATH_LIMIT",
    "REMEDY",
    "FilePathResolver",
    "Judged",
    "is_decided_inside",
    "is_inside",
    "is_of_packages",
    "is_own",
    "is_own_state",
    "is_root",
    "is_roots",
    "is_sayable",
    "judge",
    "judge_opened",
    "open_place",
    "opened_path",
    "problem_with",
    "real_path",
    "reason_to_doubt",
    "require_own_file",
    "require_own_folder",
    "violation",
]

SECURITY_LOGGER = "skillkit.security"
SETTLED_NANOSECONDS = 2_000_000_000
"""Something changed twice within one tick of its clock looks unchanged; so its key is believed only after that long."""
PATH_LIMIT = 4096  # characters, the kernel's
LOGGED_CHARACTERS = 256
FOLDER, FILE = "folder", "regular file"
OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH
OF_PACKAGES = f"{os.sep}{os.path.join('node_modules', '.bin')}{os.sep}"
# Elsewhere neither owner nor mode says who can write.
HAS_OWNERS = hasattr(os, "geteuid")
REMEDY = "Name another state folder with SKILLKIT_STATE_DIR, or remove what is not yours."


def is_inside(path: str, folder: str) -> bool:
    """Both are absolute and normal; the folder itself counts as inside."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def is_decided_inside(folder: str, closed: list[str]) -> bool:
    """Whether it lies in one of `closed`, or a name on the way does: a link there leads where its writer likes."""
    place, *steps = Path(folder).parts
    for step in steps:
        if step != os.pardir and any(is_inside(place, each) for each in closed):
            return True
        place = real_path(os.path.join(place, step))
    return any(is_inside(place, each) for each in closed)


def real_path(path: str | os.PathLike[str]) -> str:
    """As `os.path.realpath`, but asked of the kernel where it answers: in one step, five times as fast.

    What is longer than a path may be leads nowhere, and to follow it step by step would take the square of its length.
    """
    if len(os.fspath(path)) > PATH_LIMIT:
        return os.path.abspath(path)
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (AttributeError, OSError, ValueError):  # another system; not there; no path
        return os.path.realpath(path)
    try:
        return opened_path(descriptor, path)
    finally:
        os.close(descriptor)


def is_sayable(name: str | os.PathLike[str]) -> bool:
    """Whether the system can be told this name: no NUL, no half character, not longer than a path may be."""
    try:
        encoded = os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return len(encoded) <= PATH_LIMIT and b"\0" not in encoded


class Judged(NamedTuple):
    """What a path led to when it was opened: the real path, and what tells it from another in its place."""

    path: str
    device: int
    inode: int


def judge(path: str | Path) -> Judged | None:
    """All of it from one descriptor, so that it is said of one and the same thing; None where there is nothing."""
    try:
        descriptor = open_place(path)
    except (OSError, ValueError):
        return None
    try:
        return judge_opened(descriptor, path)
    except OSError:  # it comes and goes at this very moment
        return None
    finally:
        os.close(descriptor)


def open_place(path: str | Path) -> int:
    """A descriptor that says what a path led to; it gives no right to read."""
    return os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_CLOEXEC", 0))


def judge_opened(descriptor: int, path: str | Path) -> Judged:
    seen = os.fstat(descriptor)
    return Judged(opened_path(descriptor, path), seen.st_dev, seen.st_ino)


def opened_path(descriptor: int, path: str | os.PathLike[str]) -> str:
    """The real path of what was opened as `path`."""
    try:
        real = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:  # another system
        return os.path.realpath(path)
    # The kernel marks what was deleted meanwhile, and calls what has no path by other names.
    is_named = real.startswith(os.sep) and not real.endswith(" (deleted)")
    return real if is_named else os.path.realpath(path)


class FilePathResolver:
    """Turns relative paths into real ones that stay inside a skill."""

    @staticmethod
    def resolve_path(base_directory: Path | str, relative_path: Path | str) -> Path:
        """Absolute and resolved, or PathSecurityError; the file need not exist."""
        requested = os.fspath(relative_path)
        try:
            base = real_path(base_directory)
            if os.path.isabs(requested) or os.path.splitdrive(requested)[0]:
                raise violation(requested, base, "it is absolute")
            joined = os.path.join(base, requested)
            if len(joined) > PATH_LIMIT:
                raise violation(
                    requested, base, f"it is longer than the {grouped(PATH_LIMIT)} characters that a path may have"
                )
            resolved = real_path(joined)
            # realpath gives up on a link loop and hands back text it has not looked at: only a path
            # that resolves to itself has been seen as a whole. Since Python 3.13 it also follows chains that
            # are too long for the system.
            is_settled = real_path(resolved) == resolved and not _is_loop(resolved) and not _is_loop(joined)
        # A NUL, a lone surrogate, a chain of a thousand links.
        except (OSError, RecursionError, ValueError) as error:
            raise violation(requested, base_directory, f"it is no usable path ({error})") from None
        if not is_settled:
            raise violation(requested, base, "it runs through a loop of links")
        if not is_inside(resolved, base):
            raise violation(requested, base, f"it leads to {resolved!r}")
        return Path(resolved)


def _is_loop(path: str) -> bool:
    """A link that leads to itself resolves to itself, yet is not resolved."""
    try:
        os.stat(path)
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def violation(requested: str, base: Path | str, reason: str) -> PathSecurityError:
    """The error to raise, already on the security log."""
    import logging  # costs milliseconds, and most runs refuse nothing

    logged = requested[:LOGGED_CHARACTERS]
    log = logging.getLogger(SECURITY_LOGGER)
    if not log.handlers:  # a library prints nothing by itself; whoever listens does so further up
        log.addHandler(logging.NullHandler())
    log.warning(
        "path refused: %r in %s: %s",
        logged,
        base,
        reason[:LOGGED_CHARACTERS],
        extra={"requested_path": logged, "base_directory": str(base)},
    )
    return PathSecurityError(
        f"{requested!r} may not be used in {base}: {reason}. Use a path that stays inside the skill.",
        requested_path=requested,
        base_directory=Path(base),
    )


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


def is_of_packages(path: str) -> bool:
    """Whether it lies where npm puts programs of a project's packages: a script can make such a folder anywhere."""
    return OF_PACKAGES in f"{path}{os.sep}"


def is_root() -> bool:
    """Whether this process may do all that the system's owner may."""
    return os.name == "posix" and os.geteuid() == 0


def is_roots(place: str | int) -> bool:
    """Whether only root can change it; never what cannot be looked at."""
    try:
        status = os.stat(place)
    except OSError:
        return False
    return status.st_uid == 0 and not status.st_mode & OF_OTHERS


def is_own(*paths: str | Path) -> bool:
    """Whether each of these, a file or a folder, can be believed; what is not there cannot."""
    try:
        return not any(map(problem_with, paths))
    except OSError:
        return False


def reason_to_doubt(path: str | Path) -> str:
    """Why what is in a folder, or at a mark, may be anybody's; empty when only this user, a group of it and root write.

    Weaker than what the state needs: repositories are shared with a group, and what they offer is asked about.
    """
    if not HAS_OWNERS:
        return ""
    try:
        status = os.stat(path)
    except OSError:
        return "cannot be looked at"
    if not _is_ours(status):
        return _of_another(status)
    return "can be written by everybody" if status.st_mode & stat.S_IWOTH else ""


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
