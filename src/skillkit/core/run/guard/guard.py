"""The folders that a run may write -> what stays as it is in them, and after the run what was made there, moved away.

Theory of operation. A script that may write a folder must not leave anything in it that is obeyed later, outside all
walls: settings of agents and editors, hooks of git, shell start files, modules that this program would load.

1. Before a run every writable folder is looked through (`tree`) for what is guarded: by its name, or because something
   guarded leads there (`places`). The walls make that read-only. Walls that cannot do so for single files deep in a
   folder (Landlock) let them be changed; a copy of them is kept.
2. What does not exist cannot be made read-only, and nothing is laid into the user's folder to stand for it. So after
   the run there is a second look: what is guarded now and was not before, the script has made. It goes into the state
   folder, what was changed is put back from its copy (`restore`), and the caller is told.
3. A journal on disk (`restore`) lets the next run do this for one whose program was killed. It also tells what another
   run has made that still goes on: that is guarded, but not taken for the user's.

Everything is compared by identity (device and inode) and time of change, never by name alone: while a run goes on,
others may replace, move or rename what it works in.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from skillkit.core.paths import Judged, is_inside, judge, judge_opened, open_place, real_path, require_own_folder
from skillkit.core.paths.guarded_names import ENVIRONMENT_MARK
from skillkit.core.run.guard.places import Place, find_places, place_at
from skillkit.core.run.guard.restore import (
    ASIDE,
    Before,
    Journal,
    Keepsake,
    SetAside,
    keepsakes_of,
    open_below,
    put_back,
    set_aside,
)
from skillkit.core.run.guard.tree import Tree

__all__ = ["MOST_PLACES", "NOTHING_GUARDED", "Guard", "Guarded", "importable_names", "own_folders"]

MOST_PLACES = 1_000
SHARED = "files that have a further name outside change there too (hard links)"
KEPT_TREES = 8
CLOCK_SECONDS = 0.1  # by which the file system's clock may be behind
PACKAGE = os.path.abspath(__file__).rsplit(os.sep, 4)[0]

run_log = logging.getLogger("skillkit.run")


class _Look(NamedTuple):
    """One folder before a run."""

    tree: Tree
    before: Before
    entry: tuple[str, int]
    """In the journal."""
    held: int
    """A descriptor of the folder: another script may have given it another name meanwhile."""


class Guarded(NamedTuple):
    """What stays as it is during one run."""

    places: tuple[Place, ...] = ()
    notes: tuple[str, ...] = ()
    """What cannot be kept, a sentence each."""
    too_much: str = ""
    """The folder with more than can be guarded."""
    around: tuple[str, ...] = ()
    """Protected paths that hold a whole writable folder, which is then read-only."""
    looks: tuple[_Look, ...] = ()
    recovered: tuple[SetAside, ...] = ()
    """What an earlier run made whose program was killed."""
    keepsakes: tuple[Keepsake, ...] = ()
    """Of `places`, those that are put back after the run instead of being read-only in it."""


NOTHING_GUARDED = Guarded()


class Guard:
    """Of one world and one set of protected paths; keeps what it saw, so that the next look costs little."""

    def __init__(self, state_folder: Path, protected: Sequence[Path] = ()) -> None:
        self._state_folder = state_folder
        self._protected = tuple(protected)
        self._journal = Journal(state_folder)
        self._trees: dict[str, Tree] = {}
        self._lock = threading.Lock()

    def begin(
        self, roots: Iterable[str], timeout: float, *, has_mounts: bool = True, opened: Sequence[str] = ()
    ) -> Guarded:
        """What is guarded in these folders now, but for what a person `opened`; `end` has to follow in any case.

        Walls that have no mounts keep whole folders, and what lies at the top, by rule; for files further below
        they would have to close the folders around them, so those are put back afterwards.
        """
        inside = tuple(dict.fromkeys(root for root in roots if os.path.isdir(root) and root not in opened))
        if not inside:
            return NOTHING_GUARDED
        if os.path.lexists(aside := self._state_folder / ASIDE):  # before anything is moved there
            require_own_folder(aside)
        with self._lock:
            recovered = self._recover()
            looks: list[tuple[_Look, tuple[Place, ...]]] = []
            try:
                looks.extend(self._look(root, timeout, opened, has_mounts=has_mounts) for root in inside)
            except BaseException:
                for look, _ in looks:
                    self._let_go(look)
                raise
        places = {place.path: place for _, found in looks for place in found}
        notes = (SHARED,) if any(look.tree.has_unguarded_shares for look, _ in looks) else ()
        crowded = [look.tree.root for look, found in looks if look.tree.is_cut or len(found) > MOST_PLACES]
        return Guarded(
            places=tuple(places[path] for path in sorted(places, key=lambda path: (path.count(os.sep), path))),
            notes=notes,
            too_much=crowded[0] if crowded else "",
            around=tuple(each for each in self._protected_paths() if any(is_inside(root, each) for root in inside)),
            looks=tuple(look for look, _ in looks),
            recovered=recovered,
            keepsakes=() if has_mounts else tuple(each for look, _ in looks for each in _put_back_alone(look)),
        )

    def end(self, guarded: Guarded) -> tuple[SetAside, ...]:
        """What the run made under guarded names, moved away."""
        moved = list(guarded.recovered)
        for look in guarded.looks:
            with suppress(OSError):
                moved += self._look_after(look)
            self._let_go(look)
        return tuple(moved)

    def _let_go(self, look: _Look) -> None:
        os.close(look.held)
        self._journal.end(look.entry)

    def _look_after(self, look: _Look) -> list[SetAside]:
        """Where the folder is now, and never in what took its place."""
        now = judge_opened(look.held, look.tree.root)
        if not _is_same(look.before.root) and judge(now.path) != now:
            return []
        before = look.before.moved(look.tree.root, now)
        moved = put_back(now.path, before.keepsakes, self._state_folder)
        with self._lock:
            tree = look.tree if now.path == look.tree.root else Tree(now.path, left_out=self._kept_in(now.path))
            try:
                _open_up(tree.root, [tree.root])
                return moved + self._move_made(tree, before)
            finally:
                if self._trees.get(tree.root) is not tree:
                    tree.close()

    def _move_made(self, tree: Tree, before: Before) -> list[SetAside]:
        """Looked for again after each move: what hid in a guarded place can be guarded for a reason of its own."""
        moved: list[SetAside] = []
        own, tried = real_path(self._state_folder), set[str]()
        while True:
            seen = self._seen(tree, is_after_run=True)
            closed = [path for path in tree.closed_folders() if path not in tried and not _was_closed(path, before)]
            paths = [path for path in _made_places(seen, before, tree, own) if path not in tried]
            tried.update((*closed, *paths))
            if not _open_up(tree.root, closed) and not paths:
                return moved
            moved += set_aside(tree.root, paths, self._state_folder)

    def close(self) -> None:
        with self._lock:
            for tree in self._trees.values():
                tree.close()
            self._trees.clear()

    def _look(
        self, root: str, timeout: float, opened: Sequence[str], *, has_mounts: bool
    ) -> tuple[_Look, tuple[Place, ...]]:
        """What another run made that goes on is guarded as well, and yet not known: it is to be moved away."""
        tree = self._tree(root)
        began = time.time() - CLOCK_SECONDS
        tree.take_for_environment(self._is_environment(root))
        places = self._seen(tree)
        others = self._journal.going_on()  # after the look, which may take long: who began meanwhile is among them
        known = [place for place in places if not any(_is_made_meanwhile(place, each) for each in others)]
        closed = [place for place in known if not any(is_inside(place.path, each) for each in opened)]
        keepsakes = self._keepsakes(() if has_mounts else closed, root, others, opened)
        held = open_place(root)
        try:
            before = Before(
                judge_opened(held, root),
                frozenset(place.identity for place in known),
                # A mount ends when somebody outside replaces what it is on, and then the script can write what came.
                kept=frozenset(
                    (*(() if has_mounts else (each.path for each in known)), *(each.path for each in keepsakes))
                ),
                began=began,
                keepsakes=keepsakes,
                folders=tree.folders(),
                obscured=frozenset({place.path for place in places if place.is_named} - {each.path for each in known}),
            )
            guarded = tuple(each for each in places if not any(is_inside(each.path, path) for path in opened))
            return _Look(tree, before, self._journal.begin(before, timeout), held), guarded
        except BaseException:
            os.close(held)
            raise

    def _is_environment(self, root: str) -> bool:
        """By a mark that was there before any script that still runs."""
        return any(
            not any(_is_made_meanwhile(mark, run) for run in self._journal.going_on())
            for mark in place_at(os.path.join(root, ENVIRONMENT_MARK))
        )

    def _keepsakes(
        self, places: Sequence[Place], root: str, others: Sequence[Before], opened: Sequence[str]
    ) -> tuple[Keepsake, ...]:
        """What another run keeps that goes on is what a person has: by now its script may have changed the file."""
        kept = {each.path: each for each in keepsakes_of(places, root)}
        later = self._journal.going_on() if kept else ()  # who began while they were read
        for run in sorted((*others, *later), key=lambda run: run.began, reverse=True):  # the first has the last word
            kept |= {each.path: each for each in run.keepsakes if is_inside(each.path, root)}
        return tuple(each for path, each in kept.items() if not any(is_inside(path, other) for other in opened))

    def _seen(self, tree: Tree, *, is_after_run: bool = False) -> tuple[Place, ...]:
        """What the tree has, and of the paths that are protected wherever they lie those that lie in it."""
        own = [place for path in self._kept_in(tree.root) for place in find_places(path, tree.root)[0]]
        return (*(place._replace(is_named=False) for place in own), *tree.look(is_after_run=is_after_run))

    def _tree(self, root: str) -> Tree:
        kept = self._kept_in(root)
        is_searched = any(is_inside(root, each) for each in own_folders())
        importable = importable_names() if is_searched else frozenset()
        known = self._trees.get(root)
        if known is not None and known.left_out == frozenset(kept) and bool(known.importable) == bool(importable):
            return known
        if known is not None:
            known.close()
        while len(self._trees) >= KEPT_TREES:
            self._trees.pop(next(iter(self._trees))).close()
        self._trees[root] = Tree(root, left_out=kept, importable=importable)
        return self._trees[root]

    def everywhere(self) -> tuple[str, ...]:
        """What is protected wherever it lies, as real paths."""
        return tuple(dict.fromkeys((*own_folders(), *self._protected_paths())))

    def _protected_paths(self) -> list[str]:
        """As they are named, and where they lead."""
        return [each for path in self._protected for each in (os.path.normpath(path), real_path(path))]

    def _kept_in(self, root: str) -> tuple[str, ...]:
        named = (*own_folders(), *self._protected_paths(), real_path(self._state_folder))
        return tuple(dict.fromkeys(each for each in named if each != root and is_inside(each, root)))

    def _recover(self) -> tuple[SetAside, ...]:
        """For runs whose programs were killed. What came after their scripts can have lived is somebody else's."""
        moved: list[SetAside] = []
        for entry in self._journal.take_abandoned():
            with suppress(OSError):
                if not _is_same(entry.root):
                    continue
                changed = [each for each in entry.keepsakes if _changed_at(each.path) <= entry.until]
                moved += put_back(entry.root.path, changed, self._state_folder)
                moved += self._move_made(self._tree(entry.root.path), entry)
        return tuple(moved)


def _put_back_alone(look: _Look) -> Iterable[Keepsake]:
    """Without what lies at the top: the walls keep that, though another run may have a copy of it."""
    return (each for each in look.before.keepsakes if os.path.dirname(each.path) != look.tree.root)


def _open_up(root: str, folders: Iterable[str]) -> bool:
    """Open to their owner again what a script closed: names in it could be used by whoever knows them."""
    closed = [path for path in folders if not os.access(path, os.R_OK | os.W_OK | os.X_OK)]
    for path in closed:
        with suppress(OSError), open_below(root, path) as folder:
            folder.allow_all()
    return bool(closed)


def _was_closed(path: str, before: Before) -> bool:
    """By a person, who wants it so: it was guarded during the run."""
    return path in before.kept or any(place.identity in before.known for place in place_at(path))


def _is_same(root: Judged) -> bool:
    """Another script may have put another folder there, in which everything would look new."""
    if judge(root.path) == root:
        return True
    run_log.warning("%s was replaced during a run; nothing was moved out of what is there now", root.path)
    return False


def _changed_at(path: str) -> float:
    """Nothing was changed that is gone meanwhile."""
    try:
        return os.lstat(path).st_ctime
    except OSError:
        return 0.0


def _is_made_meanwhile(place: Place, run: Before) -> bool:
    """Whether a run that goes on may have made it since it began."""
    if place.path == run.root.path or not is_inside(place.path, run.root.path) or place.identity in run.known:
        return False
    is_below_known = any(is_inside(place.path, each) and place.path != each for each, _, _ in run.known)
    return not is_below_known and place.path not in run.kept and _changed_at(place.path) >= run.began


def _made_places(seen: Sequence[Place], before: Before, tree: Tree, own: str) -> list[str]:
    """What to move now; there may be more when that is gone. Never what is `own`.

    First what is guarded for itself: what it led to is nobody's then. What is left over was made where something
    that was there before leads: links first, since they may lead to what a person has.
    """
    new = [each for each in seen if each.identity not in before.known and each.path not in before.kept]
    new = [each for each in new if not is_inside(own, each.path) and _changed_at(each.path) <= before.until]
    if named := [path for each in new if each.is_named for path in _parts(each, before, tree)]:
        return named
    led_to = [each for each in new if not each.is_named and not each.is_shared and not is_inside(each.path, own)]
    strange = [each for each in led_to if before.folders is None or each.path not in before.folders]
    made = [each for each in strange if _changed_at(each.path) >= before.began]
    return [each.path for each in made if each.is_link] or [each.path for each in made]


def _parts(place: Place, before: Before, tree: Tree) -> list[str]:
    """The place; of a folder that was there before, or may have been, only what makes it guarded."""
    marks = tree.marks_of(place.path) if before.may_have_held(place.path) else None
    return [place.path] if marks is None else marks


def own_folders() -> tuple[str, ...]:
    """What this program runs from: whoever changes it changes what is done next, outside all walls.

    skillkit, its interpreter and environment, and every folder from which programs or modules are taken.
    """
    path = os.environ.get("PATH", "")
    return _own_folders(path, tuple(sys.path), os.environ.get("VIRTUAL_ENV", ""))


@lru_cache(maxsize=4)
def _own_folders(programs: str, modules: tuple[str, ...], environment: str) -> tuple[str, ...]:
    named = (
        PACKAGE,
        *(sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, environment),
        os.path.dirname(sys.executable or ""),
        *(each for each in programs.split(os.pathsep) if os.path.isabs(each)),
        *(os.path.abspath(each) for each in modules),
    )
    absolute = [each for each in named if os.path.isabs(each)]
    return tuple(dict.fromkeys(each for path in absolute for each in (os.path.normpath(path), real_path(path))))


def importable_names() -> frozenset[str]:
    """Names of modules that this program has or may still load, wherever it finds them first."""
    return frozenset(sys.stdlib_module_names) | {name.partition(".")[0] for name in tuple(sys.modules)}
