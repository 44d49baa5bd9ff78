"""Skills to be written, replaced or removed -> all of it done and locked, or everything as it was.

Theory of operation. Everything new is written below one hidden folder beside its place, on the same disk, where no
search looks. Then each old folder is moved aside, and looked at once more there, where no name can be exchanged: what
is not what was judged goes back. The new one is moved to its place, and last the lock is replaced. Whatever fails on
the way, the moves are taken back in reverse order. What a kill leaves is put right by whoever comes next: a note in the
user's own state, never in the project, says what was to be moved, and the lock says whether all of it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from skillkit.core.exceptions import ConfigurationError, SourceRefusedError
from skillkit.core.paths.files import Folder
from skillkit.core.paths.trees import NewFile, remove_tree, write_tree
from skillkit.sources.lock import Locked, lock_text, write_lock
from skillkit.sources.present import NOTHING, Present, present_at

__all__ = ["Change", "place_all", "put_right"]

PREFIX = ".skillkit-"


class Change(NamedTuple):
    """One folder; no `files` means that it goes, nothing `before` that there is none yet."""

    place: Path
    files: tuple[NewFile, ...]
    before: Present = NOTHING
    """What is replaced; anything else there is an error."""


def place_all(changes: Iterable[Change], lock: Path, locked: Mapping[str, Locked], notes: Path) -> None:
    """All or nothing; `notes` is a folder of the user's state."""
    work = _Work(_Note(notes, lock, lock_text(locked) if locked else ""))
    try:
        for change in changes:
            work.prepare(change)
        work.swap_all()
        write_lock(lock, locked, work.note.lock_draft)
    except OSError as error:
        work.undo()
        where = error.filename if isinstance(error.filename, str) else lock.parent
        raise ConfigurationError(
            f"Nothing was changed: {where} cannot be written ({error.strerror or error}). "
            "Make room there, or make it writable."
        ) from error
    except BaseException:
        work.undo()
        raise
    finally:
        work.clean()


def put_right(lock: Path, notes: Path) -> None:
    """After a kill: all of it done, or everything as it was. Whoever calls this is alone with the lock."""
    with suppress(FileNotFoundError), Folder.named(notes) as folder:
        for name in folder.names():
            note = _read_note(folder, name)
            if note is not None and note["lock"] == str(lock):
                _put_right(lock, note)
            elif _key_of(lock) not in name:  # of another lock; else it was not written to its end
                continue
            with suppress(FileNotFoundError):
                folder.remove(name)


def _put_right(lock: Path, note: Mapping[str, Any]) -> None:
    is_done = note["text"] == (lock.read_text(encoding="utf-8") if os.path.exists(lock) else "")
    for move in reversed(note["moves"]):
        with suppress(OSError):
            _take_back(_Move(*move), is_done=is_done)
    for draft in note["drafts"]:
        remove_tree(draft)
    _remove_draft(lock, note.get("lock_draft", ""))
    _remove_empty(note.get("made", ()))


def _remove_draft(lock: Path, name: str) -> None:
    if name:
        with suppress(OSError), Folder.named(lock.parent) as around:
            around.remove(name)


def _remove_empty(made: Sequence[str]) -> None:
    for folder in reversed(made):
        with suppress(OSError):  # it holds something, so it is needed
            os.rmdir(folder)


def _key_of(lock: Path) -> str:
    """In the names of its notes, which one who was killed may have left half written."""
    return sha256(os.fsencode(lock)).hexdigest()[:16]


def _read_note(folder: Folder, name: str) -> dict[str, Any] | None:
    try:
        with open(folder.open_file(name), "rb") as file:
            found: dict[str, Any] = json.load(file)
    except (OSError, ValueError):
        return None
    return found


class _Move(NamedTuple):
    """What was to happen to one folder."""

    place: str
    draft: str
    number: str
    inode: int
    """Of what was to be there; 0 for nothing."""


def _take_back(move: _Move, *, is_done: bool) -> None:
    place = Path(move.place)
    with Folder.named(place.parent) as around, around.folder(Path(move.draft).name) as draft:
        there = around.status(place.name)
        if not is_done and there is not None and there.st_ino == move.inode:
            around.move(place.name, draft, f"undone-{move.number}")
            there = None
        if there is None and (move.inode or not is_done) and draft.status(f"old-{move.number}") is not None:
            draft.move(f"old-{move.number}", around, place.name)


class _Note:
    """What is under way, for whoever finds it half done."""

    def __init__(self, notes: Path, lock: Path, text: str) -> None:
        number = os.urandom(8).hex()
        self._notes, self._lock = notes, lock
        self._name = f"{_key_of(lock)}-{number}.json"
        self.lock_draft = f"{PREFIX}{number}"
        self._head = {"lock": str(lock), "text": text, "lock_draft": self.lock_draft}

    def write(self, made: Iterable[str], drafts: Iterable[str], moves: Iterable[_Move] = ()) -> None:
        content = json.dumps({**self._head, "made": list(made), "drafts": list(drafts), "moves": list(moves)})
        with Folder.named(self._notes, make=True) as folder:
            folder.replace(self._name, content.encode("ascii"), 0o600, f".new-{self._name}")

    def remove(self) -> None:
        _remove_draft(self._lock, self.lock_draft)
        with suppress(OSError), Folder.named(self._notes) as folder:
            folder.remove(self._name)


class _Work:
    """What was made and moved so far."""

    def __init__(self, note: _Note) -> None:
        self.note = note
        self._drafts: dict[Path, Folder] = {}
        self._around: dict[Path, Folder] = {}
        self._made: list[str] = []
        self._changes: list[tuple[Change, str]] = []
        self._undo: list[Callable[[], None]] = []

    def prepare(self, change: Change) -> None:
        draft, number = self._draft_in(change.place.parent), str(len(self._changes))
        if change.files:
            write_tree(draft, f"new-{number}", change.files)
        self._changes.append((change, number))

    def swap_all(self) -> None:
        moves = [self._move(change, number) for change, number in self._changes]
        self.note.write(self._made, self._paths(), moves)
        for change, number in self._changes:
            self._swap(change, number)

    def undo(self) -> None:
        while self._undo:
            with suppress(OSError):
                self._undo.pop()()

    def clean(self) -> None:
        for place, draft in self._drafts.items():
            draft.close()
            self._around[place].close()
            remove_tree(draft.path)
        _remove_empty(self._made)
        self.note.remove()

    def _paths(self) -> list[str]:
        return [draft.path for draft in self._drafts.values()]

    def _move(self, change: Change, number: str) -> _Move:
        draft = self._drafts[change.place.parent]
        new = draft.status(f"new-{number}") if change.files else None
        return _Move(str(change.place), draft.path, number, new.st_ino if new else 0)

    def _draft_in(self, place: Path) -> Folder:
        if place not in self._drafts:
            self._made += [str(each) for each in (*reversed(place.parents), place) if not os.path.lexists(each)]
            if self._made:  # before they are: who is killed now leaves none of them
                self.note.write(self._made, self._paths())
            around = self._around[place] = Folder.named(place, make=True)
            name = f"{PREFIX}{os.urandom(8).hex()}"
            self.note.write(self._made, [*self._paths(), os.path.join(around.path, name)])
            self._drafts[place] = around.new_folder(name, 0o700)
        return self._drafts[place]

    def _swap(self, change: Change, number: str) -> None:
        around, draft = self._around[change.place.parent], self._drafts[change.place.parent]
        name, new, old = change.place.name, f"new-{number}", f"old-{number}"
        if not change.before.is_nothing:
            around.move(name, draft, old)
            self._undo.append(lambda: draft.move(old, around, name))
            if present_at(Path(draft.path, old)) != change.before:
                raise SourceRefusedError(f"{change.place} changed meanwhile. Nothing was changed. Try again.")
        elif around.status(name) is not None:
            raise SourceRefusedError(f"{change.place} is there already. Nothing was changed. Remove it first.")
        if change.files:
            draft.move(new, around, name)
            self._undo.append(lambda: around.move(name, draft, new))
