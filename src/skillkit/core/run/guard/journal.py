"""What was guarded when a run began -> kept on disk until the run is over, so that a later run can look after it.

A run whose program was killed leaves its entry, unlocked: the kernel lets go of a lock with the process.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from skillkit.core.owned import is_own, require_own_folder
from skillkit.core.paths import Judged, judge

__all__ = ["Entry", "Journal"]

FOLDER = "guarded-runs"
SPARE_SECONDS = 5.0
UNFINISHED_SECONDS = 60.0
Identity = tuple[str, int, int]


class Entry(NamedTuple):
    """A run that did not come to look after itself."""

    root: Judged
    """As it was when the run began."""
    known: frozenset[Identity]
    until: float
    """When its script was dead at the latest, by the system's clock."""


class Journal:
    """The entries of one world."""

    def __init__(self, state_folder: Path) -> None:
        self._folder = state_folder / FOLDER

    def begin(self, root: str, known: Sequence[Identity], timeout: float) -> tuple[str, int]:
        """The entry of a run: its path, and the descriptor that holds it while the run lasts."""
        import fcntl

        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_own_folder(self._folder)
        path = str(self._folder / f"{os.getpid()}-{os.urandom(6).hex()}")
        until = time.time() + timeout + SPARE_SECONDS
        content = json.dumps({"root": judge(root) or [root, 0, 0], "known": known, "until": until})
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        os.write(descriptor, content.encode("utf-8", "surrogateescape"))
        return path, descriptor

    def end(self, entry: tuple[str, int]) -> None:
        with suppress(OSError):
            os.unlink(entry[0])
        os.close(entry[1])

    def take_abandoned(self) -> Iterator[Entry]:
        """Entries that nobody holds any more; each is given out once."""
        try:
            names = os.listdir(self._folder) if is_own(self._folder) else []
        except OSError:
            return
        for name in names:
            entry = _taken(str(self._folder / name))
            if entry is not None:
                yield entry


def _taken(path: str) -> Entry | None:
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if not is_own(path):  # it would name what is moved away
            return None
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with open(descriptor, encoding="utf-8", errors="surrogateescape", closefd=False) as file:
            values = json.loads(file.read())
        os.unlink(path)
        known = frozenset((str(where), int(device), int(inode)) for where, device, inode in values["known"])
        where, device, inode = values["root"]
        return Entry(Judged(str(where), int(device), int(inode)), known, float(values["until"]))
    except OSError:  # in use
        return None
    except (KeyError, TypeError, ValueError):  # cut short, and then its script never started; or just being written
        if time.time() - os.fstat(descriptor).st_mtime > UNFINISHED_SECONDS:
            os.unlink(path)
        return None
    finally:
        os.close(descriptor)
