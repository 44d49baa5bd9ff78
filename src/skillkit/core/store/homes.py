"""A skill by name and folder -> the private home that its runs keep, in the state folder.

Theory of operation. Each skill has a folder here, and in it its homes by number and a note (`home.json`) that says
which of them is used now and with which content of the skill each was used last. No home is ever renamed, so runs that
use one at the same time stay in it. A skill that changed gets an empty home where a person is asked about the change:
what the earlier content wrote waits until the person says that it is kept (`keep`), or clears it. Scripts write these
homes, so everything in them is looked at by descriptor and no link in them is followed; the note lies beside them, out
of reach.

A folder that several machines have together (`is_shared`) holds the homes of a shared world, in which a skill is known
by its name. Machines keep out of each other's way by the lock of a file, which file systems of networks know too.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.paths import require_own_file, require_own_folder
from skillkit.core.paths.files import Folder
from skillkit.core.paths.trees import TreeSize as HomeSize
from skillkit.core.paths.trees import remove_entry, remove_tree, size_of_tree

__all__ = ["Home", "HomeSize", "Homes"]

FOLDER, NOTE, LOCK, SET_ASIDE = "homes", "home.json", "home.lock", "set-aside"
KEPT_ASIDE = 8
"""Of one skill: homes of earlier contents that nobody decided about; of more, the oldest go."""
NOT_THERE = (FileNotFoundError, NotADirectoryError, PermissionError)
UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
# Code that interpreters and their kin load from a home by themselves, and no variable tells them not to.
LOADED_FROM_HOME = (
    *(".node_modules", ".node_libraries", ".bunfig.toml", ".config/.bunfig.toml"),
    *(".gem", ".local/share/gem", ".config/gem", ".gemrc"),
    *(".local/share/powershell", ".config/powershell", ".config/fish", ".cshrc", ".tcshrc"),
    *(".pdbrc", ".perldb", ".sqliterc"),
    # An earlier git than 2.32 knows no other place.
    *(".gitconfig", ".config/git"),
)


class Home(NamedTuple):
    """The home of one skill, as its runs find it."""

    path: Path
    digest: str
    """Of the content that used it last."""
    above: int = 0
    """Bytes, where the last run left more than it may."""
    is_after_change: bool = False
    """Whether it is empty because the skill changed; what it kept before is set aside."""
    set_aside: tuple[str, ...] = ()
    """What was taken out of it before this run: an interpreter would have loaded it by itself."""


@dataclass(slots=True)
class _Note:
    """Which homes there are; each number with the content that used it last and the bytes that are too much."""

    skill: str
    folder: str
    current: str = ""
    homes: dict[str, tuple[str, int]] = field(default_factory=dict)

    def numbers(self) -> list[str]:
        """Oldest first."""
        return sorted(self.homes, key=int)


class Homes:
    """The homes of one world's skills; safe for many processes."""

    def __init__(self, state_folder: Path, *, is_shared: bool = False) -> None:
        self._state_folder = state_folder
        self.folder = state_folder / FOLDER
        self._is_shared = is_shared

    @classmethod
    def in_volume(cls, volume: Path, world: str) -> Homes:
        """Those of a world of many machines, in a folder that each of them maps."""
        return cls(volume / world, is_shared=True)

    def command(self, skill: str) -> str:
        """What a person types to look at the skill's home."""
        where = f" --homes {shlex.quote(str(self._state_folder.parent))}" if self._is_shared else ""
        return f"skillkit home {shlex.quote(skill)}{where}"

    def open(self, skill: str, base_directory: Path, digest: str, *, stays: bool) -> Home:
        """The home for a run of this content, made where there is none.

        `stays` says that nobody is asked about changes, so that it stays the same home through them.
        """
        place = self._place(skill, base_directory)
        note = self._read(place)
        is_after_change = False
        if note is None or note.homes.get(note.current, ("", 1)) != (digest, 0):
            with self._changing(skill, base_directory) as note:
                before = len(note.homes)
                self._choose(place, note, digest, stays=stays)
                is_after_change = 0 < before < len(note.homes)
                self._drop_oldest(place, note)
        path = place / note.current
        above = note.homes[note.current][1]
        if _is_untouched(path):
            return Home(path, digest, above, is_after_change)
        try:
            with Folder.of(path) as home:
                home.allow_all()  # a script may have closed it
                return Home(path, digest, above, is_after_change, tuple(_without_startup_code(home, place)))
        except FileNotFoundError:  # cleared at this very moment
            self._make(place, note.current)
            return Home(path, digest)

    def keep(self, skill: str, base_directory: Path, digest: str) -> None:
        """Let the changed skill have the home of what it was before: what a person's tick means."""
        with self._changing(skill, base_directory) as note:
            number = _before(note, digest)
            if number:
                note.current, note.homes[number] = number, (digest, note.homes[number][1])

    def from_before(self, skill: str, base_directory: Path, digest: str) -> HomeSize | None:
        """What `keep` would let it have; None where there is nothing."""
        place = self._place(skill, base_directory)
        note = self._read(place)
        number = _before(note, digest) if note else ""
        size = self.measure(place / number) if number else None
        return size if size and size.files else None

    def find(self, skill: str, base_directory: Path) -> Home | None:
        """The home that is in use, as it stands; None where there is none yet."""
        place = self._place(skill, base_directory)
        note = self._read(place)
        return Home(place / note.current, *note.homes[note.current]) if note and note.current in note.homes else None

    def others(self, skill: str, base_directory: Path) -> tuple[Path, ...]:
        """Homes of earlier contents, and what was taken out of homes; oldest first."""
        place = self._place(skill, base_directory)
        note = self._read(place)
        found = [number for number in note.numbers() if number != note.current] if note else []
        return tuple(place / name for name in (*found, SET_ASIDE) if os.path.lexists(place / name))

    def clear(self, skill: str, base_directory: Path) -> None:
        """All homes of the skill go, also those of earlier contents."""
        place = self._place(skill, base_directory)
        aside = self.folder / f".old-{os.urandom(8).hex()}"
        with suppress(FileNotFoundError):
            os.rename(place, aside)  # whoever comes meanwhile finds all of it or nothing
        for name in os.listdir(self.folder) if os.path.isdir(self.folder) else ():
            if name.startswith(".old-"):
                remove_tree(self.folder / name)

    def note_size(self, skill: str, base_directory: Path, home: Path, size: HomeSize, megabytes: int) -> bool:
        """Whether it is too much; the next run is told."""
        above = max(size.bytes, 1) if size.is_above(megabytes) else 0
        note = self._read(self._place(skill, base_directory))
        if note and note.homes.get(home.name, ("", above))[1] != above:
            with self._changing(skill, base_directory) as note:
                if home.name in note.homes:
                    note.homes[home.name] = (note.homes[home.name][0], above)
        return bool(above)

    @staticmethod
    def measure(home: Path) -> HomeSize:
        """What it holds."""
        return size_of_tree(home)

    def _place(self, skill: str, base_directory: Path) -> Path:
        """Named after the skill for who looks, and told from others of that name."""
        folder = "" if self._is_shared else base_directory
        told = sha256(b"\0".join((os.fsencode(skill), os.fsencode(folder)))).hexdigest()[:16]
        return self.folder / f"{UNSAFE.sub('-', skill)[:40].strip('-') or 'skill'}-{told}"

    def _choose(self, place: Path, note: _Note, digest: str, *, stays: bool) -> None:
        """Make the note name the home for this content."""
        now = note.homes.get(note.current)
        same = [number for number in note.numbers() if note.homes[number][0] == digest]
        if now is not None and (now[0] == digest or stays or not self.measure(place / note.current).files):
            note.homes[note.current] = (digest, now[1])
        elif same:
            note.current = same[-1]
        else:
            note.current = str(max(map(int, note.homes), default=0) + 1)
            note.homes[note.current] = (digest, 0)
        self._make(place, note.current)

    def _drop_oldest(self, place: Path, note: _Note) -> None:
        for number in [number for number in note.numbers() if number != note.current][:-KEPT_ASIDE]:
            del note.homes[number]
            remove_tree(place / number)

    def _make(self, place: Path, number: str) -> None:
        with suppress(FileExistsError):
            (place / number).mkdir(mode=0o700, parents=True)

    @contextmanager
    def _changing(self, skill: str, base_directory: Path) -> Iterator[_Note]:
        """The note, alone; what was changed in it is kept."""
        place = self._place(skill, base_directory)
        try:
            for folder in (self._state_folder, self.folder, place):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                require_own_folder(folder, may_be_link=folder is self._state_folder)
            with _alone(place), Folder.of(place) as around:
                note = self._read(place) or _Note(skill, str(base_directory))
                before = _text_of(note)
                yield note
                if _text_of(note) != before:
                    around.replace(NOTE, _text_of(note), 0o600)
        except OSError as error:
            raise StateUnavailableError(
                f"The home of {skill!r} cannot be kept in {place}: {error.strerror or error}. Make the state folder "
                "writable, or set the policy key home to 'fresh'."
            ) from error

    def _read(self, place: Path) -> _Note | None:
        try:
            text = (place / NOTE).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(place, error.strerror or str(error)) from error
        require_own_file(place / NOTE)
        try:
            said: dict[str, Any] = json.loads(text)
            homes = {str(int(number)): (str(digest), int(above)) for number, (digest, above) in said["homes"].items()}
            return _Note(str(said["skill"]), str(said["folder"]), str(said["current"]), homes)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise _unreadable(place, "it is damaged") from error


def _unreadable(place: Path, reason: str) -> StateUnavailableError:
    return StateUnavailableError(
        f"Which home belongs to a skill stands in {place / NOTE}, and that cannot be read: {reason}. "
        f"Look at it, then remove {place}."
    )


def _before(note: _Note, digest: str) -> str:
    """The home that was used last with another content; the current one first."""
    numbers = [note.current, *reversed(note.numbers())]
    return next((number for number in numbers if number in note.homes and note.homes[number][0] != digest), "")


def _text_of(note: _Note) -> bytes:
    said = {"skill": note.skill, "folder": note.folder, "current": note.current, "homes": note.homes}
    return json.dumps(said, indent=1).encode("utf-8", "surrogatepass")


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Nobody else changes what this folder notes; a lock ends with its process. A folder has none across a network."""
    if os.name != "posix":
        yield
        return
    import fcntl

    descriptor = os.open(place / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_untouched(home: Path) -> bool:
    """As it was made: nothing in it, and nothing closed."""
    try:
        return os.lstat(home).st_mode == stat.S_IFDIR | 0o700 and not os.listdir(home)
    except OSError:
        return False


def _without_startup_code(home: Folder, place: Path) -> Iterator[str]:
    """Names of what was moved beside the homes: code that would run unasked, or a link on the way to it."""
    for way in LOADED_FROM_HOME:
        names = way.split("/")
        for depth, name in enumerate(names, 1):
            # What is closed to its owner is closed to interpreters, too.
            with suppress(*NOT_THERE), home.below(names[: depth - 1]) as around:
                status = around.status(name)
                if status is None or (depth < len(names) and not stat.S_ISLNK(status.st_mode)):
                    continue
                _move_beside(around, name, place, "-".join(names[:depth]))
                yield "/".join(names[:depth])
                break


def _move_beside(around: Folder, name: str, place: Path, kept: str) -> None:
    with Folder.of(place) as beside, beside.folder(SET_ASIDE, make=True) as aside, around.writable():
        remove_entry(aside, kept)
        around.move(name, aside, kept)
