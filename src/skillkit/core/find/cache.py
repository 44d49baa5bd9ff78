"""What earlier readings of a root's files said, kept on disk; may be deleted at any time."""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from pathlib import Path

from skillkit._version import __version__
from skillkit.core.find.reading import Reading
from skillkit.core.owned import is_own_state

__all__ = ["ReadingCache", "file_key"]

FORMAT = f"skillkit readings 1 {__version__}"
# A file changed twice within one tick of its clock looks unchanged; so a fresh file is read again.
SETTLED_NANOSECONDS = 2_000_000_000
KEPT_ROOTS = 64


def file_key(status: os.stat_result) -> str:
    """What must be unchanged for an earlier reading to count."""
    return f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


class ReadingCache:
    """The readings of one root, a line each; only parsing is saved, every file is still checked by stat."""

    def __init__(self, folder: Path, root: str) -> None:
        self.folder = folder
        self.root = root
        self._known: dict[str, str] = {}
        self._current: list[str] = []
        self._is_changed = False

    @property
    def file(self) -> Path:
        root = os.fsencode(self.root)
        return self.folder / f"{zlib.crc32(root):08x}{zlib.adler32(root):08x}"

    def load(self) -> None:
        """A file that is not exactly what was saved counts as none; so does what another user can have written."""
        if not is_own_state(self.folder.parent, self.folder, self.file):
            return
        with contextlib.suppress(OSError, ValueError):
            header, _, body = self.file.read_bytes().partition(b"\n")
            if header.decode() == header_of(body):
                lines = body.decode("utf-8", "surrogateescape").split("\n")
                self._known = {line.split("\t", 1)[0]: line for line in lines if line}

    def get(self, path: str, key: str) -> Reading | None:
        line = self._known.get(path)
        if line is None:
            return None
        _, known_key, name, fields, notes = line.split("\t")
        if known_key != key:
            return None
        self._current.append(line)
        return Reading(name, fields, notes)

    def put(self, path: str, status: os.stat_result, reading: Reading) -> None:
        is_settled = time.time_ns() - status.st_ctime_ns > SETTLED_NANOSECONDS
        # A tab or line break in a path or name would end its column; such a file is read every time.
        if is_settled and (path + reading.name).isprintable():
            self._current.append("\t".join((path, file_key(status), reading.name, reading.fields, reading.notes)))
            self._is_changed = True

    def save(self) -> None:
        """Only when something changed; failing costs time at the next discovery, nothing else."""
        if not self._is_changed and len(self._current) == len(self._known):
            return
        with contextlib.suppress(OSError, ValueError):
            body = "\n".join(self._current).encode("utf-8", "surrogateescape")
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self.file, header_of(body).encode() + b"\n" + body)
            drop_oldest(self.folder)


def header_of(body: bytes) -> str:
    return f"{FORMAT} {zlib.crc32(body):08x}"


def write_whole(file: Path, content: bytes) -> None:
    """A reader sees the old file or the new one, never a part."""
    import tempfile

    descriptor, temporary = tempfile.mkstemp(dir=file.parent, prefix=".new-")
    try:
        with open(descriptor, "wb") as stream:
            stream.write(content)
        os.replace(temporary, file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def drop_oldest(folder: Path) -> None:
    files = sorted(folder.glob("[0-9a-f]*"), key=lambda file: file.stat().st_mtime, reverse=True)
    for file in files[KEPT_ROOTS:]:
        file.unlink(missing_ok=True)
