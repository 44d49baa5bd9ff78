"""A folder -> the plain files below it, its size, all of it gone, or a new one filled: however deep or unreadable."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from typing import NamedTuple

from skillkit.core.paths.files import Folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

__all__ = ["NewFile", "TreeSize", "files_below", "remove_entry", "remove_tree", "size_of_tree", "write_tree"]


class NewFile(NamedTuple):
    """A file to be made: the names that lead to it, what is in it, and its mode; of a link, where it leads."""

    names: tuple[str, ...]
    content: bytes
    mode: int = 0o666
    is_link: bool = False


DEPTH = 64
LOOKED_AT = 100_000
MEASURED = 200_000
BLOCK_BYTES = 512
LISTED = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)


def files_below(top: Folder, *, left_out: Collection[str] = ()) -> Iterator[tuple[tuple[str, ...], os.stat_result]]:
    """Plain files by the names that lead to them, no links; at most so deep, and so many entries looked at.

    One folder is open at a time, so that a deep tree takes no descriptors from others. What is `left_out` by its
    name at the top is not looked into.
    """
    waiting: list[tuple[str, ...]] = [()]
    looked_at = 0
    while waiting and looked_at < LOOKED_AT:
        way = waiting.pop()
        with suppress(OSError), top.below(way) as folder:
            names = folder.names() if way else [name for name in folder.names() if name not in left_out]
            for name in names[: LOOKED_AT - looked_at]:
                looked_at += 1
                mode = status.st_mode if (status := folder.status(name)) else 0
                if status is not None and stat.S_ISREG(mode):
                    yield (*way, name), status
                elif stat.S_ISDIR(mode) and len(way) < DEPTH:
                    waiting.append((*way, name))


class TreeSize(NamedTuple):
    """What a folder holds; links count as themselves, files with holes by what they take."""

    files: int
    bytes: int
    is_whole: bool = True
    """False where there was more than could be looked at."""

    @property
    def megabytes(self) -> float:
        return self.bytes / 1_000_000

    def is_above(self, megabytes: int) -> bool:
        """What cannot be looked at as a whole counts as too much."""
        return not self.is_whole or self.bytes > megabytes * 1_000_000


def size_of_tree(path: str | Path) -> TreeSize:
    """By descriptor, no link followed; at most so deep, and so many entries."""
    files = taken = looked_at = 0
    is_whole = True
    seen: set[int] = set()
    waiting: list[tuple[str, ...]] = [()]
    try:
        top = Folder.of(path)
    except OSError:
        return TreeSize(0, 0)
    with top:
        while waiting:
            way = waiting.pop()
            try:
                with top.below(way) as folder:
                    entries = _all_entries(folder)
            except OSError:  # gone meanwhile, or not to be opened
                is_whole = False
                continue
            for name, status, is_folder in entries:
                looked_at += 1
                if status.st_ino not in seen:
                    seen.update((status.st_ino,) * (status.st_nlink > 1 and not is_folder))
                    taken += getattr(status, "st_blocks", 0) * BLOCK_BYTES
                files += not is_folder
                if is_folder and len(way) < DEPTH:
                    waiting.append((*way, name))
                elif is_folder:
                    is_whole = False
            if looked_at > MEASURED:
                return TreeSize(files, taken, is_whole=False)
    return TreeSize(files, taken, is_whole)


def _all_entries(folder: Folder) -> list[tuple[str, os.stat_result, bool]]:
    """Also of a folder that a script closed to itself, which is opened then."""
    try:
        return list(_entries(folder))
    except PermissionError:
        folder.allow_all()
        return list(_entries(folder))


def _entries(folder: Folder) -> Iterator[tuple[str, os.stat_result, bool]]:
    listed = folder.path if folder.descriptor is None else os.open(".", LISTED, dir_fd=folder.descriptor)
    try:
        with os.scandir(listed) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    yield entry.name, entry.stat(follow_symlinks=False), entry.is_dir(follow_symlinks=False)
    finally:
        if isinstance(listed, int):
            os.close(listed)


def remove_tree(path: str | Path) -> None:
    """A folder with all that is in it; of a link, the link. What cannot go stays."""
    for remove in (os.unlink, os.rmdir):
        with suppress(OSError):
            remove(path)
            return
    with suppress(OSError):
        with Folder.of(path) as folder:
            _clear(folder)
        os.rmdir(path)


def _clear(top: Folder) -> None:
    """What a folder holds is lifted to the top before it goes: no depth is too deep, and no path too long."""
    top.allow_all()
    has_changed = True
    while has_changed:
        has_changed = False
        for name in top.names():
            has_changed = _clear_entry(top, name) or has_changed


def _clear_entry(top: Folder, name: str) -> bool:
    """Whether something changed; the next look tells whether anything is left."""
    if top.remove(name):
        return True
    has_changed = False
    with suppress(OSError), top.folder(name) as below:
        below.allow_all()
        for child in below.names():
            has_changed = below.remove(child) or _lift(child, below, top) or has_changed
    return top.remove(name) or has_changed


def _lift(name: str, folder: Folder, top: Folder) -> bool:
    with suppress(OSError):
        with folder.folder(name) as moved:
            moved.allow_all()  # one that its owner may not write to cannot be moved either
        folder.move(name, top, os.urandom(8).hex())
        return True
    return False


def remove_entry(folder: Folder, name: str) -> bool:
    """Whether an entry of an open folder went, with all that was in it."""
    if folder.remove(name):
        return True
    with suppress(OSError), folder.folder(name) as inner:
        _clear(inner)
    return folder.remove(name)


def write_tree(around: Folder, name: str, files: Iterable[NewFile]) -> None:
    """A new folder with these files, or nothing; FileExistsError where anything has the name."""
    with around.new_folder(name) as top:
        try:
            for file in files:
                with top.below(file.names[:-1], make=True) as folder:
                    _write_file(folder, file)
        except BaseException:
            remove_entry(around, name)
            raise


def _write_file(folder: Folder, file: NewFile) -> None:
    if file.is_link:
        folder.new_link(file.names[-1], file.content)
    else:
        folder.write_new(file.names[-1], file.content, file.mode)
