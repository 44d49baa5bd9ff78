"""What it is for -> a new temporary folder, this user's alone and known to be in use; what killed processes left goes.

Theory of operation. Whoever uses such a folder holds a lock on it, which the kernel takes away however the process
ends, and which no script inherits. A folder of ours on which nobody holds one was abandoned.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from skillkit.core.paths.forbidden import WORK_FOLDER_PREFIX
from skillkit.core.paths.trees import remove_tree

__all__ = ["clear_abandoned", "new_held_folder", "remove_abandoned", "remove_held_folder", "temporary_folder"]

PREFIX = "skillkit-held-"
ATTEMPTS = 100  # each lost one was looked at by another process in just that moment; all of them never are
CAN_HOLD = os.name == "posix"


@contextlib.contextmanager
def temporary_folder(purpose: str) -> Iterator[str]:
    """For a block; `purpose` stands in its name."""
    remove_abandoned()
    folder, descriptor = new_held_folder(f"{PREFIX}{purpose}-")
    try:
        yield str(folder)
    finally:
        remove_held_folder(str(folder), os.getpid(), descriptor)


def new_held_folder(prefix: str) -> tuple[Path, int | None]:
    """A new folder, held; where another process took it for abandoned before it was, one more."""
    for _ in range(ATTEMPTS if CAN_HOLD else 0):
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        descriptor = _held(folder)
        if descriptor is not None:
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(descriptor), os.lstat(folder)):
                    return folder, descriptor
            os.close(descriptor)
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    # Where nobody can hold a folder, nobody takes one for abandoned either.
    return Path(tempfile.mkdtemp(prefix=prefix)), None


def _held(folder: Path | str) -> int | None:
    """A descriptor that says for as long as it is open that somebody uses the folder; None when somebody else does."""
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (ImportError, OSError):  # another system; gone meanwhile, or not ours
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def remove_held_folder(folder: str, owner: int, descriptor: int | None) -> None:
    """A forked child leaves its parent's alone."""
    if os.getpid() == owner:
        remove_tree(folder)
    if descriptor is not None:
        os.close(descriptor)


@cache
def remove_abandoned() -> None:
    """The same, once in a process."""
    clear_abandoned()


def clear_abandoned() -> None:
    """Removes what processes of this user left that were killed, for nobody holds it any more."""
    if not CAN_HOLD:
        return
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        for entry in entries:
            if entry.name.startswith((WORK_FOLDER_PREFIX, PREFIX)) and _is_ours(entry):
                descriptor = _held(entry.path)
                if descriptor is not None:
                    remove_held_folder(entry.path, os.getpid(), descriptor)


def _is_ours(entry: os.DirEntry[str]) -> bool:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return status.st_mode == stat.S_IFDIR | 0o700 and status.st_uid == os.geteuid()
