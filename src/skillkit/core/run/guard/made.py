"""What is guarded in a folder after a run, and what was before it -> what a script made there and has to be moved."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from skillkit.core.paths import is_inside
from skillkit.core.run.guard.places import Place
from skillkit.core.run.guard.tree import Tree

__all__ = ["Before", "before_of", "is_made_meanwhile", "made_places", "moved_before"]

CLOCK_SECONDS = 0.1  # by which the file system's clock may be behind


class Before(NamedTuple):
    """One folder when a run began."""

    known: frozenset[tuple[str, int, int]]
    """What was guarded, by identity."""
    kept: frozenset[str]
    """Of that, what the walls kept whoever replaced it meanwhile: it was not the script."""
    began: float
    until: float = math.inf
    """When the script was dead at the latest."""
    folders: frozenset[str] | None = None
    """The ordinary folders, where they are known."""


def before_of(places: Iterable[Place], folders: frozenset[str], now: float, *, has_mounts: bool) -> Before:
    """A mount ends when somebody outside replaces what it is on, and then the script can write what came there."""
    known = list(places)
    kept = frozenset(() if has_mounts else (place.path for place in known))
    return Before(frozenset(place.identity for place in known), kept, now - CLOCK_SECONDS, folders=folders)


def moved_before(before: Before, root: str, now: str) -> Before:
    """The same of a folder that is called otherwise by now."""
    if root == now:
        return before
    start = len(root)
    return before._replace(
        known=frozenset((now + path[start:], device, inode) for path, device, inode in before.known),
        kept=frozenset(now + path[start:] for path in before.kept),
        folders=None if before.folders is None else frozenset(now + path[start:] for path in before.folders),
    )


def is_made_meanwhile(place: Place, root: str, before: Before) -> bool:
    """Whether a run that goes on in `root` may have made it since it began."""
    if place.path == root or not is_inside(place.path, root) or place.identity in before.known:
        return False
    is_below_known = any(is_inside(place.path, each) and place.path != each for each, _, _ in before.known)
    return not is_below_known and place.path not in before.kept and _changed_at(place.path) >= before.began


def made_places(seen: Sequence[Place], before: Before, tree: Tree, own: str) -> list[str]:
    """What to move now; there may be more when that is gone. Never what is `own`.

    First what is guarded for itself: what it led to is nobody's then. What is left over was made where something
    that was there before leads: links first, since they may lead to what a person has.
    """
    new = [each for each in seen if each.identity not in before.known and each.path not in before.kept]
    new = [each for each in new if not is_inside(own, each.path) and _changed_at(each.path) <= before.until]
    if named := [path for each in new if each.is_named for path in _parts(each, before, tree)]:
        return named
    led_to = [each for each in new if not each.is_named and not each.is_shared and not is_inside(each.path, own)]
    made = [each for each in led_to if not _was_there(each, before) and _changed_at(each.path) >= before.began]
    links = [each.path for each in made if each.is_link]
    return links or [each.path for each in made]


def _was_there(place: Place, before: Before) -> bool:
    return before.folders is not None and place.path in before.folders


def _parts(place: Place, before: Before, tree: Tree) -> list[str]:
    """The place; of a folder that was there before, or may have been, only what makes it guarded."""
    is_new = before.folders is not None and place.path not in before.folders
    marks = None if is_new else tree.marks_of(place.path)
    return [place.path] if marks is None else marks


def _changed_at(path: str) -> float:
    """Nothing was changed that is gone meanwhile."""
    try:
        return os.lstat(path).st_ctime
    except OSError:
        return 0.0
