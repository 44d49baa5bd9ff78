"""Skills to be written, replaced or removed -> all of it done and locked, or everything as it was.

Theory of operation. Everything new is written below one hidden folder beside its place, on the same disk, where no
search looks. Then each old folder is moved aside, and looked at once more there, where no name can be exchanged: what
is not what was judged goes back. The new one is moved to its place, and last the lock is replaced. Whatever fails on
the way, the moves are taken back in reverse order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from skillkit.core.exceptions import ConfigurationError, SourceRefusedError
from skillkit.core.models.digest import manifest_of
from skillkit.core.paths.files import Folder
from skillkit.core.paths.trees import NewFile, remove_tree, write_tree
from skillkit.sources.lock import Locked, write_lock

__all__ = ["Change", "place_all"]

PREFIX = ".skillkit-"


class Change(NamedTuple):
    """One folder; no `files` means that it goes, no `before` that there is none yet."""

    place: Path
    files: tuple[NewFile, ...]
    before: str | None = None
    """The digest of what is replaced; another one there is an error."""


def place_all(changes: Iterable[Change], lock: Path, locked: Mapping[str, Locked]) -> None:
    """All or nothing."""
    work = _Work()
    try:
        for change in changes:
            work.prepare(change)
        work.swap_all()
        write_lock(lock, locked)
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


class _Work:
    """What was made and moved so far."""

    def __init__(self) -> None:
        self._drafts: dict[Path, Folder] = {}
        self._around: dict[Path, Folder] = {}
        self._made: list[Path] = []
        self._changes: list[tuple[Change, str]] = []
        self._undo: list[Callable[[], None]] = []

    def prepare(self, change: Change) -> None:
        draft, number = self._draft_in(change.place.parent), str(len(self._changes))
        if change.files:
            write_tree(draft, f"new-{number}", change.files)
        self._changes.append((change, number))

    def swap_all(self) -> None:
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
        for folder in reversed(self._made):
            with suppress(OSError):  # it holds something, so it is needed
                os.rmdir(folder)

    def _draft_in(self, place: Path) -> Folder:
        if place not in self._drafts:
            self._made += [folder for folder in (*reversed(place.parents), place) if not os.path.lexists(folder)]
            around = self._around[place] = Folder.named(place, make=True)
            self._drafts[place] = around.new_folder(f"{PREFIX}{os.urandom(8).hex()}", 0o700)
        return self._drafts[place]

    def _swap(self, change: Change, number: str) -> None:
        around, draft = self._around[change.place.parent], self._drafts[change.place.parent]
        name, new, old = change.place.name, f"new-{number}", f"old-{number}"
        if change.before is not None:
            around.move(name, draft, old)
            self._undo.append(lambda: draft.move(old, around, name))
            if manifest_of(Path(draft.path, old), by_content=True).digest != change.before:
                raise SourceRefusedError(f"{change.place} changed meanwhile. Nothing was changed. Try again.")
        elif around.status(name) is not None:
            raise SourceRefusedError(f"{change.place} is there already. Nothing was changed. Remove it first.")
        if change.files:
            draft.move(new, around, name)
            self._undo.append(lambda: around.move(name, draft, new))
