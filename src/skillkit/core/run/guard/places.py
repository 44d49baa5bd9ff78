"""A guarded name -> the places that have to stay as they are with it: links on its way, and what it leads to."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from skillkit.core.paths import is_inside

__all__ = ["Place", "Stamp", "find_places", "place_at", "stamp_at"]

STEPS_LIMIT = 400  # along one way of links
FOLDERS_INSIDE = 400  # of one guarded folder that are looked through for links
CONFIG_BYTES = 1 << 18
REPOSITORY_DATA = frozenset(("objects", "lfs", "logs", "refs"))  # of .git, where nobody looks for links
# What git starts or reads by a path that its configuration names.
NAMED_BY_GIT = re.compile(
    r"^\s*(?:hooksPath|path|fsmonitor|sshCommand|askPass|editor|pager|textconv|clean|smudge|process|driver|command|cmd"
    r"|helper|program|attributesFile|excludesFile|templateDir|gitProxy|alternateRefsCommand)\s*=\s*(.+?)\s*$",
    re.IGNORECASE | re.MULTILINE,
)
WORKTREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)
CONFIGURED = 100  # submodules and worktrees of one repository whose configuration is read

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
    for place in _way_of(path, root):
        found[place.path] = place._replace(is_named=place.path == path)
        if not place.is_folder:
            continue
        for leading in (*_links_in(place.path, stamps), *_named_by_git(place.path, stamps)):
            for each in _way_of(leading, root):
                if not is_inside(each.path, place.path):
                    found.setdefault(each.path, each._replace(is_named=False))
    return list(found.values()), stamps


def _way_of(path: str, root: str) -> Iterator[Place]:
    """`path`, or if it is a link every link that is passed and what it ends at, as far as they are inside `root`."""
    here, pending = os.sep, path.split(os.sep)[::-1]
    for _ in range(STEPS_LIMIT):
        if not pending:
            break
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
        here = os.sep if os.path.isabs(target) else here
        pending += target.split(os.sep)[::-1]
    if is_inside(here, root) and here != root and not pending:
        yield from place_at(here)


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
    for config in _configurations(folder):
        text = _text_of(config, stamps)
        repository = os.path.dirname(config)
        starts = [os.path.dirname(folder), repository]
        starts += [os.path.join(repository, value.strip('"')) for value in WORKTREE.findall(text)]
        for value in NAMED_BY_GIT.findall(text):
            for word in {value.strip('"'), value.strip('"!').split(" ")[0]}:
                for start in starts:
                    path = os.path.join(start, os.path.expanduser(word))
                    if "\0" not in path and os.path.lexists(path):
                        yield os.path.normpath(path)


def _configurations(repository: str) -> Iterator[str]:
    """Of a repository, its worktrees and its submodules, however they are nested."""
    pending, left = [repository], CONFIGURED
    while pending and left:
        folder = pending.pop()
        names = set(_listed(folder))
        if "HEAD" not in names:
            if folder != repository:  # a submodule's name may have several parts
                pending += [os.path.join(folder, name) for name in names]
            continue
        left -= 1
        yield from (os.path.join(folder, name) for name in ("config", "config.worktree") if name in names)
        for inner in {"modules", "worktrees"} & names:
            pending += [os.path.join(folder, inner, name) for name in _listed(os.path.join(folder, inner))]


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _text_of(config: str, stamps: dict[str, Stamp | None]) -> str:
    stamps[config] = stamp_at(config)
    try:
        with open(config, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(CONFIG_BYTES)
    except OSError:
        return ""
