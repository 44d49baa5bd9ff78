"""Guarded files that walls without mounts cannot keep -> their bytes before a run, put back if they changed."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from skillkit.core.files import Folder
from skillkit.core.run.guard.aside import SetAside, open_below, set_aside
from skillkit.core.run.guard.places import Place

__all__ = ["Keepsake", "keepsakes_of", "put_back"]

FILE_BYTES = 1 << 20
TOTAL_BYTES = 1 << 24


class Keepsake(NamedTuple):
    """A file as it was."""

    root: str
    path: str
    content: bytes
    mode: int

    def moved_to(self, root: str) -> Keepsake:
        """The same where its folder is now."""
        return self._replace(root=root, path=root + self.path[len(self.root) :])


def keepsakes_of(places: Iterable[Place], root: str) -> list[Keepsake]:
    """Of plain files below the top of `root`; what is left out is kept by rule.

    That is `.git`, what is too large, and what has further names: a change would have been one elsewhere too.
    """
    found: list[Keepsake] = []
    left = TOTAL_BYTES
    for place in places:
        folder, name = os.path.split(place.path)
        if not stat.S_ISREG(place.mode) or folder == root or name.lower() == ".git" or _has_further_names(place.path):
            continue
        content = _content(root, place.path)
        if content is not None and len(content) <= left:
            left -= len(content)
            found.append(Keepsake(root, place.path, content, stat.S_IMODE(place.mode)))
    return found


def _has_further_names(path: str) -> bool:
    try:
        return os.lstat(path).st_nlink > 1
    except OSError:
        return True


def put_back(keepsakes: Sequence[Keepsake], state_folder: Path) -> list[SetAside]:
    """What took the place of those that changed, moved away; they are as they were again."""
    moved: list[SetAside] = []
    for each in keepsakes:
        if _content(each.root, each.path) == each.content and not _has_further_names(each.path):
            continue
        if in_the_way := _in_the_way(each):
            moved += set_aside(each.root, [in_the_way], state_folder)
        with suppress(OSError), open_below(each.root, os.path.dirname(each.path), make=True) as folder:
            folder.write_new(os.path.basename(each.path), each.content, each.mode)
    return moved


def _in_the_way(keepsake: Keepsake) -> str:
    """What stands where the file was, or where a folder above it was; empty where nothing does."""
    names = os.path.relpath(keepsake.path, keepsake.root).split(os.sep)
    for count in range(1, len(names)):
        folder = os.path.join(keepsake.root, *names[:count])
        try:
            open_below(keepsake.root, folder).close()
        except FileNotFoundError:
            return ""
        except OSError as error:
            is_another = error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EACCES)
            return folder if is_another else ""
    return keepsake.path if os.path.lexists(keepsake.path) else ""


def _content(root: str, path: str) -> bytes | None:
    """None for what is no plain file any more, unreadable or too large."""
    try:
        with open_below(root, os.path.dirname(path)) as folder:
            return _read(folder, os.path.basename(path))
    except OSError:
        return None


def _read(folder: Folder, name: str) -> bytes | None:
    with open(folder.open_file(name), "rb") as file:
        content = file.read(FILE_BYTES + 1)
    return content if len(content) <= FILE_BYTES else None
