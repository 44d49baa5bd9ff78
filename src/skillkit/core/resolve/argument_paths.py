"""The arguments of a call -> the real paths they name beyond skill and workspace, and which of these stay closed."""

from __future__ import annotations

import json
import os
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from skillkit.core.closed_places import WORK_FOLDER_PREFIX, closed_places
from skillkit.core.paths import PATH_LIMIT, is_inside, real_path

__all__ = ["ArgumentPaths", "Surroundings", "argument_paths", "leads_through"]

LOOKED_AT = 10_000  # texts
NAMED = 64  # paths; each costs a mount, and a person reads them
JSON_LIMIT_BYTES = 1_000_000
LINKS_LIMIT = 1_000  # steps along one path
JSON_STARTS = (b"{", b"[", b'"')
# Inside every process its own, and nobody's data.
HARMLESS = frozenset(f"/dev/{name}" for name in "null zero full random urandom stdin stdout stderr".split())
# What is there depends on the process that looks, so that looking it up here would say nothing.
PROCESS_BOUND = ("/proc", "/dev")


class Surroundings(NamedTuple):
    """Where a script runs; all real paths but `writable`."""

    skill: Path
    workspace: Path | None
    cwd: Path
    writable: tuple[Path, ...] = ()
    """What policy lets scripts write."""
    state_folder: Path | None = None

    @property
    def within_reach(self) -> tuple[str, ...]:
        return tuple(str(folder) for folder in (self.skill, self.workspace) if folder is not None)

    @property
    def starts(self) -> tuple[str, ...]:
        """Folders that a relative path may start from."""
        return tuple(dict.fromkeys((str(self.cwd), *self.within_reach)))

    @property
    def made_by_scripts(self) -> tuple[str, ...]:
        return (*self.within_reach, *map(real_path, self.writable))


@dataclass(frozen=True, slots=True)
class ArgumentPaths:
    """Real paths in the order in which they are named."""

    paths: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    """Those of `paths` that are never granted."""
    is_cut: bool = False
    """Whether there was more than was looked at."""


class Texts:
    """Every text in some values, keys included, up to a limit; `is_cut` says afterwards whether there was more."""

    def __init__(self, values: Sequence[object]) -> None:
        self.pending = list(reversed(values))
        self.is_cut = False

    def __iter__(self) -> Iterator[str]:
        for _ in range(LOOKED_AT):
            if not self.pending:
                return
            value = self.pending.pop()
            if isinstance(value, str):
                yield value
            elif isinstance(value, dict):
                self.pending += [*value.values(), *value]
            elif isinstance(value, list | tuple):
                self.pending += value
        self.is_cut = bool(self.pending)


def argument_paths(
    arguments: object, words: Sequence[str], stdin: str | bytes | None, surroundings: Surroundings
) -> ArgumentPaths:
    """A path below skill or workspace is within reach already and is left out, unless a link leads away from there."""
    if arguments is None and not words and not stdin:
        return ArgumentPaths()
    starts, within_reach = surroundings.starts, surroundings.within_reach
    content, is_cut = json_value(stdin)
    texts = Texts([*words, arguments, content])
    named: dict[str, bool] = {}
    places = None
    for text in texts:
        for path in existing_paths(text, starts):
            real = real_of(path)
            if any(is_inside(real, folder) for folder in within_reach):
                continue
            if len(named) == NAMED and real not in named:
                return ArgumentPaths(tuple(named), closed_of(named), is_cut=True)
            places = places or closed_places(surroundings.state_folder)
            is_closed = places.hold(real) or leads_through(path, surroundings.made_by_scripts)
            named[real] = named.get(real, False) or is_closed
    return ArgumentPaths(tuple(named), closed_of(named), is_cut or texts.is_cut)


def closed_of(named: dict[str, bool]) -> tuple[str, ...]:
    return tuple(path for path, is_closed in named.items() if is_closed)


def json_value(stdin: str | bytes | None) -> tuple[object, bool]:
    """What a text for stdin says if it is JSON, and whether it was too much to look at."""
    if not stdin:
        return None, False
    content = stdin.encode("utf-8", "surrogatepass") if isinstance(stdin, str) else stdin
    if not content.removeprefix(BOM_UTF8).lstrip().startswith(JSON_STARTS):
        return None, False
    if len(content) > JSON_LIMIT_BYTES:
        return None, True
    try:
        return json.loads(content), False
    except RecursionError:
        return None, True
    except ValueError:
        return None, False


def existing_paths(text: str, folders: Sequence[str]) -> Iterator[str]:
    """Absolute paths that `text` may mean to a script that works in one of `folders`."""
    if not text or len(text) >= PATH_LIMIT or "\0" in text:
        return
    for spelling in dict.fromkeys(spellings(text)):
        expanded = expanded_home(spelling)
        for path in dict.fromkeys(os.path.join(folder, expanded) for folder in folders):
            if normal(path) not in HARMLESS and os.path.exists(path):
                yield path


def spellings(text: str) -> Iterator[str]:
    """`PATH`, `--file=PATH`, `-IPATH`, `@PATH` and `file://PATH`, alone or one in the other."""
    option = text[2:] if text.startswith("-") else ""
    for part in (text, text.partition("=")[2], text.rpartition("=")[2], option):
        for spelling in (part, part.removeprefix("@")):
            if spelling[:5].lower() == "file:":
                yield path_of_url(spelling[5:])
            elif spelling:
                yield spelling


def expanded_home(spelling: str) -> str:
    try:
        return os.path.expanduser(spelling)
    except ValueError:  # half a character in the name of a user
        return spelling


def path_of_url(rest: str) -> str:
    """The path in `///a%20b`, `//localhost/a` or `/a`: what stands behind `file:`."""
    from urllib.parse import unquote

    path = rest.partition("#")[0].partition("?")[0]
    if path.startswith("//"):
        path = "/" + path[2:].partition("/")[2]
    return unquote(path)


def normal(path: str) -> str:
    return os.sep + os.path.normpath(path).lstrip(os.sep)


def real_of(path: str) -> str:
    """Where it leads; what belongs to a process is named as it is written."""
    plain = normal(path)
    return plain if any(is_inside(plain, each) for each in PROCESS_BOUND) else real_path(path)


def leads_through(path: str, folders: Sequence[str]) -> bool:
    """Whether a link on the way lies where scripts, or who wrote them, could have put it: that one opens nothing."""
    here, pending = os.sep, path.split(os.sep)[::-1]
    for _ in range(LINKS_LIMIT):
        if not pending:
            return False
        name = pending.pop()
        place = os.path.join(here, name)
        if name == os.pardir:
            here = os.path.dirname(here)
        elif os.path.islink(place):
            if is_made_by_scripts(here, folders):
                return True
            target = link_target(place)
            here = os.sep if os.path.isabs(target) else here
            pending += target.split(os.sep)[::-1]
        elif name not in ("", os.curdir):
            here = place
    return True


def link_target(place: str) -> str:
    try:
        return os.readlink(place)
    except OSError:  # gone meanwhile
        return ""


def is_made_by_scripts(folder: str, folders: Sequence[str]) -> bool:
    in_work_folder = any(name.startswith(WORK_FOLDER_PREFIX) for name in folder.split(os.sep))
    return in_work_folder or any(is_inside(folder, each) for each in folders)
