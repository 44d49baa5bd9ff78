"""Several who want to ask on one terminal -> one after the other.

A terminal is the controlling one of a single session, so the session's id names it. Each terminal is one byte of
a lock file in the state folder: only its owner can reach that, the lock ends with the process that holds it, and
nothing is left to tidy up.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from skillkit.core.exceptions import ApprovalUnavailableError
from skillkit.core.owned import require_own_folder

__all__ = ["LOCK_NAME", "turn_at_terminal"]

LOCK_NAME = "terminals.lock"
PAUSE_SECONDS = 0.05

# The lock on the file counts for the whole process; this one keeps its threads apart.
_threads = threading.Lock()


@contextmanager
def turn_at_terminal(state_folder: Path, require_wanted: Callable[[], None]) -> Iterator[None]:
    """Waits until nobody else asks here; `require_wanted` raises when waiting has no point any more."""
    while not _threads.acquire(timeout=PAUSE_SECONDS):
        require_wanted()
    try:
        with open_lock(state_folder) as descriptor:
            while not is_taken(descriptor):
                require_wanted()
                time.sleep(PAUSE_SECONDS)
            yield
    finally:
        _threads.release()


@contextmanager
def open_lock(state_folder: Path) -> Iterator[int]:
    """Closing it lets go of the lock."""
    path = state_folder / LOCK_NAME
    try:
        state_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_own_folder(state_folder, may_be_link=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise lock_error(path, error) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def is_taken(descriptor: int) -> bool:
    """Whether this terminal's byte is ours now."""
    import fcntl

    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, os.getsid(0))
    except (BlockingIOError, PermissionError):  # systems differ in how they say that it is held
        return False
    except OSError as error:
        raise lock_error(LOCK_NAME, error) from error
    return True


def lock_error(path: Path | str, error: OSError) -> ApprovalUnavailableError:
    return ApprovalUnavailableError(
        f"The terminal cannot be reserved for a question: {path}: {error.strerror or error}. "
        "Make the state folder writable, or name another with SKILLKIT_STATE_DIR.",
        reasons=["the terminal cannot be reserved"],
    )
