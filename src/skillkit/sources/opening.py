"""A source -> its tree, for as long as the block lasts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from skillkit.core.exceptions import SizeLimitExceededError, SourceUnavailableError
from skillkit.core.values.text import grouped
from skillkit.sources.folders import FolderTree
from skillkit.sources.git import fetch_tree
from skillkit.sources.given import Source
from skillkit.sources.listing import Tree

__all__ = ["SECONDS", "open_source"]

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
        from skillkit.sources.downloads import download

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
