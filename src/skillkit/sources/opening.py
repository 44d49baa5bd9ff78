"""A source -> its tree, for as long as the block lasts; a folder of this machine is one, and no link is followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from skillkit.core.exceptions import SizeLimitExceededError, SourceUnavailableError
from skillkit.core.models.digest import LEFT_OUT
from skillkit.core.paths.files import Folder
from skillkit.core.values.text import grouped
from skillkit.sources.git import fetch_tree
from skillkit.sources.given import Source
from skillkit.sources.listing import LISTED, Kind, Listed, Tree

__all__ = ["SECONDS", "FolderTree", "open_source"]

DEPTH = 100


class FolderTree:
    """A folder as it is now; what changes between listing and reading is an error."""

    version = ""

    def __init__(self, place: str) -> None:
        self._top = Path(place).expanduser().absolute()
        if not os.path.isdir(self._top):
            raise SourceUnavailableError(f"{place} is not a folder. Correct the path.")
        try:
            self.listed: Sequence[Listed] = self._list()
        except OSError as error:
            raise SourceUnavailableError(f"{error.filename or place} cannot be read: {error.strerror}.") from error

    def version_of(self, _: str) -> str:
        return self.version

    def read(self, entries: Sequence[Listed]) -> list[bytes]:
        return [self._content(entry) for entry in entries]

    def _list(self) -> list[Listed]:
        found: list[Listed] = []
        waiting = [("", 0)]
        while waiting:
            inside, depth = waiting.pop()
            with os.scandir(self._top / inside) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False) and depth < DEPTH:
                        if entry.name != LEFT_OUT:
                            waiting.append((f"{inside}{entry.name}/", depth + 1))
                    elif inside or entry.name != LEFT_OUT:
                        status, path = entry.stat(follow_symlinks=False), f"{inside}{entry.name}"
                        found.append(Listed(path, _kind(status.st_mode), status.st_size, path))
            if len(found) + len(waiting) > LISTED:
                raise SizeLimitExceededError(
                    f"{self._top} has more than {grouped(LISTED)} files. Name the folder of the skills in it.",
                    size=len(found),
                    limit=LISTED,
                )
        return sorted(found)

    def _content(self, entry: Listed) -> bytes:
        path = self._top / entry.key
        try:
            if entry.kind == "link":
                return os.fsencode(os.readlink(path))
            *above, name = entry.key.split("/")
            real = os.path.realpath(self._top)
            with Folder.of(real) as top, top.below(above) as folder, open(folder.open_file(name), "rb") as file:
                content = file.read(entry.size + 1)
        except OSError as error:
            raise SourceUnavailableError(f"{path} cannot be read: {error.strerror or error}.") from error
        if len(content) != entry.size:
            raise SourceUnavailableError(f"{path} changed while it was read. Try again.")
        return content


def _kind(mode: int) -> Kind:
    if stat.S_ISLNK(mode):
        return "link"
    if not stat.S_ISREG(mode):
        return "special"
    return "program" if mode & stat.S_IXUSR else "file"


SECONDS = 300.0


@contextmanager
def open_source(
    source: Source,
    base: Path,
    *,
    version: str = "",
    wanted: Collection[str] = (),
    seconds: float = SECONDS,
    on_progress: Callable[[str], None] | None = None,
) -> Iterator[Tree]:
    """`version` asks git for exactly that commit; a path that is not absolute is meant from `base`."""
    if source.kind == "git":
        with fetch_tree(source, version, seconds=seconds, on_progress=on_progress) as tree:
            yield tree
    elif source.kind == "index":
        from skillkit.sources.index import IndexTree  # it and archives take libraries that git does not need

        yield IndexTree(source.place, wanted, seconds=seconds, on_progress=on_progress)
    elif source.kind == "folder":
        yield FolderTree(str(base / source.place))
    else:
        from skillkit.sources.archives import ARCHIVE_BYTES, ArchiveTree
        from skillkit.sources.index import download

        content = (
            download(source.place, ARCHIVE_BYTES, seconds=seconds, on_progress=on_progress)
            if source.is_remote
            else _file_content(base / source.place, ARCHIVE_BYTES)
        )
        yield ArchiveTree(source.place, content)


def _file_content(path: Path, limit: int) -> bytes:
    try:
        size = path.stat().st_size
        if size > limit:
            message = f"{path} is not added: it has more than {grouped(limit)} bytes."
            raise SizeLimitExceededError(message, size=size, limit=limit)
        return path.read_bytes()
    except OSError as error:
        raise SourceUnavailableError(f"{path} cannot be read: {error.strerror}. Correct the path.") from error
