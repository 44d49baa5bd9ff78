"""A place for one preparation: folders that only we use, gone afterwards, also after we were killed.

A folder is held by a lock on itself. What nobody holds was left behind by a process that was killed, and goes when the
next preparation begins. What is finished is renamed into its place, so that it is there as a whole or not at all.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.paths.trees import remove_tree
from skillkit.core.store.environments import MARK, TREE, Environment, Environments, Mark, seen_of, take
from skillkit.core.values.hosts import HostUse
from skillkit.packages.tools import TOOL_SECONDS, Hosts, Said, run_tool
from skillkit.packages.values import PackagesError

__all__ = ["Workshop", "key_of", "remove_leftovers"]

UNFINISHED = ".new-"
ATTEMPTS = 100
AS_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def key_of(lock: str, interpreter: str, version: str, platform: str) -> str:
    parts = json.dumps([lock, interpreter, version, platform])
    return sha256(parts.encode()).hexdigest()


class Workshop:
    """One preparation's own folders."""

    def __init__(self, environments: Environments, folder: Path, cancel: threading.Event | None = None) -> None:
        self.environments = environments
        self.folder = folder
        self.cancel = cancel
        self.reached: list[HostUse] = []
        self._held = ExitStack()
        self.work, self.made = folder / "work", folder / "made"
        for each in (self.work, self.made):
            each.mkdir(mode=0o700)

    @classmethod
    @contextmanager
    def opened(cls, environments: Environments, cancel: threading.Event | None = None) -> Iterator[Workshop]:
        try:
            environments.make_folders()
            remove_leftovers(environments)
            folder, held = _new_folder(environments.folder)
        except OSError as error:
            raise StateUnavailableError(
                f"Nothing can be prepared in {environments.folder}: {error.strerror or error}. "
                "Make the state folder writable, or name another with SKILLKIT_STATE_DIR."
            ) from error
        try:
            shop = cls(environments, folder, cancel)
            with shop._held:
                yield shop
        finally:
            os.close(held)
            remove_tree(folder)

    def run(
        self,
        argv: Sequence[str],
        *,
        programs: Sequence[str],
        environment: Mapping[str, str],
        hosts: Hosts,
        timeout: float = TOOL_SECONDS,
        on_bytes: Callable[[int], None] | None = None,
    ) -> Said:
        """A tool inside walls that can write here and nowhere else."""
        said = run_tool(
            argv,
            work=self.work,
            writable=(self.made,),
            programs=programs,
            environment=environment,
            hosts=hosts,
            timeout=timeout,
            on_bytes=on_bytes,
            cancel=self.cancel,
        )
        self.reached += said.hosts
        if self.cancel is not None and self.cancel.is_set():
            raise PackagesError("It was stopped before it was done. Nothing was installed.")
        return said

    def new_folder(self, name: str) -> Path:
        """Empty, in the work folder."""
        folder = self.work / name
        remove_tree(folder)
        folder.mkdir(mode=0o700)
        return folder

    def alone(self, key: str) -> Environment | None:
        """What is there already; else whoever asks for the same key waits until this workshop is closed."""
        self._held.enter_context(self.environments.held(key, waits=True))
        return self.environments.find(key)

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


def _new_folder(within: Path) -> tuple[Path, int]:
    """With what holds it; another process that looks for leftovers may have taken one for that before it was held."""
    for _ in range(ATTEMPTS):
        folder = within / f"{UNFINISHED}{secrets.token_hex(8)}"
        folder.mkdir(mode=0o700)
        with suppress(FileNotFoundError), ExitStack() as opened:
            held = os.open(folder, AS_FOLDER)
            opened.callback(os.close, held)
            if take(held) and os.path.samestat(os.fstat(held), os.lstat(folder)):
                opened.pop_all()
                return folder, held
    raise OSError(errno.EAGAIN, "others removed each new folder")


def remove_leftovers(environments: Environments) -> None:
    """Of preparations that were killed."""
    for name in os.listdir(environments.folder):
        path = environments.folder / name
        if not name.startswith(UNFINISHED):
            continue
        with suppress(OSError):
            held = os.open(path, AS_FOLDER)
            try:
                if take(held):
                    remove_tree(path)
            finally:
                os.close(held)


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
