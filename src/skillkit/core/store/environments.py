"""A skill by name, folder and digest -> the packages that were prepared for it, as far as they are still intact.

Theory of operation. An environment is a folder named by its key: the digest of lock, interpreter and platform. Skills
with the same key share it. It holds `tree`, which runs are shown read-only, and a mark, written last, that says what
the tree is made of and how all of its files looked to `stat`. It is built beside its place and renamed, so that it is
there as a whole or not at all. Its files are looked at once in a process; afterwards only its folder and its mark are.
What a person approved for a skill is a note of its own, bound to the skill's name, folder and digest: of a skill that
changed nothing is found. Only `skillkit.packages` writes here; runs read.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.paths import real_path, require_own_file, require_own_folder
from skillkit.core.paths.files import replace_file
from skillkit.core.paths.trees import remove_tree
from skillkit.core.values.runs import Prepared

__all__ = [
    "KINDS",
    "PACKAGES",
    "Approved",
    "Environment",
    "Environments",
    "Mark",
    "Share",
    "names_below",
    "seen_of",
    "take",
]

KINDS = ("python", "node")
PACKAGES = "packages"
"""The folder of all this in a state folder."""
BUILT, NOTES, TREE, MARK, LOCKS = "environments", "skills", "tree", "environment.json", "locks"
MOST_BYTES = 4_000_000
READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)

_lock = threading.Lock()
_intact: dict[str, tuple[tuple[int, ...], Environment]] = {}
"""By folder: how its root and mark looked when all of it was looked at, in this process."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What an environment is made of; `seen` is the digest of how its files look."""

    key: str
    kind: str
    interpreter: str
    packages: tuple[str, ...]
    """Name and version of each, as `pypdf 6.1.0`."""
    size: int
    built_at: float
    seen: str


@dataclass(frozen=True, slots=True)
class Environment:
    """One that is there as a whole."""

    mark: Mark
    tree: Path

    @property
    def prepared(self) -> Prepared:
        """As a command names it."""
        return Prepared(self.mark.kind, self.tree, self.mark.interpreter)


@dataclass(frozen=True, slots=True)
class Share:
    """What was approved of one language: the lock itself, what it was computed for, and where it is built."""

    key: str
    lock: str
    wanted: tuple[tuple[str, str, str, str], ...]
    """Name, specifier, source and place of what was asked for."""
    names: tuple[str, ...]
    """All that the lock installs."""
    found_by: str = ""
    """How the interpreter looked that it was made for, and what was found first on the way to it."""


@dataclass(frozen=True, slots=True)
class Approved:
    """A person's word about the packages of one skill."""

    skill: str
    folder: str
    digest: str
    channel: str
    approved_at: float
    shares: dict[str, Share] = field(default_factory=dict, hash=False)
    scopes: tuple[str, ...] = ()
    """The scripts that it was given for, as they were named; empty text for the whole skill."""
    read_by: str = ""
    """The version of skillkit that read what the skill needs."""


class Environments:
    """Of one world; safe for many processes."""

    def __init__(self, state_folder: Path) -> None:
        self._state_folder = state_folder
        self.folder = state_folder / PACKAGES
        self.built = self.folder / BUILT
        self._notes = self.folder / NOTES

    def of(self, skill: str, base_directory: str | Path, digest: str) -> tuple[Prepared, ...]:
        """What a run of this content may use; nothing where nothing was prepared or something was altered."""
        approved = self.approved(skill, base_directory)
        if approved is None or approved.digest != digest:
            return ()
        found = (self.find(share.key) for share in approved.shares.values())
        return tuple(each.prepared for each in found if each is not None)

    def names(self, skill: str, base_directory: str | Path, digest: str) -> frozenset[str]:
        """The packages that are there for it, as needs name them."""
        approved = self.approved(skill, base_directory)
        if approved is None or approved.digest != digest:
            return frozenset()
        shares = [share for share in approved.shares.values() if self.find(share.key) is not None]
        return frozenset(name for share in shares for name in share.names)

    def find(self, key: str) -> Environment | None:
        """The environment with this key, if it is what was built."""
        place = self.built / key
        try:
            now = _looks(place)
            with _lock:
                known = _intact.get(str(place))
            if known is not None and known[0] == now:
                return known[1]
            environment = self._examined(place, key)
        except (OSError, ValueError, TypeError, StateUnavailableError):
            return None
        if environment is not None:
            with _lock:
                _intact[str(place)] = (now, environment)
        return environment

    def _examined(self, place: Path, key: str) -> Environment | None:
        for folder in (self.folder, self.built, place):
            require_own_folder(folder)
        mark = _read(place / MARK)
        read = Mark(**{**mark, "packages": tuple(mark["packages"])})
        tree = place / TREE
        if read.key != key or read.kind not in KINDS or seen_of(tree)[0] != read.seen:
            return None
        # A home folder may lie behind a link; walls follow none.
        return Environment(read, Path(real_path(tree)))

    def approved(self, skill: str, base_directory: str | Path) -> Approved | None:
        """Whatever digest it was given for."""
        try:
            require_own_folder(self.folder)
            require_own_folder(self._notes)
            read = _approved_in(self._note(skill, base_directory))
        except (OSError, ValueError, TypeError, KeyError, StateUnavailableError):
            return None
        return read if (read.skill, read.folder) == (skill, real_path(base_directory)) else None

    def all_approved(self) -> list[Approved]:
        """Of every skill, in the order of their names; what cannot be read is left out."""
        found = []
        for name in _names_in(self._notes):
            with suppress(OSError, ValueError, TypeError, KeyError, StateUnavailableError):
                found.append(_approved_in(self._notes / name))
        return sorted(found, key=lambda each: (each.skill, each.folder))

    def all_built(self) -> list[Environment]:
        """Those that are intact."""
        return [each for name in sorted(_names_in(self.built)) if (each := self.find(name)) is not None]

    def keep(self, approved: Approved) -> None:
        """In one step; what was approved for the skill before is replaced."""
        self.make_folders()
        replace_file(self._note(approved.skill, approved.folder), json.dumps(asdict(approved)).encode())

    def forget(self, skill: str, base_directory: str | Path) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._note(skill, base_directory))

    def prune(self, *, with_gone_skills: bool = False) -> dict[str, int]:
        """Removes what no skill uses or what was altered; the keys that went, each with its bytes.

        `with_gone_skills` forgets skills whose folder is not there any more. Renamed first: whoever looks meanwhile
        finds all of it or nothing. A run that goes on keeps what it has mounted.
        """
        approved = self.all_approved()
        for each in approved if with_gone_skills else ():
            if not os.path.isdir(each.folder):
                self.forget(each.skill, each.folder)
        used = {share.key for each in self.all_approved() for share in each.shares.values()}
        gone: dict[str, int] = {}
        for key in _names_in(self.built):
            found = self.find(key)
            if key not in used or found is None:
                with self.held(key, waits=False) as is_ours:
                    if is_ours:
                        gone |= self._set_aside(key, found.mark.size if found else 0)
        return gone

    def _set_aside(self, key: str, size: int) -> dict[str, int]:
        aside = self.folder / f".new-{os.urandom(8).hex()}"
        try:
            os.rename(self.built / key, aside)
        except OSError:
            return {}
        remove_tree(aside)
        return {key: size}

    @contextmanager
    def held(self, key: str, *, waits: bool) -> Iterator[bool]:
        """Whether the key is ours alone meanwhile: who builds it holds it until a skill is noted that uses it."""
        locks = self.folder / LOCKS
        locks.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(locks / key, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            yield take(lock, waits=waits)
        finally:
            os.close(lock)

    def make_folders(self) -> None:
        for folder in (self._state_folder, self.folder, self.built, self._notes):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            require_own_folder(folder, may_be_link=folder is self._state_folder)

    def _note(self, skill: str, base_directory: str | Path) -> Path:
        named = f"{skill}\0{real_path(base_directory)}"
        return self._notes / f"{sha256(named.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}.json"


def take(descriptor: int, *, waits: bool = False) -> bool:
    """Whether the lock of an open file or folder is ours now; it goes when the descriptor does."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def seen_of(tree: Path) -> tuple[str, int]:
    """How every entry of a tree looks, as one digest, and how many bytes it has."""
    lines, size = [], 0
    for relative, entry in _entries(tree):
        status = entry.stat(follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            lines.append(f"{relative}\0{status.st_mode:o}")
            continue
        leads = os.readlink(entry.path) if stat.S_ISLNK(status.st_mode) else ""
        size += status.st_size
        lines.append(f"{relative}\0{status.st_mode:o}\0{status.st_size}\0{status.st_mtime_ns}\0{leads}")
    text = "\n".join(sorted(lines))
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest(), size


def _entries(tree: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(tree / folder) as listing:
            for entry in listing:
                relative = f"{folder}/{entry.name}" if folder else entry.name
                yield relative, entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(relative)


def names_below(tree: Path) -> list[str]:
    """Of everything in it, relative to it."""
    return [relative for relative, _ in _entries(tree)]


def _looks(place: Path) -> tuple[int, ...]:
    """Of the folder, the tree in it and its mark: what changes when one is replaced."""
    seen: list[int] = []
    for path in (place, place / TREE, place / MARK):
        status = os.lstat(path)
        seen += (status.st_dev, status.st_ino, status.st_mode, status.st_uid, status.st_mtime_ns)
    return tuple(seen)


def _approved_in(note: Path) -> Approved:
    read = _read(note)
    shares = {
        kind: Share(
            str(each["key"]),
            str(each["lock"]),
            tuple(tuple(w) for w in each["wanted"]),
            tuple(map(str, each["names"])),
            str(each.get("found_by", "")),
        )
        for kind, each in read["shares"].items()
        if kind in KINDS
    }
    return Approved(**{**read, "shares": shares, "scopes": tuple(map(str, read.get("scopes", ())))})


def _read(path: Path) -> dict[str, Any]:
    """A file of this user's own, never through a link."""
    require_own_file(path)
    with open(os.open(path, READ), "rb") as file:
        content = json.loads(file.read(MOST_BYTES))
    if not isinstance(content, dict):
        raise TypeError(f"{path} holds no table")
    return content


def _names_in(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".")]
    except OSError:
        return []
