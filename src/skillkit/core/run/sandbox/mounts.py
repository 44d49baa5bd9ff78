"""Walls -> the folders that stand inside them, in the order in which they have to be mounted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from skillkit.core.paths import is_inside
from skillkit.core.run.sandbox.base import Walls

__all__ = ["Mount", "Mounts", "mounts_for"]

OWN = ("/proc", "/dev", "/sys")  # inside the walls these are never the host's, whatever is granted
SHARED_MEMORY = "/dev/shm/"  # noqa: S108 - but files may be kept here


@dataclass(frozen=True, slots=True)
class Mount:
    """A path of the host and where it stands inside; no source means that an empty folder covers what is there."""

    source: str
    target: str
    writable: bool


@dataclass(frozen=True, slots=True)
class Mounts:
    """In order: a later one covers an earlier one."""

    grants: tuple[Mount, ...]
    """What was granted, outer folders first."""
    guards: tuple[Mount, ...]
    """Read-only on themselves, and the folders above them writable on themselves: a mount point cannot be renamed."""
    covers: tuple[Mount, ...]
    """The skill's copy, what is hidden, and the work folder."""

    @property
    def all(self) -> tuple[Mount, ...]:
        return (*self.grants, *self.guards, *self.covers)


def mounts_for(walls: Walls, *, system: tuple[str, ...], personal: tuple[str, ...]) -> Mounts:
    """`system` is there already, read-only; `personal` are the folders that hold users' files."""
    standing = dict.fromkeys(system, False)
    grants = _grants(walls, standing, personal)
    guards: list[Mount] = []
    for path in sorted(set(walls.protected) - {walls.skill, *walls.hidden}, key=_depth):
        root = _nearest(path, standing)
        if root is not None and standing[root]:
            guards += _pins(path, root, standing)
            guards.append(Mount(path, path, writable=False))
            standing[path] = False
    covers: list[Mount] = []
    for path in sorted({walls.skill, *walls.hidden}, key=_depth):
        root = _nearest(path, standing)
        if path != walls.skill and (root is None or not os.path.lexists(path)):
            continue
        if root is not None and standing[root]:
            covers += _pins(path, root, standing)
        covers.append(Mount(walls.snapshot or path if path == walls.skill else "", path, writable=False))
        standing[path] = False
    if walls.apart:
        covers.append(Mount(walls.snapshot or walls.skill, walls.apart, writable=False))
    covers.append(Mount(walls.work, walls.work, writable=True))
    return Mounts(tuple(grants), tuple(guards), tuple(covers))


def _grants(walls: Walls, standing: dict[str, bool], personal: tuple[str, ...]) -> list[Mount]:
    """What was granted, outer folders first, without what is there already; notes it in `standing`."""
    workspace = (walls.workspace,) if walls.workspace else ()
    everything = personal if walls.filesystem else ()
    asked = [(path, False) for path in _grantable((*walls.interpreter, *walls.readable), personal)]
    asked += [(path, True) for path in _grantable((*workspace, *walls.writable, *everything), personal)]
    kept = (*walls.protected, walls.skill)
    mounts = []
    for path, is_wanted_writable in sorted(asked, key=lambda each: (_depth(each[0]), not each[1])):
        writable = is_wanted_writable and not any(is_inside(path, each) for each in kept)
        root = _nearest(path, standing)
        if root is None or (writable and not standing[root]):
            mounts.append(Mount(path, path, writable))
            standing[path] = writable
    return mounts


def _grantable(paths: Iterable[str], personal: tuple[str, ...]) -> list[str]:
    """Instead of the whole tree, users' files: it would bring the host's sockets, processes and devices along."""
    spelled_out = (each for path in paths for each in (personal if path == "/" else (path,)))
    return [path for path in spelled_out if path.startswith(SHARED_MEMORY) or not _is_own(path)]


def _is_own(path: str) -> bool:
    return any(is_inside(path, each) for each in OWN)


def _pins(path: str, root: str, standing: dict[str, bool]) -> list[Mount]:
    """Mounts on every folder between: a mount point cannot be renamed, so `path` cannot be put aside with them."""
    pins = []
    folder = os.path.dirname(path)
    while folder != root and is_inside(folder, root):
        pins.append(Mount(folder, folder, writable=True))
        standing[folder] = True
        folder = os.path.dirname(folder)
    return pins[::-1]


def _nearest(path: str, standing: Mapping[str, bool]) -> str | None:
    """The innermost standing folder that holds `path`."""
    while path not in standing:
        above = os.path.dirname(path)
        if above == path:
            return None
        path = above
    return path


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path
