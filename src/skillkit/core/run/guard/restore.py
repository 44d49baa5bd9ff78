"""What a script did to guarded places, undone: what it made is moved away, what it changed is put back.

All of it goes by descriptor from the folder that was writable, so that a link which a script left on the way leads
nowhere. What was guarded when a run began lies in a journal until it is over: a run whose program was killed leaves its
entry, unlocked, since the kernel lets go of a lock with the process, and the next run looks after it.
"""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import stat
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from skillkit.core.paths import Judged, is_inside, is_own, require_own_folder
from skillkit.core.paths.files import Folder, copy_content
from skillkit.core.paths.trees import files_below, remove_entry
from skillkit.core.run.guard.places import Place

__all__ = ["ASIDE", "Before", "Journal", "Keepsake", "SetAside", "keepsakes_of", "open_below", "put_back", "set_aside"]

ASIDE = "set-aside"
JOURNAL = "guarded-runs"
FILE_BYTES = 1 << 20
TOTAL_BYTES = 1 << 24
SPARE_SECONDS = 5.0
UNFINISHED_SECONDS = 60.0


class SetAside(NamedTuple):
    """Where a script made something that is guarded, and where it lies now; nowhere if it could only be removed."""

    path: str
    kept: str


class Keepsake(NamedTuple):
    """A guarded file as it was, to be put back."""

    path: str
    mode: int
    content: bytes


class Before(NamedTuple):
    """One folder when a run began."""

    root: Judged
    """Whatever else stands in its place after the run is not looked after."""
    known: frozenset[tuple[str, int, int]]
    """What was guarded, by identity."""
    kept: frozenset[str]
    """Of that, what the walls kept whoever replaced it meanwhile: it was not the script."""
    began: float
    until: float = math.inf
    """When the script was dead at the latest."""
    keepsakes: tuple[Keepsake, ...] = ()
    folders: frozenset[str] | None = None
    """The ordinary folders, where they are known."""
    obscured: frozenset[str] = frozenset()
    """Folders that another run's script had just made guarded, or closed: they and what they hold may be a person's."""

    def may_have_held(self, folder: str) -> bool:
        """Whether it was there, as far as anybody knows."""
        is_known = self.folders is None or folder in self.folders
        return is_known or any(is_inside(folder, each) for each in self.obscured)

    def moved(self, was: str, now: Judged) -> Before:
        """The same of a folder that is called otherwise by now."""
        if was == now.path:
            return self
        start = len(was)
        return self._replace(
            root=now,
            known=frozenset((now.path + path[start:], device, inode) for path, device, inode in self.known),
            kept=frozenset(now.path + path[start:] for path in self.kept),
            keepsakes=tuple(each._replace(path=now.path + each.path[start:]) for each in self.keepsakes),
            folders=None if self.folders is None else frozenset(now.path + path[start:] for path in self.folders),
            obscured=frozenset(now.path + path[start:] for path in self.obscured),
        )


def open_below(root: str, folder: str, *, make: bool = False) -> Folder:
    """A folder in `root`, reached through folders only: a link that a script put on the way is an error."""
    names = os.path.relpath(folder, root).split(os.sep) if folder != root else []
    with Folder.of(root) as top:
        return top.below(names, make=make)


def set_aside(root: str, paths: Sequence[str], state_folder: Path) -> list[SetAside]:
    """What was moved. What cannot be moved stays, and is said to be there still: its `kept` is empty."""
    inside = [path for path in paths if is_inside(path, root) and path != root]
    if not inside:
        return []
    moved = []
    try:
        # For what one run made; named by time, so that a person finds the latest.
        new = state_folder / ASIDE / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{secrets.token_hex(4)}"
        new.mkdir(mode=0o700, parents=True)
        made = Folder.of(new)
    except OSError:  # as on a full disk
        return [SetAside(path, "") for path in inside]
    with made as store:
        for number, path in enumerate(inside, 1):
            name = os.path.basename(path)
            kept = f"{number:03d}-{name}"
            is_moved = False
            with suppress(OSError), open_below(root, os.path.dirname(path)) as folder:
                is_moved = _move(folder, name, store, kept)
            moved.append(SetAside(path, os.path.join(store.path, kept) if is_moved else ""))
    return moved


def _move(folder: Folder, name: str, store: Folder, kept: str) -> bool:
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
    with open(source.open_file(name), "rb") as file, open(target.new_file(new, 0o600), "wb") as copy:
        copy_content(file.fileno(), copy.fileno())


def keepsakes_of(places: Iterable[Place], root: str) -> list[Keepsake]:
    """Of plain files below the top of `root`, which walls without mounts cannot keep; what is left out they keep.

    That is `.git`, what is too large, and what has further names: a change would have been one elsewhere too.
    """
    found: list[Keepsake] = []
    left = TOTAL_BYTES
    with _Contents(root) as contents:
        for place in places:
            folder, name = os.path.split(place.path)
            if not stat.S_ISREG(place.mode) or folder == root or name.lower() == ".git":
                continue
            content = contents.of(place.path)
            if content is not None and len(content) <= left:
                left -= len(content)
                found.append(Keepsake(place.path, stat.S_IMODE(place.mode), content))
    return found


def put_back(root: str, keepsakes: Iterable[Keepsake], state_folder: Path) -> list[SetAside]:
    """What took the place of those that changed, moved away; they are as they were again."""
    moved: list[SetAside] = []
    with _Contents(root) as contents:
        changed = [each for each in keepsakes if contents.of(each.path) != each.content]
    for path, mode, content in changed:
        with _opened_way(root, path):
            if in_the_way := _in_the_way(root, path):
                moved += set_aside(root, [in_the_way], state_folder)
            with suppress(OSError), open_below(root, os.path.dirname(path), make=True) as folder, folder.writable():
                folder.write_new(os.path.basename(path), content, mode)
    return moved


@contextmanager
def _opened_way(root: str, path: str) -> Iterator[None]:
    """The folders above a file, open to their owner meanwhile: a script that closes one would keep what it changed."""
    with ExitStack() as held:
        with suppress(OSError):  # further down there is nothing, or no folder
            folder = held.enter_context(Folder.of(root))
            held.enter_context(folder.writable())
            for name in os.path.relpath(path, root).split(os.sep)[:-1]:
                folder = held.enter_context(folder.folder(name))
                held.enter_context(folder.writable())
        yield


def _in_the_way(root: str, path: str) -> str:
    """What stands where the file was, or where a folder above it was; empty where nothing does."""
    names = os.path.relpath(path, root).split(os.sep)
    for count in range(1, len(names)):
        folder = os.path.join(root, *names[:count])
        try:
            open_below(root, folder).close()
        except FileNotFoundError:
            return ""
        except OSError as error:
            is_another = error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EACCES)
            return folder if is_another else ""
    return path if os.path.lexists(path) else ""


class _Contents:
    """Of many files below one folder, which is opened once."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._top: Folder | None = None

    def __enter__(self) -> Self:
        with suppress(OSError):
            self._top = Folder.of(self._root)
        return self

    def __exit__(self, *_: object) -> None:
        if self._top is not None:
            self._top.close()

    def of(self, path: str) -> bytes | None:
        """None for what is not a plain file any more, has further names, is unreadable or too large."""
        if self._top is None:
            return None
        try:
            descriptor = self._top.open_file_below(path[len(self._root) :].lstrip(os.sep).split(os.sep))
        except OSError:
            return None
        try:
            status = os.fstat(descriptor)
            return (
                _all_of(descriptor, status.st_size) if status.st_nlink == 1 and status.st_size <= FILE_BYTES else None
            )
        except OSError:
            return None
        finally:
            os.close(descriptor)


def _all_of(descriptor: int, size: int) -> bytes:
    """All of it; of one that grows meanwhile more than it had, so that it is another."""
    content = b""
    while part := os.read(descriptor, size + 1 - len(content)):
        content += part
    return content


class Journal:
    """What was guarded when each run of one world began, until it is over."""

    def __init__(self, state_folder: Path) -> None:
        self._folder = state_folder / JOURNAL

    def begin(self, before: Before, timeout: float) -> tuple[str, int]:
        """The entry of a run: its path, and the descriptor that holds it while the run lasts."""
        import fcntl

        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_own_folder(self._folder)
        path = str(self._folder / f"{os.getpid()}-{os.urandom(6).hex()}")
        content = json.dumps(
            {
                "root": before.root,
                "known": [[*each, each[0] in before.kept] for each in before.known],
                "keepsakes": [[each.path, each.mode, b64encode(each.content).decode()] for each in before.keepsakes],
                "began": before.began,
                "until": time.time() + timeout + SPARE_SECONDS,
            }
        )
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            with open(descriptor, "wb", closefd=False) as file:  # all of it, or an error
                file.write(content.encode("utf-8", "surrogateescape"))
        except BaseException:  # an entry that stays counts as a run that goes on
            self.end((path, descriptor))
            raise
        return path, descriptor

    def end(self, entry: tuple[str, int]) -> None:
        with suppress(OSError):
            os.unlink(entry[0])
        os.close(entry[1])

    def take_abandoned(self) -> Iterator[Before]:
        """Entries that nobody holds any more; each is given out once."""
        return (entry for path in self._paths() if (entry := _read(path, is_taken=True)) is not None)

    def going_on(self) -> list[Before]:
        """Of runs that somebody holds."""
        return [entry for path in self._paths() if (entry := _read(path, is_taken=False)) is not None]

    def _paths(self) -> list[str]:
        try:
            return [str(self._folder / name) for name in os.listdir(self._folder)] if is_own(self._folder) else []
        except OSError:
            return []


def _read(path: str, *, is_taken: bool) -> Before | None:
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        if not is_own(path):  # it would name what is moved away
            return None
        if is_taken:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with open(descriptor, encoding="utf-8", errors="surrogateescape", closefd=False) as file:
            entry = _entry(json.loads(file.read()))
        if is_taken:
            os.unlink(path)
    except OSError:  # in use
        return None
    except (KeyError, TypeError, ValueError):  # cut short, and then its script never started; or just being written
        if is_taken and time.time() - os.fstat(descriptor).st_mtime > UNFINISHED_SECONDS:
            os.unlink(path)
        return None
    else:
        return entry
    finally:
        os.close(descriptor)


def _entry(values: Any) -> Before:  # noqa: ANN401 - read from a file
    where, device, inode = values["root"]
    return Before(
        Judged(str(where), int(device), int(inode)),
        frozenset((str(where), int(device), int(inode)) for where, device, inode, _ in values["known"]),
        frozenset(str(where) for where, _, _, is_kept in values["known"] if is_kept),
        float(values["began"]),
        float(values["until"]),
        tuple(Keepsake(str(path), int(mode), b64decode(content)) for path, mode, content in values["keepsakes"]),
    )
