"""A .zip, .skill or .tar.gz -> a tree, listed before anything is unpacked and unpacked no further than it says."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from hashlib import sha256

from skillkit.core.exceptions import SizeLimitExceededError, SourceRefusedError, SourceUnavailableError
from skillkit.core.values.text import grouped
from skillkit.sources.listing import SKILL_BYTES, Kind, Listed

__all__ = ["ARCHIVE_BYTES", "ArchiveTree"]

ARCHIVE_BYTES = 200_000_000
ENTRIES = 50_000
UNIX = 3
ENCRYPTED = 0x1
BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    OSError,
    NotImplementedError,
    ValueError,
    RuntimeError,
)


class ArchiveTree:
    """The files of an archive; a single folder around all of them is left out."""

    def __init__(self, name: str, content: bytes) -> None:
        self.version = f"sha256:{sha256(content).hexdigest()}"
        self._name = name
        self._contents: dict[str, bytes] = {}
        self._zip: zipfile.ZipFile | None = None
        try:
            if content.startswith(b"\x1f\x8b"):
                self.listed: Sequence[Listed] = self._list_tar(content)
            else:
                self._zip = zipfile.ZipFile(io.BytesIO(content))
                self.listed = self._list_zip(self._zip)
        except BROKEN as error:
            raise SourceUnavailableError(f"{name} is no archive that can be read: {error}. Fetch it again.") from error

    def version_of(self, _: str) -> str:
        return self.version

    def read(self, entries: Sequence[Listed]) -> list[bytes]:
        try:
            return [self._content(entry) for entry in entries]
        except BROKEN as error:
            raise SourceUnavailableError(f"{self._name} is damaged: {error}. Fetch it again.") from error

    def _content(self, entry: Listed) -> bytes:
        if self._zip is None:
            return self._contents[entry.key]
        with self._zip.open(entry.key) as file:
            content = file.read(entry.size + 1)  # what is more than it says is not unpacked
        if len(content) != entry.size:
            raise zipfile.BadZipFile(f"{entry.path!r} is not as long as the archive says")
        return content

    def _list_zip(self, archive: zipfile.ZipFile) -> list[Listed]:
        infos = archive.infolist()
        self._require_few(len(infos))
        found = []
        for info in infos:
            # zipfile turns a backslash into a slash only on Windows; a NUL ends the name.
            path = info.orig_filename if "\0" in info.orig_filename else info.filename
            if not info.filename:
                raise zipfile.BadZipFile("an entry has no name")
            if info.is_dir():
                continue
            if info.flag_bits & ENCRYPTED:
                raise SourceRefusedError(f"{self._name}: {path!r} is encrypted, so nobody can read what it does.")
            found.append(Listed(path, _zip_kind(info), info.file_size, info))
        return found

    def _list_tar(self, content: bytes) -> list[Listed]:
        """A compressed tar has no list, so it is unpacked once, in memory and within the limit."""
        found, left = list[Listed](), SKILL_BYTES
        with tarfile.open(fileobj=_Bounded(content), mode="r|") as archive:
            for member in archive:
                self._require_few(len(found))
                if member.isdir():
                    continue
                left -= member.size
                if left < 0:
                    raise self._too_large(SKILL_BYTES, "bytes")
                key = str(len(found))
                file = archive.extractfile(member) if member.isreg() else None
                self._contents[key] = file.read() if file else member.linkname.encode("utf-8", "surrogateescape")
                path = member.name.removeprefix("./")
                found.append(Listed(path, _tar_kind(member), len(self._contents[key]), key))
        return found

    def _require_few(self, count: int) -> None:
        if count > ENTRIES:
            raise self._too_large(ENTRIES, "entries")

    def _too_large(self, limit: int, what: str) -> SizeLimitExceededError:
        message = f"{self._name} is not added: it has more than {grouped(limit)} {what}."
        return SizeLimitExceededError(message, size=limit + 1, limit=limit)


class _Bounded(io.RawIOBase):
    """Unpacks gzip as it is read, and no more than an archive may have."""

    def __init__(self, content: bytes) -> None:
        self._rest = content
        self._unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
        self._left = SKILL_BYTES + ENTRIES * 2048

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        if self._unpacking.eof or size <= 0:
            return b""
        piece = self._unpacking.decompress(self._rest, size)
        self._rest = self._unpacking.unconsumed_tail
        self._left -= len(piece)
        if self._left < 0:
            raise SizeLimitExceededError(
                f"The archive is not added: it unpacks to more than {grouped(SKILL_BYTES)} bytes.",
                size=SKILL_BYTES + 1,
                limit=SKILL_BYTES,
            )
        return piece


def _zip_kind(info: zipfile.ZipInfo) -> Kind:
    mode = info.external_attr >> 16 if info.create_system == UNIX else 0
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        return "special"
    return "program" if mode & stat.S_IXUSR else "file"


def _tar_kind(member: tarfile.TarInfo) -> Kind:
    if member.issym():
        return "link"
    if not member.isreg():
        return "special"
    return "program" if member.mode & stat.S_IXUSR else "file"
