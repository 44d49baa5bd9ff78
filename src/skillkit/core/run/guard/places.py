"""What has to stay as it is in a folder that scripts may write: guarded places, and what they lead to.

A guarded name can be a link, hold links, or be a repository whose settings name hooks and filters elsewhere: whoever
could change those would change what is obeyed. A script may have written all of it, so nothing here follows a link of
folders blindly or takes more than one pass over a text.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import NamedTuple

from skillkit.core.paths import is_inside

__all__ = ["Place", "Stamp", "find_places", "place_at", "stamp_at"]

LINKS_LIMIT = 40  # along one way; the kernel follows no more either
FOLDERS_INSIDE = 400  # of one guarded folder that are looked through for links
REPOSITORY_DATA = frozenset(("objects", "lfs", "logs", "refs"))  # of .git, where nobody looks for links
CONFIG_BYTES = 1 << 18
CONFIGURED = 100  # files of one repository, its submodules, its worktrees and what they include
LOOKED_INTO = 1_000  # folders in which those are looked for
# What git starts or reads by a path.
KEYS = frozenset(
    """
    hookspath path fsmonitor sshcommand askpass editor pager textconv clean smudge process driver command cmd helper
    program attributesfile excludesfile templatedir gitproxy alternaterefscommand external difffilter uploadpack
    receivepack vcs defaultkeycommand recentobjectshook packobjectshook tocmd cccmd sendmailcmd smtpserver update
    """.split()
)
# Of these, what the others leave to the search path: a bare name is a path here.
PATH_KEYS = frozenset(("hookspath", "path", "attributesfile", "excludesfile", "templatedir"))
INCLUDED, WORKTREE = "path", "worktree"

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
        links = list(_links_in(place.path, stamps))
        named, read = _named_by_git(place.path)
        stamps.update((each, stamp_at(each)) for each in read)
        for leading in (*links, *named):
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
        try:
            target = os.readlink(place)
        except OSError:  # not a link
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


def _named_by_git(repository: str) -> tuple[list[str], list[str]]:
    """Hooks, filters and further settings that git takes from elsewhere, there or not; and the files that tell so."""
    waiting = list(_configurations(repository))[::-1]
    above = os.path.dirname(repository)
    named: dict[str, None] = {}
    read: dict[str, None] = {}
    while waiting and len(read) < CONFIGURED:
        config = waiting.pop()
        if config in read:
            continue
        read[config] = None
        settings = list(_settings(config))
        own = os.path.dirname(config)
        starts = [above, own, *(os.path.join(own, value) for key, value in settings if key == WORKTREE)]
        for key, value in settings:
            if key in KEYS:
                named.update((path, None) for path in _paths(value, starts, is_path=key in PATH_KEYS))
            if key == INCLUDED:
                waiting += [path for path in _paths(value, [own], is_path=True) if os.path.isfile(path)]
    return list(named), list(read)


def _paths(value: str, starts: list[str], *, is_path: bool) -> Iterator[str]:
    """Of a path, or of a command that begins with one."""
    for word in {value, value.lstrip("!").split(" ")[0]} - {""}:
        for start in starts:
            path = os.path.normpath(os.path.join(start, os.path.expanduser(word)))
            if "\0" not in path and (is_path or os.sep in word or os.path.lexists(path)):
                yield path


def _settings(config: str) -> Iterator[tuple[str, str]]:
    """Keys in small letters, without their sections, and values; only of a plain file: a pipe would be waited for."""
    if not os.path.isfile(config):
        return
    try:
        with open(config, encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(CONFIG_BYTES)
    except OSError:
        return
    for line in text.replace("\\\n", "").split("\n"):
        words = line.strip()
        if words.startswith("["):
            words = words.partition('"]' if '"]' in words else "]")[2]
        key, sign, value = words.partition("=")
        if sign:
            yield key.strip().lower(), _plain(value)


def _plain(value: str) -> str:
    """Without quotes, and without what follows as a comment."""
    plain: list[str] = []
    is_quoted = is_escaped = False
    for character in value.strip():
        if is_escaped or character not in '"\\#;' or (is_quoted and character in "#;"):
            plain.append(character)
            is_escaped = False
        elif character == "\\":
            is_escaped = True
        elif character == '"':
            is_quoted = not is_quoted
        else:
            break
    return "".join(plain).strip()


def _configurations(repository: str) -> Iterator[str]:
    """Of a repository, its worktrees and its submodules, however they are nested."""
    pending, left = [repository], LOOKED_INTO
    while pending and left:
        folder = pending.pop()
        left -= 1
        names = _names_in(folder)
        if "HEAD" not in names:
            if folder != repository:  # a submodule's name may have several parts
                pending += _folders(folder, names)
            continue
        yield from (os.path.join(folder, name) for name in ("config", "config.worktree") if name in names)
        for inner in _folders(folder, {"modules", "worktrees"} & names):
            pending += _folders(inner, _names_in(inner))


def _folders(folder: str, names: set[str]) -> list[str]:
    paths = [os.path.join(folder, name) for name in sorted(names)]
    return [path for path in paths if os.path.isdir(path) and not os.path.islink(path)]


def _names_in(folder: str) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()
