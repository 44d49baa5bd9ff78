"""A folder that scripts may write -> what is guarded in it, kept up to date from look to look.

Theory of operation. A `Tree` remembers for every folder what it held and by which stamp (device, inode, time of
change) that was known. A look compares stamps and lists again only what changed; no script can set a time of change,
and a folder changed a moment before it was listed is listed once more. Above a few hundred folders even that many
stamps cost too much, so the kernel is asked to tell what changes (`watch`), and a look reads what it told.
Nothing here follows a link: where a guarded name is one, every link on its way is guarded, and what it leads to.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

from skillkit.core.paths.guarded_names import (
    ENVIRONMENT_MARK,
    SKILL_MARK,
    SKILLS_FOLDER,
    guarded_inside,
    is_guarded_name,
    is_obeyed_folder,
    of_repository,
)
from skillkit.core.run.guard.places import Place, Stamp, find_places, place_at, stamp_at
from skillkit.core.run.guard.watch import Watch

__all__ = ["Tree"]

MOST_FOLDERS = 200_000
LONGEST_PATH = 3_500  # bytes; a folder with a longer one is guarded itself: beyond 4,095 nobody can open what it holds
WATCHED_FROM = 300  # folders; below, their stamps are read sooner than the kernel is asked
SETTLED_NANOSECONDS = 2_000_000_000
MOST_SHARED_FILES = 200  # that are guarded one by one
MOST_STATED_FILES = 20_000
PACKAGE_MARK = "__init__.py"
INSTALLED_FOLDER = "node_modules"  # where links are made by the hundred, and nobody looks for skills
MODULE_ENDINGS = ("py", "pyc", "pyd", "so")
MARKS = frozenset((ENVIRONMENT_MARK, PACKAGE_MARK, SKILL_MARK))
PARTS_OF_ENVIRONMENT = frozenset(("bin", "scripts", "lib", "lib64"))


class _Folder(NamedTuple):
    """One folder as it was listed; without a stamp it has to be listed again in any case."""

    stamp: Stamp | None
    children: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()
    stamps: dict[str, Stamp | None] = {}  # noqa: RUF012 - of a value that nobody changes
    """Of what was looked through inside its guarded places."""
    shared: tuple[tuple[Place, int], ...] = ()
    """Files with several names, each with the number of them."""
    stated: int = 0
    """How many files were looked at for that."""
    is_whole: bool = False
    """Whether it is guarded itself, for what it holds."""
    is_closed: bool = False
    """Whether it is guarded itself because nobody can look at what it holds."""


class Tree:
    """What is guarded below one folder. Not for several threads at once."""

    def __init__(self, root: str, *, left_out: tuple[str, ...] = (), importable: frozenset[str] = frozenset()) -> None:
        """`left_out` is guarded in another way; `importable` are names at the top that this program would load."""
        self.root = root
        self.left_out = frozenset(left_out)
        self.importable = importable
        self._folders: dict[str, _Folder] = {}
        self._watch: Watch | None = None
        self._pid = os.getpid()
        self._stated = 0
        self._most = MOST_FOLDERS
        self._looked_into: set[str] = set()
        self._seen: tuple[Place, ...] = ()
        self._ordinary: frozenset[str] = frozenset()
        self._closed: list[str] = []
        self._is_environment = False
        self.is_cut = False
        """Whether there were more folders than are looked at when a run begins."""
        self.has_unguarded_shares = False
        """Whether files may have further names outside without being guarded."""

    def take_for_environment(self, is_one: bool) -> None:
        """Whether the folder itself is a person's environment: then its programs and packages are guarded in it."""
        if self._is_environment != is_one:
            self.close()
            self._is_environment = is_one

    def look(self, *, is_after_run: bool = False) -> tuple[Place, ...]:
        """What is guarded now, outer places first; what lies in a guarded folder is guarded with it.

        After a run every folder is looked at, however many: who can make them in that time can be followed.
        """
        self._most = sys.maxsize if is_after_run and not self.is_cut else MOST_FOLDERS
        if self._pid != os.getpid():  # a copy made by fork would take the other's news
            self.close()
            self._pid = os.getpid()
        changed = self._changed()
        if changed is None:
            self.close()
            self.is_cut = False
            self._list_below(self.root)
            changed = self._watch.changed() if self._watch is not None else set()
            self._sum_up()
        for path in sorted(changed or ()):
            if path in self._folders:
                self._list_again(path)
        if changed:
            self._sum_up()
        return self._seen

    def _sum_up(self) -> None:
        """Kept until something changes: most runs find ten thousand folders as they were."""
        self._seen = self._places()
        self._ordinary = frozenset(path for path, each in self._folders.items() if not each.is_whole)
        self._closed = [path for path, each in self._folders.items() if each.is_closed]

    def folders(self) -> frozenset[str]:
        """The ordinary folders at the last look."""
        return self._ordinary

    def closed_folders(self) -> list[str]:
        """The folders of which nobody could look at what they hold, at the last look."""
        return self._closed

    def marks_of(self, path: str) -> list[str] | None:
        """Of a folder that is guarded for what it holds, that; None for one that is guarded for another reason."""
        folder = self._folders.get(path)
        if folder is None or not (folder.is_whole or folder.is_closed):
            return None
        try:
            return [os.path.join(path, name) for name in os.listdir(path) if name.lower() in MARKS]
        except OSError:
            return []

    def close(self) -> None:
        self._stop_watching()
        self._folders.clear()
        self._looked_into.clear()
        self._stated = 0

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._watch = None

    def _changed(self) -> set[str] | None:
        """Folders to list again; None for all."""
        if not self._folders:
            return None
        if self._watch is not None:
            changed = self._watch.changed()
        else:
            known = self._folders.items()
            changed = {path for path, each in known if each.stamp is None or stamp_at(path) != each.stamp}
        if changed is not None:
            for path in self._looked_into:
                if any(stamp_at(each) != stamp for each, stamp in self._folders[path].stamps.items()):
                    changed.add(path)
        return changed

    def _list_below(self, top: str) -> None:
        pending = [top]
        while pending:
            path = pending.pop()
            if len(self._folders) >= self._most:
                self.is_cut = True
                return
            if self._watch is not None and not self._watch.add(path):
                self._stop_watching()
            pending += self._list(path).children
            if len(self._folders) == WATCHED_FROM and self._watch is None:
                self._watch = Watch.open()
                # What was listed before the kernel was asked is listed once more at the next look.
                if self._watch is not None and not all(self._watch.add(each, is_news=True) for each in self._folders):
                    self._stop_watching()

    def _list(self, path: str) -> _Folder:
        known = self._folders.get(path)
        folder = self._folders[path] = self._read_folder(path)
        self._stated += folder.stated - (known.stated if known else 0)
        (self._looked_into.add if folder.stamps else self._looked_into.discard)(path)
        return folder

    def _list_again(self, path: str) -> None:
        before = set(self._folders[path].children)
        after = set(self._list(path).children)
        for gone in before - after:
            self._forget(gone)
        for child in after - before:
            self._list_below(child)
        for child in after & before:  # another folder may have come to its place
            if self._watch is not None and not self._watch.is_same(child):
                self._forget(child)
                self._list_below(child)

    def _forget(self, top: str) -> None:
        pending = [top]
        while pending:
            path = pending.pop()
            folder = self._folders.pop(path, None)
            if folder is not None:
                self._stated -= folder.stated
                self._looked_into.discard(path)
                pending += folder.children
            if self._watch is not None:
                self._watch.forget(path)

    def _read_folder(self, path: str) -> _Folder:
        """A folder that cannot be listed is guarded itself: a script of the same user could open it."""
        began = time.time_ns()
        stamp = stamp_at(path)
        try:
            with os.scandir(path) as listing:
                entries = list(listing)
            os.lstat(os.path.join(path, os.curdir))  # names can be listed where nothing can be looked at
        except OSError:
            return _Folder(None, places=place_at(path) if path != self.root else (), is_closed=True)
        if stamp is not None and began - stamp[2] <= SETTLED_NANOSECONDS:
            stamp = None
        if path != self.root and self._is_guarded_whole(path, entries):
            places, stamps = find_places(path, self.root)
            return _Folder(stamp, (), tuple(places), stamps, is_whole=True)
        return self._take_apart(path, stamp, entries)

    def _take_apart(self, path: str, stamp: Stamp | None, entries: list[os.DirEntry[str]]) -> _Folder:
        places: list[Place] = []
        stamps: dict[str, Stamp | None] = {}
        guarded = {os.path.join(path, name) for name in self._guarded_in(path, entries)}
        for each in sorted(guarded):
            found, looked_at = find_places(each, self.root)
            places += found
            stamps |= looked_at
        for each in self._parts_of_environment(path, entries):
            found, looked_at = find_places(each, self.root)
            places += (place._replace(is_named=False) for place in found)
            stamps |= looked_at
            guarded.add(each)
        others = [entry for entry in entries if entry.path not in guarded and entry.path not in self.left_out]
        children = tuple(entry.path for entry in others if entry.is_dir(follow_symlinks=False))
        files = [entry for entry in others if entry.is_file(follow_symlinks=False)]
        files = files[: max(0, MOST_STATED_FILES - self._stated)]
        return _Folder(stamp, children, tuple(places), stamps, tuple(_shared(files)), len(files))

    def _is_guarded_whole(self, path: str, entries: list[os.DirEntry[str]]) -> bool:
        """A virtual environment, a skill below a folder of skills, a package that this program would load."""
        if len(os.fsencode(path)) > LONGEST_PATH:
            return True
        marks = MARKS.intersection(entry.name.lower() for entry in entries)
        if not marks or ENVIRONMENT_MARK in marks:
            return bool(marks)
        folder, name = os.path.split(path)
        if folder == self.root and name in self.importable and PACKAGE_MARK in marks:
            return True
        return SKILL_MARK in marks and SKILLS_FOLDER in path[len(self.root) :].lower().split(os.sep)

    def _guarded_in(self, path: str, entries: list[os.DirEntry[str]]) -> set[str]:
        names = {entry.name for entry in entries}
        guarded = {name for name in names if is_guarded_name(name)}
        guarded.update(entry.name for entry in entries if self._is_leading_astray(path, entry))
        guarded.update(guarded_inside(os.path.basename(path), names))
        guarded.update(of_repository(names))
        if path == self.root:
            guarded.update(name for name in names if name.lower() == ENVIRONMENT_MARK)
        if path == self.root and self.importable:
            parts = {name: name.partition(".") for name in names}
            guarded.update(
                name
                for name, (stem, _, ending) in parts.items()
                if stem in self.importable and ending.endswith(MODULE_ENDINGS)
            )
        return guarded

    def _parts_of_environment(self, path: str, entries: list[os.DirEntry[str]]) -> list[str]:
        """At the top of a project that is an environment itself, beside all that its scripts work on."""
        if path != self.root or not self._is_environment:
            return []
        return sorted(entry.path for entry in entries if entry.name.lower() in PARTS_OF_ENVIRONMENT)

    def _is_leading_astray(self, path: str, entry: os.DirEntry[str]) -> bool:
        """A link in the place of a folder that is obeyed for its name, or of a skill: what it leads to is, too."""
        if not entry.is_symlink():
            return False
        if is_obeyed_folder(entry.name):
            return True
        above = path[len(self.root) :].lower().split(os.sep)
        return SKILLS_FOLDER in above and INSTALLED_FOLDER not in above and not entry.is_file()

    def _places(self) -> tuple[Place, ...]:
        shared = self._shared_outside()
        is_too_much = len(shared) > MOST_SHARED_FILES
        self.has_unguarded_shares = is_too_much or self._stated >= MOST_STATED_FILES
        found = {place.path: place for place in (() if is_too_much else shared)}
        for folder in self._folders.values():
            for place in folder.places:
                if place.is_named or place.path not in found:
                    found[place.path] = place
        outer_first = sorted(found, key=lambda path: (path.count(os.sep), path))
        return tuple(found[path] for path in outer_first if not _is_below_another(path, found))

    def _shared_outside(self) -> list[Place]:
        """Files of which not every name is in this tree: a change here would be one elsewhere."""
        names: dict[tuple[int, int], list[tuple[Place, int]]] = {}
        for folder in self._folders.values():
            for place, count in folder.shared:
                names.setdefault((place.device, place.inode), []).append((place, count))
        return [place for found in names.values() if len(found) < found[0][1] for place, _ in found]


def _shared(files: list[os.DirEntry[str]]) -> Iterator[tuple[Place, int]]:
    for entry in files:
        try:
            seen = os.lstat(entry.path)
        except OSError:  # gone meanwhile
            continue
        if seen.st_nlink > 1:
            place = Place(entry.path, seen.st_dev, seen.st_ino, seen.st_mode, is_named=False, is_shared=True)
            yield place, seen.st_nlink


def _is_below_another(path: str, places: dict[str, Place]) -> bool:
    """What is named stays in sight below a folder that is guarded only because something leads there, even itself."""
    is_named = places[path].is_named
    above = os.path.dirname(path)
    while above != os.path.dirname(above):
        found = places.get(above)
        if found is not None and found.is_folder and (found.is_named or not is_named):
            return True
        above = os.path.dirname(above)
    return False
