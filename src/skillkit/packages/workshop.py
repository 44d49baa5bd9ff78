"""A place for one preparation: folders that only we use, gone afterwards, also after we were killed.

A folder is held by a lock on itself. What nobody holds was left behind by a process that was killed, and goes when the
next preparation begins. What is finished is renamed into its place, so that it is there as a whole or not at all.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.paths.trees import remove_tree
from skillkit.core.store.environments import MARK, TREE, Environment, Environments, Mark, seen_of
from skillkit.packages.values import PackagesError

__all__ = ["Workshop", "key_of", "remove_leftovers"]

UNFINISHED = ".new-"
AS_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
LOCKS = "locks"


def key_of(lock: str, interpreter: str, version: str, platform: str) -> str:
    parts = json.dumps([lock, interpreter, version, platform])
    return sha256(parts.encode()).hexdigest()


class Workshop:
    """One preparation's own folders."""

    def __init__(self, environments: Environments, folder: Path) -> None:
        self.environments = environments
        self.folder = folder
        self.work, self.made = folder / "work", folder / "made"
        for each in (self.work, self.made):
            each.mkdir(mode=0o700)

    @classmethod
    @contextmanager
    def opened(cls, environments: Environments) -> Iterator[Workshop]:
        try:
            environments.make_folders()
            remove_leftovers(environments)
            folder = environments.folder / f"{UNFINISHED}{secrets.token_hex(8)}"
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise StateUnavailableError(
                f"Nothing can be prepared in {environments.folder}: {error.strerror or error}. "
                "Make the state folder writable, or name another with SKILLKIT_STATE_DIR."
            ) from error
        held = os.open(folder, AS_FOLDER)
        try:
            _take(held)
            yield cls(environments, folder)
        finally:
            os.close(held)
            remove_tree(folder)

    def new_folder(self, name: str) -> Path:
        """Empty, in the work folder."""
        folder = self.work / name
        remove_tree(folder)
        folder.mkdir(mode=0o700)
        return folder

    @contextmanager
    def alone(self, key: str) -> Iterator[Environment | None]:
        """What is there already; else whoever asks for the same key waits while the block builds it."""
        locks = self.environments.folder / LOCKS
        locks.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(locks / key, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            _take(lock, waits=True)
            yield self.environments.find(key)
        finally:
            os.close(lock)

    def finish(self, key: str, kind: str, interpreter: str, packages: tuple[str, ...]) -> Environment:
        """Read-only, marked, and in its place; one that was altered makes room for it."""
        tree = self.made / TREE
        _make_read_only(tree)
        seen, size = seen_of(tree)
        mark = Mark(key, kind, interpreter, packages, size, time.time(), seen)
        draft = os.open(self.made / MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400)
        with open(draft, "w", encoding="utf-8") as file:
            json.dump(asdict(mark), file)
            file.flush()
            os.fsync(file.fileno())
        place = self.environments.built / key
        if os.path.lexists(place):
            os.rename(place, self.folder / "altered")
        os.rename(self.made, place)
        found = self.environments.find(key)
        if found is None:
            raise PackagesError("What was built is not what was marked: somebody changes the state folder. Try again.")
        return found


def remove_leftovers(environments: Environments) -> None:
    """Of preparations that were killed."""
    for name in os.listdir(environments.folder):
        path = environments.folder / name
        if not name.startswith(UNFINISHED):
            continue
        with suppress(OSError):
            held = os.open(path, AS_FOLDER)
            try:
                if _take(held):
                    remove_tree(path)
            finally:
                os.close(held)


def _take(descriptor: int, *, waits: bool = False) -> bool:
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def _make_read_only(tree: Path) -> None:
    waiting = [str(tree)]
    while waiting:
        folder = waiting.pop()
        with os.scandir(folder) as listing:
            for entry in listing:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif not entry.is_symlink():
                    os.chmod(entry.path, 0o444 | (entry.stat(follow_symlinks=False).st_mode & 0o111))
        os.chmod(folder, 0o555)  # noqa: S103 - walls show it to other users of a namespace
