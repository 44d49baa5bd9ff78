"""A private writable folder for each run, and what the script left in it."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

from skillkit.core.closed_places import WORK_FOLDER_PREFIX
from skillkit.core.run.sandbox.base import PRIVATE_FOLDERS
from skillkit.core.runs import Artifact

__all__ = ["WorkFolders"]

LISTED_ARTIFACTS = 1_000


class WorkFolders:
    """The folders of one manager's runs; kept while they hold something, all removed by `close`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._root: Path | None = None
        self._cleaner: weakref.finalize[..., WorkFolders] | None = None
        self._empty: list[Path] = []

    def new(self) -> Path:
        """Private to its run; one that an earlier run left empty is used again, for making one takes time."""
        with self._lock:
            while self._empty:
                folder = self._empty.pop()
                if is_fresh(folder):
                    return folder
            if self._root is None or not self._root.is_dir():
                self._root = Path(tempfile.mkdtemp(prefix=WORK_FOLDER_PREFIX))
                self._cleaner = weakref.finalize(self, remove_tree, str(self._root), os.getpid())
            root = self._root
        return Path(tempfile.mkdtemp(dir=root))

    def artifacts(self, folder: Path) -> tuple[Artifact, ...]:
        """What a run left: regular files by path, no links, because those may lead anywhere."""
        if is_fresh(folder) or is_fresh(without_private_folders(folder)):
            with self._lock:
                self._empty.append(folder)
            return ()
        found = sorted(files_in(folder), key=lambda artifact: artifact.path)
        if not found:
            remove_tree(str(folder), os.getpid())
        return tuple(found[:LISTED_ARTIFACTS])

    def close(self) -> None:
        with self._lock:
            if self._cleaner is not None:
                self._cleaner()
            self._root = self._cleaner = None
            self._empty.clear()


def without_private_folders(folder: Path) -> Path:
    """What walls put there for themselves goes with the run."""
    for name in PRIVATE_FOLDERS:
        remove_tree(str(folder / name), os.getpid())
    return folder


def is_fresh(folder: Path) -> bool:
    """There, empty, and still ours alone."""
    try:
        return os.lstat(folder).st_mode == stat.S_IFDIR | 0o700 and not os.listdir(folder)
    except OSError:
        return False


def files_in(folder: Path) -> Iterator[Artifact]:
    """Nothing where the script put a link in place of the folder itself."""
    for path, _, names in os.walk(folder) if not folder.is_symlink() else ():
        for name in names:
            file = Path(path, name)
            with contextlib.suppress(OSError):
                status = os.lstat(file)
                if stat.S_ISREG(status.st_mode):
                    yield Artifact(file, status.st_size, file.relative_to(folder))


def remove_tree(folder: str, owner: int) -> None:
    """Also what a script made unreadable, never what a link leads to; a forked child leaves its parent's alone."""
    if os.getpid() != owner:
        return
    if not os.path.lexists(folder):
        return
    with contextlib.suppress(OSError):
        if os.path.islink(folder):
            os.unlink(folder)
        else:
            os.rmdir(folder)
        return
    open_folder(folder)
    for path, names, _ in os.walk(folder):
        # Before the walk enters them: a folder that cannot be listed would be passed over.
        for name in names:
            open_folder(os.path.join(path, name))
    shutil.rmtree(folder, ignore_errors=True)


def open_folder(folder: str) -> None:
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.lstat(folder).st_mode):
            os.chmod(folder, 0o700)
