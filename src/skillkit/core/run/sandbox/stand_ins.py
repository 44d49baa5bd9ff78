"""Protected paths that do not exist -> empty ones that a mount can guard, for as long as runs need them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["stand_ins"]

# The sticky bit tells a stand-in from an empty folder or file of the user's.
FOLDER_MODE = 0o1500
FILE_MODE = 0o1400


@contextmanager
def stand_ins(workspace: str, protected: tuple[str, ...]) -> Iterator[None]:
    """While open, no protected path at the top of `workspace` is missing; the last run removes what was made.

    Removing one earlier would take the guard from another run: the kernel drops mounts with their folder.
    """
    import fcntl  # only where there are mounts

    paths = [path for path in protected if os.path.dirname(path) == workspace]
    lock = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        for path in paths:
            _make(path)
        yield
    finally:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for path in paths:
                _remove(path)
        os.close(lock)


def _make(path: str) -> None:
    """A name with an ending is a file's, any other a folder's; where nothing can be made, nobody else can either."""
    with suppress(OSError):
        if os.path.splitext(path)[1]:
            fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o400)
            os.fchmod(fd, FILE_MODE)
            os.close(fd)
        else:
            os.mkdir(path, 0o500)
            os.chmod(path, FOLDER_MODE)


def _remove(path: str) -> None:
    with suppress(OSError):
        seen = os.lstat(path)
        if seen.st_mode & 0o7777 == FOLDER_MODE:
            os.rmdir(path)
        elif seen.st_mode & 0o7777 == FILE_MODE and seen.st_size == 0:
            os.unlink(path)
