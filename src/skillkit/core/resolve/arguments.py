"""What one call passes -> bytes for stdin and words for the command line, and the real paths that they name.

Paths below skill and workspace are within reach already; of those beyond, some are never granted.
"""

from __future__ import annotations

import json
import os
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from skillkit.core.exceptions import ArgumentSerializationError, ArgumentSizeError
from skillkit.core.paths import PATH_LIMIT, is_inside, is_sayable, real_path
from skillkit.core.paths.forbidden import WORK_FOLDER_PREFIX, forbidden_paths
from skillkit.core.values.skills import Workspace
from skillkit.core.values.text import grouped

__all__ = [
    "ARGUMENTS_LIMIT_BYTES",
    "ArgumentPaths",
    "CallArguments",
    "ScriptInput",
    "Surroundings",
    "argument_paths",
    "leads_through",
    "parse_arguments",
    "read_input",
    "require_sayable",
    "stdin_bytes",
    "words",
]

ARGUMENTS_LIMIT_BYTES = 10_000_000
LOOKED_AT = 10_000  # texts
NAMED = 64  # paths; each costs a mount, and a person reads them
JSON_LIMIT_BYTES = 1_000_000
LINKS_LIMIT = 1_000  # steps along one path
JSON_STARTS = (b"{", b"[", b'"')
# Inside every process its own, and nobody's data.
HARMLESS = frozenset(f"/dev/{name}" for name in "null zero full random urandom stdin stdout stderr".split())
# What is there depends on the process that looks, so that looking it up here would say nothing.
PROCESS_BOUND = ("/proc", "/dev")


class CallArguments(NamedTuple):
    """What one call asks for, as the caller gave it."""

    script_name: str
    arguments: object = None
    argv: Sequence[str] = ()
    stdin: str | bytes | None = None
    timeout: float = 30
    output_limit: int = 10_000_000
    session_id: str | None = None
    workspace: Workspace | str | Path | None = None
    """As it was named before; a path is named by this call."""
    agent_facing: bool = False
    """Whether a model chose the arguments."""
    call_id: str = ""
    from_instructions: str = ""
    """Where the skill's text asks for this run, and nobody else: the digest of all commands it asks for together."""


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


class ScriptInput(NamedTuple):
    """What a call hands to its script."""

    words: tuple[str, ...]
    passed_on: dict[str, Any]
    """What the command takes from the call as it is, by the names of its fields."""


def read_input(call: CallArguments, surroundings: Surroundings) -> ScriptInput:
    argv = words(call.argv)
    stdin = stdin_bytes(call.arguments, call.stdin)
    arguments = parse_arguments(call.arguments, stdin)
    paths = argument_paths(arguments, argv, call.stdin, surroundings)
    passed_on = {
        "script_arguments": argv,
        "stdin": stdin,
        "arguments": arguments,
        "argument_paths": paths.paths,
        "closed_paths": paths.closed,
        "has_unread_arguments": paths.is_cut,
        **{name: getattr(call, name) for name in ("timeout", "output_limit", "session_id", "agent_facing", "call_id")},
    }
    return ScriptInput(argv, passed_on)


def stdin_bytes(arguments: object, stdin: str | bytes | None) -> bytes:
    """The arguments as JSON, or the given text as it is; nothing when there is neither."""
    if arguments is not None and stdin is not None:
        raise ArgumentSerializationError("A script gets 'arguments' or 'stdin', not both. Leave one out.")
    if stdin is not None:
        content = _text_bytes(stdin) if isinstance(stdin, str) else stdin
        if not isinstance(content, bytes):
            raise ArgumentSerializationError(f"'stdin' is {type(stdin).__name__}; give it as a text or as bytes.")
    elif arguments is None:
        return b""
    else:
        content = _json_bytes(arguments)
    if len(content) > ARGUMENTS_LIMIT_BYTES:
        raise ArgumentSizeError(
            f"The arguments have {grouped(len(content))} bytes; the limit is {grouped(ARGUMENTS_LIMIT_BYTES)}. "
            "Put large input into a file and pass its path.",
            size=len(content),
            limit=ARGUMENTS_LIMIT_BYTES,
        )
    return content


def parse_arguments(arguments: object, stdin: bytes) -> object:
    """The arguments as the script gets them: what the caller does with its own afterwards changes nothing here."""
    try:
        return None if arguments is None else json.loads(stdin, object_pairs_hook=_refuse_doubles)
    except (ValueError, RecursionError) as error:
        raise _unwritable(error) from error


def _refuse_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """As 1 and "1" become one name: of two values, a person would be shown one, and the script might take the other."""
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a name stands twice in one map")
    return content


def _json_bytes(arguments: object) -> bytes:
    try:
        return json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(arguments, allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise _unwritable(error) from error


def _unwritable(error: Exception) -> ArgumentSerializationError:
    return ArgumentSerializationError(
        f"The arguments cannot be written as JSON: {error}. Use text, numbers, lists and maps only."
    )


def _text_bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ArgumentSerializationError(
            f"The text holds half a character at {error.start}, which UTF-8 cannot say. Remove it or pass bytes."
        ) from error


def require_sayable(**names: str | os.PathLike[str] | None) -> None:
    """Names that a script is told, or is started with: the system must be able to take them."""
    for what, name in names.items():
        if name is not None and not is_sayable(name):
            raise ArgumentSerializationError(
                f"The {what.replace('_', ' ')} {str(name)!r} is too long, or holds a NUL or half a character, "
                "which no program can receive. Rename it."
            )


def words(argv: Iterable[str]) -> tuple[str, ...]:
    """Command-line arguments: texts without NUL, as they are; no shell sees them."""
    if argv == ():
        return ()
    if isinstance(argv, str | bytes) or not isinstance(argv, Iterable):
        raise ArgumentSerializationError("'argv' must be a list of texts, nothing else. Split a text into words.")
    given = tuple(argv)
    for number, word in enumerate(given, start=1):
        # A word may be a secret and errors are recorded: they say which one it is, not what it says.
        if not isinstance(word, str | Path):
            raise ArgumentSerializationError(
                f"Word {number} of 'argv' is {type(word).__name__} and not a text. Convert it first."
            )
        if b"\0" in _text_bytes(str(word)):
            raise ArgumentSerializationError(
                f"Word {number} of 'argv' holds a NUL, which no program can receive. Remove it."
            )
    return tuple(str(word) for word in given)


class _Texts:
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
    content, is_cut = _json_value(stdin)
    texts = _Texts([*words, arguments, content])
    named: dict[str, bool] = {}
    places = None
    for text in texts:
        for path in _existing_paths(text, starts):
            real = _real_of(path)
            if any(is_inside(real, folder) for folder in within_reach):
                continue
            if len(named) == NAMED and real not in named:
                return _found(named, is_cut=True)
            places = places or forbidden_paths(surroundings.state_folder)
            is_closed = places.covers(real) or leads_through(path, surroundings.made_by_scripts)
            named[real] = named.get(real, False) or is_closed
    return _found(named, is_cut=is_cut or texts.is_cut)


def _found(named: dict[str, bool], *, is_cut: bool) -> ArgumentPaths:
    closed = tuple(path for path, is_closed in named.items() if is_closed)
    return ArgumentPaths(tuple(named), closed, is_cut)


def _json_value(stdin: str | bytes | None) -> tuple[object, bool]:
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


def _existing_paths(text: str, folders: Sequence[str]) -> Iterator[str]:
    """Absolute paths that `text` may mean to a script that works in one of `folders`."""
    if not text or len(text) >= PATH_LIMIT or "\0" in text:
        return
    for spelling in dict.fromkeys(_spellings(text)):
        try:
            expanded = os.path.expanduser(spelling)
        except ValueError:  # half a character in the name of a user
            expanded = spelling
        for path in dict.fromkeys(os.path.join(folder, expanded) for folder in folders):
            if _normal(path) not in HARMLESS and os.path.exists(path):
                yield path


def _spellings(text: str) -> Iterator[str]:
    """`PATH`, `--file=PATH`, `-IPATH`, `@PATH` and `file://PATH`, alone or one in the other."""
    option = text[2:] if text.startswith("-") else ""
    for part in (text, text.partition("=")[2], text.rpartition("=")[2], option):
        for spelling in (part, part.removeprefix("@")):
            if spelling[:5].lower() == "file:":
                yield _path_of_url(spelling[5:])
            elif spelling:
                yield spelling


def _path_of_url(rest: str) -> str:
    """The path in `///a%20b`, `//localhost/a` or `/a`: what stands behind `file:`."""
    from urllib.parse import unquote

    path = rest.partition("#")[0].partition("?")[0]
    if path.startswith("//"):
        path = "/" + path[2:].partition("/")[2]
    return unquote(path)


def _normal(path: str) -> str:
    return os.sep + os.path.normpath(path).lstrip(os.sep)


def _real_of(path: str) -> str:
    """Where it leads; what belongs to a process is named as it is written."""
    plain = _normal(path)
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
            if _is_made_by_scripts(here, folders):
                return True
            try:
                target = os.readlink(place)
            except OSError:  # gone meanwhile
                target = ""
            here = os.sep if os.path.isabs(target) else here
            pending += target.split(os.sep)[::-1]
        elif name not in ("", os.curdir):
            here = place
    return True


def _is_made_by_scripts(folder: str, folders: Sequence[str]) -> bool:
    in_work_folder = any(name.startswith(WORK_FOLDER_PREFIX) for name in folder.split(os.sep))
    return in_work_folder or any(is_inside(folder, each) for each in folders)
