"""What was guarded when a run began -> kept on disk until the run is over, so that a later run can look after it.

A run whose program was killed leaves its entry, unlocked: the kernel lets go of a lock with the process.
"""

from __future__ import annotations

import json
import os
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from skillkit.core.owned import is_own, require_own_folder
from skillkit.core.paths import Judged, judge
from skillkit.core.run.guard.keepsakes import Keepsake
from skillkit.core.run.guard.made import Before

__all__ = ["Entry", "Journal"]

FOLDER = "guarded-runs"
SPARE_SECONDS = 5.0
UNFINISHED_SECONDS = 60.0


class Entry(NamedTuple):
    """A run that goes on, or did not come to look after itself."""

    root: Judged
    """As it was when the run began."""
    before: Before
    keepsakes: tuple[Keepsake, ...] = ()


class Journal:
    """The entries of one world."""

    def __init__(self, state_folder: Path) -> None:
        self._folder = state_folder / FOLDER

    def begin(self, root: str, before: Before, timeout: float, keepsakes: Sequence[Keepsake] = ()) -> tuple[str, int]:
        """The entry of a run: its path, and the descriptor that holds it while the run lasts."""
        import fcntl

        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_own_folder(self._folder)
        path = str(self._folder / f"{os.getpid()}-{os.urandom(6).hex()}")
        content = json.dumps(
            {
                "root": judge(root) or [root, 0, 0],
                "known": [[*each, each[0] in before.kept] for each in before.known],
                "keepsakes": [[each.path, each.mode, b64encode(each.content).decode()] for each in keepsakes],
                "began": before.began,
                "until": time.time() + timeout + SPARE_SECONDS,
            }
        )
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            with open(descriptor, "wb", closefd=False) as file:  # all of it, or an error
                file.write(content.encode("utf-8", "surrogateescape"))
        except OSError:
            self.end((path, descriptor))
            raise
        return path, descriptor

    def end(self, entry: tuple[str, int]) -> None:
        with suppress(OSError):
            os.unlink(entry[0])
        os.close(entry[1])

    def take_abandoned(self) -> Iterator[Entry]:
        """Entries that nobody holds any more; each is given out once."""
        for path in self._paths():
            entry = _read(path, is_taken=True)
            if entry is not None:
                yield entry

    def going_on(self) -> list[Entry]:
        """Of runs that somebody holds."""
        return [entry for path in self._paths() if (entry := _read(path, is_taken=False)) is not None]

    def _paths(self) -> list[str]:
        try:
            return [str(self._folder / name) for name in os.listdir(self._folder)] if is_own(self._folder) else []
        except OSError:
            return []


def _read(path: str, *, is_taken: bool) -> Entry | None:
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if not is_own(path):  # it would name what is moved away
            return None
        if is_taken:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with open(descriptor, encoding="utf-8", errors="surrogateescape", closefd=False) as file:
            entry = _entry(json.loads(file.read()))
        if is_taken:
            os.unlink(path)
    except OSError:  # in use
        return None
    except (KeyError, TypeError, ValueError):  # cut short, and then its script never started; or just being written
        if is_taken and time.time() - os.fstat(descriptor).st_mtime > UNFINISHED_SECONDS:
            os.unlink(path)
        return None
    else:
        return entry
    finally:
        os.close(descriptor)


def _entry(values: Any) -> Entry:  # noqa: ANN401 - read from a file
    known = [(str(where), int(device), int(inode)) for where, device, inode, _ in values["known"]]
    kept = [str(where) for where, _, _, is_kept in values["known"] if is_kept]
    where, device, inode = values["root"]
    before = Before(frozenset(known), frozenset(kept), float(values["began"]), float(values["until"]))
    root = Judged(str(where), int(device), int(inode))
    keepsakes = [
        Keepsake(root.path, str(path), b64decode(content), int(mode)) for path, mode, content in values["keepsakes"]
    ]
    return Entry(root, before, tuple(keepsakes))
