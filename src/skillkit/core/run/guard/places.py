"""A guarded name -> the places that have to stay as they are with it: links on its way, and what it leads to."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from skillkit.core.paths import is_inside
from skillkit.core.run.guard.git_settings import named_by_git

__all__ = ["Place", "Stamp", "find_places", "place_at", "stamp_at"]

LINKS_LIMIT = 40  # along one way; the kernel follows no more either
FOLDERS_INSIDE = 400  # of one guarded folder that are looked through for links
REPOSITORY_DATA = frozenset(("objects", "lfs", "logs", "refs"))  # of .git, where nobody looks for links

Stamp = tuple[int, int, int]
"""Device, inode and time of change: the same as long as nothing came, went or changed its name there."""


class Place(NamedTuple):
    """Something that stays as it is, by what it was when it was seen; a link is guarded itself."""

    path: str
    device: int
    inode: int
    mode: int
    is_named: bool = True
    """Whether it is guarded for what it is, and not only because something guarded leads to it."""
    is_shared: bool = False
    """Whether it is guarded only because it has a further name outside."""

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def identity(self) -> tuple[str, int, int]:
        """What tells it from another that took its place."""
        return self.path, self.device, self.inode


def stamp_at(path: str) -> Stamp | None:
    """None where there is nothing."""
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    return seen.st_dev, seen.st_ino, seen.st_ctime_ns


def place_at(path: str) -> tuple[Place, ...]:
    """One, or none where there is nothing."""
    try:
        seen = os.lstat(path)
    except OSError:
        return ()
    return (Place(path, seen.st_dev, seen.st_ino, seen.st_mode),)


def find_places(path: str, root: str) -> tuple[list[Place], dict[str, Stamp | None]]:
    """What has to stay below `root` for `path` to stay, and the stamps of what was looked through to tell."""
    found: dict[str, Place] = {}
    stamps: dict[str, Stamp | None] = {}
    for place in _way_of(path, root, stamps):
        found[place.path] = place._replace(is_named=place.path == path)
        if not place.is_folder:
            continue
        for leading in (*_links_in(place.path, stamps), *_named_by_git(place.path, stamps)):
            for each in _way_of(leading, root, stamps):
                if not is_inside(each.path, place.path):
                    found.setdefault(each.path, each._replace(is_named=False))
    return list(found.values()), stamps


def _way_of(path: str, root: str, stamps: dict[str, Stamp | None]) -> Iterator[Place]:
    """`path`, or if it is a link every link that is passed and what it ends at, as far as they are inside `root`.

    Where it ends at nothing, that is noted in `stamps`: what a script makes there would be obeyed.
    """
    here, pending, links = os.sep, path.split(os.sep)[::-1], 0
    while pending:
        name = pending.pop()
        if name == os.pardir:
            here = os.path.dirname(here)
            continue
        place = os.path.join(here, name) if name not in ("", os.curdir) else here
        target = _target_of(place)
        if not target:
            here = place
            continue
        if is_inside(place, root):
            yield from place_at(place)
        links += 1
        if links > LINKS_LIMIT:
            return
        here = os.sep if os.path.isabs(target) else here
        pending += target.split(os.sep)[::-1]
    if is_inside(here, root) and here != root:
        found = place_at(here)
        if not found:
            stamps[here] = None
        yield from found


def _target_of(path: str) -> str:
    """Empty for what is no link."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _links_in(folder: str, stamps: dict[str, Stamp | None]) -> Iterator[str]:
    """Links in a guarded folder: what they lead to is obeyed as well."""
    pending = [folder]
    is_repository = os.path.basename(folder).lower() == ".git"
    while pending and len(stamps) < FOLDERS_INSIDE:
        path = pending.pop()
        stamps[path] = stamp_at(path)
        try:
            with os.scandir(path) as listing:
                entries = list(listing)
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink():
                yield entry.path
            elif entry.is_dir(follow_symlinks=False) and not (is_repository and entry.name in REPOSITORY_DATA):
                pending.append(entry.path)


def _named_by_git(folder: str, stamps: dict[str, Stamp | None]) -> Iterator[str]:
    """Hooks, filters and further settings that lie outside the repository's own folder."""
    found, looked_at = named_by_git(folder)
    stamps.update((path, stamp_at(path)) for path in looked_at)
    yield from found
