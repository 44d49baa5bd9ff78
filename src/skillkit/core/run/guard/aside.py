"""What a script made under a guarded name -> moved out of the workspace into the state folder, by descriptor."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from skillkit.core.files import Folder, copy_content
from skillkit.core.paths import is_inside
from skillkit.core.trees import files_below, remove_entry

__all__ = ["ASIDE", "SetAside", "open_below", "set_aside"]


ASIDE = "set-aside"


class SetAside(NamedTuple):
    """Where a script made something that is guarded, and where it lies now; nowhere if it could only be removed."""

    path: str
    kept: str


def set_aside(root: str, paths: Sequence[str], state_folder: Path) -> list[SetAside]:
    """What was moved. What cannot be moved stays, and is said to be there still: its `kept` is empty."""
    inside = [path for path in paths if is_inside(path, root) and path != root]
    if not inside:
        return []
    moved = []
    try:
        made = _new_folder(state_folder)
    except OSError:  # as on a full disk
        return [SetAside(path, "") for path in inside]
    with made as store:
        for number, path in enumerate(inside, 1):
            name = os.path.basename(path)
            kept = f"{number:03d}-{name}"
            is_moved = False
            with suppress(OSError), open_below(root, os.path.dirname(path)) as folder:
                is_moved = _moved(folder, name, store, kept)
            moved.append(SetAside(path, os.path.join(store.path, kept) if is_moved else ""))
    return moved


def _new_folder(state_folder: Path) -> Folder:
    """For what one run made; named by time, so that a person finds the latest."""
    path = state_folder / ASIDE / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(4)}"
    path.mkdir(mode=0o700, parents=True)
    return Folder.of(path)


def open_below(root: str, folder: str, *, make: bool = False) -> Folder:
    """A folder in `root`, reached through folders only: a link that a script put on the way is an error."""
    names = os.path.relpath(folder, root).split(os.sep) if folder != root else []
    with Folder.of(root) as top:
        return top.below(names, make=make)


def _moved(folder: Folder, name: str, store: Folder, kept: str) -> bool:
    if folder.status(name) is None:
        return False
    with suppress(OSError), folder.writable():
        folder.move(name, store, kept)
        return True
    # Another file system: plain files are copied, and then all of it goes; nobody obeys anything else.
    _copy(folder, name, store, kept)
    with folder.writable():
        return remove_entry(folder, name)


def _copy(folder: Folder, name: str, store: Folder, kept: str) -> None:
    with suppress(OSError):
        _copy_file(folder, name, store, kept)
        return
    with suppress(OSError), folder.folder(name) as top, store.new_folder(kept, 0o700) as target:
        top.allow_all()
        for way, _ in files_below(top):
            with suppress(OSError), top.below(way[:-1]) as source, target.below(way[:-1], make=True) as into:
                _copy_file(source, way[-1], into, way[-1])


def _copy_file(source: Folder, name: str, target: Folder, new: str) -> None:
    descriptor = source.open_file(name)
    try:
        copy = target.new_file(new, 0o600)
        try:
            copy_content(descriptor, copy)
        finally:
            os.close(copy)
    finally:
        os.close(descriptor)
