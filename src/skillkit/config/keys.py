"""The text of a configuration file -> its values, each checked and with its line; every problem at once.

A project's file beside the user's -> an error for whatever it would loosen, unless the user trusts the project.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from skillkit.config.files import CONFIG_VARIABLE, PROJECT, Place
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.values.names import is_never_passed
from skillkit.core.values.policy import FIELDS, PATH_LISTS, PROFILES, Loosening, ScriptPolicy, loosenings
from skillkit.core.values.text import near_names

__all__ = [
    "KEYS",
    "ConfigFile",
    "KeyPath",
    "check_value",
    "config_file",
    "is_trusted",
    "leaves",
    "nearest_key",
    "parse",
    "refuse_loosening",
    "shorten_value",
    "toml_text",
]

KeyPath = tuple[str, ...]

FOLDER_KEYS = ("skills.paths", "skills.plugins")
VARIABLES_KEY = "policy.pass_environment"
HOSTS_KEY = "skills.host_folders"
TRUSTED_KEY = "projects.trusted"
AGE_KEY = "packages_min_age_days"
MOST_DAYS = 3650
PATH_KEYS = (*(f"policy.{name}" for name in PATH_LISTS), *FOLDER_KEYS, TRUSTED_KEY)
KEYS = ("profile", AGE_KEY, *(f"policy.{name}" for name in FIELDS), *FOLDER_KEYS, HOSTS_KEY, TRUSTED_KEY)
TABLES = frozenset(key.rpartition(".")[0] for key in KEYS) - {""}
PLACE_IN_TEXT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
# As systems take them; Windows has `ProgramFiles(x86)`.
NAME_OF_VARIABLE = re.compile(r"[A-Za-z_][\w.()-]*", re.ASCII)
# A hostile file must not flood whoever reads the error.
SHOWN_PROBLEMS = 10
SHOWN_CHARACTERS = 600
# A key stands on one line, and tomllib takes half a minute for one of thirty thousand words.
DOTS_IN_A_LINE = 100
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# What says where a statement ends: texts and comments, which may hold anything, brackets and line ends.
# Three quotes that a fourth follows are still inside a text: the last three of a row close it.
STATEMENT_PIECE = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?!")|' + r"'''.*?'''(?!')|" + r'"(?:[^"\\]|\\.)*"|' + r"'[^']*'|#[^\n]*|[][{}\n]",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """One file that was read: the settings it names, and where."""

    kind: str
    path: Path
    values: Mapping[str, Any]
    lines: Mapping[str, int]

    def place(self, key: str) -> Place:
        return Place(self.kind, self.path, self.lines[key])


def config_file(place: Place, text: str) -> ConfigFile:
    """Raises one error that names every problem, each with its line and what to do."""
    path = place.file
    assert path is not None  # noqa: S101 - a file's place has one
    data, lines = parse(place, text)
    values: dict[str, Any] = {}
    problems = []
    for key_path, value in leaves(data):
        where = Place(place.kind, path, lines[key_path])
        key = ".".join(key_path) if all(map(BARE_KEY.fullmatch, key_path)) else ""
        try:
            _require_setting(key_path, key, value, place.kind)
            values[key] = check_value(key, value, place)
        except ConfigurationError as error:
            problems.append(shorten_value(f"{where}: {error}"))
        if len(problems) == SHOWN_PROBLEMS:
            problems.append("Correct these first; more lines were not looked at.")
            break
    if problems:
        raise ConfigurationError("\n".join(problems))
    return ConfigFile(place.kind, path, values, {key: lines[tuple(key.split("."))] for key in values})


def parse(place: Place, text: str) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    import tomllib  # costs milliseconds, and most folders have no file to read

    _refuse_long_keys(place, text)
    try:
        return tomllib.loads(text), key_lines(text)
    except RecursionError as error:
        raise ConfigurationError(f"{place}: its lists are nested too deeply. Settings need one level.") from error
    except ValueError as error:
        found = PLACE_IN_TEXT.search(str(error))
        reason = PLACE_IN_TEXT.sub("", str(error))
        if found and found[1]:
            where = f"{place}:{found[1]}:{found[2]}"
        else:
            where = str(Place(place.kind, place.file, text.count("\n") + 1 if found else None))
        raise ConfigurationError(f"{where}: this is not TOML: {reason}. Correct it.") from error


def key_lines(text: str, depth: int = 3) -> dict[KeyPath, int]:
    """The line of the statement in which each key first stands; tomllib does not tell, so it reads one at a time here.

    No setting is deeper than three words. One key of thousands would otherwise fill the memory with its beginnings.
    """
    import tomllib

    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    named: KeyPath = ()
    for line, statement in _statements(text.replace("\r\n", "\n")):
        data = tomllib.loads(statement)
        is_heading = statement.lstrip(" \t").startswith("[")
        for path in _key_paths(data, () if is_heading else table, depth):
            lines.setdefault(path, line)
            named = path
        table = named if is_heading else table
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each line or group of lines that says one thing, with the number of its first one."""
    start, depth, line = 0, 0, 1
    for found in STATEMENT_PIECE.finditer(text + "\n"):
        depth += (found[0] in "[{") - (found[0] in "]}")
        if found[0] == "\n" and not depth:
            yield line, text[start : found.end()]
            line += text.count("\n", start, found.end())
            start = found.end()


def _key_paths(data: object, above: KeyPath, depth: int) -> Iterator[KeyPath]:
    """Every key of a statement, those that lead to others first; what stands in a list is not a key of ours."""
    if isinstance(data, dict) and len(above) < depth:
        for name, value in data.items():
            yield (*above, name)
            yield from _key_paths(value, (*above, name), depth)


def _refuse_long_keys(place: Place, text: str) -> None:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > DOTS_IN_A_LINE:
            where = Place(place.kind, place.file, number)
            raise ConfigurationError(f"{where}: more than {DOTS_IN_A_LINE} dots. Break the line into several.")


def leaves(
    table: Mapping[str, Any], tables: Collection[str] = TABLES, above: KeyPath = ()
) -> Iterator[tuple[KeyPath, Any]]:
    """Known tables are entered; anything else is somebody's setting, right or wrong."""
    for name, value in table.items():
        path = (*above, name)
        if isinstance(value, dict) and ".".join(path) in tables and "." not in name:
            yield from leaves(value, tables, path)
        else:
            yield path, value


def _require_setting(path: KeyPath, key: str, value: object, kind: str) -> None:
    name = shorten_value(".".join(part if BARE_KEY.fullmatch(part) else json.dumps(part) for part in path), 80)
    if key in TABLES:
        raise ConfigurationError(f"{name!r} is {toml_text(value)}; it must be a table: [{key}].")
    if key not in KEYS:
        raise ConfigurationError(f"{name!r} is no setting. {_nearest(name)}")
    if key == TRUSTED_KEY and kind == PROJECT:
        raise ConfigurationError(f"{key!r} may stand in the user's own file only: no project trusts itself.")


def nearest_key(name: str, keys: Collection[str], tables: Iterable[str] = ()) -> str | None:
    """Looks for the whole key, then for its last word: people forget which table a key is in."""
    table, _, last = name.rpartition(".")
    # One in the same table would be near as a whole.
    last_words = {key.rpartition(".")[2]: key for key in keys if not table or key.rpartition(".")[0] != table}
    if begun := [key for key in keys if key.startswith(f"{name}_")]:
        return begun[0]
    near = near_names(name, [*keys, *(table for table in tables if not name.startswith(f"{table}."))], alike=0.75)
    near = [each for each in near if near_names(last, [each.rpartition(".")[2]])]  # not by its table alone
    near = near or [last_words[each] for each in near_names(last, last_words)]
    return near[0] if near else None


def _nearest(name: str) -> str:
    table, _, last = name.rpartition(".")
    if table and last in KEYS:
        return f"{last!r} stands at the top level, above all tables."
    if near := nearest_key(name, KEYS, TABLES):
        return f"Did you mean {near!r}?"
    if table in TABLES:
        beside = [key.rpartition(".")[2] for key in KEYS if key.rpartition(".")[0] == table]
        return f"In [{table}] there are: {', '.join(beside)}."
    return f"There are 'profile' and the tables {', '.join(sorted(TABLES))}."


def _refuse_what_is_never_passed(key: str, names: list[object]) -> None:
    """Who writes such a name would believe that scripts get it."""
    for name in names:
        if isinstance(name, str) and not NAME_OF_VARIABLE.fullmatch(name):
            raise ConfigurationError(f"{key!r} has {toml_text(name)}, which is no name of a variable. Correct it.")
        if isinstance(name, str) and is_never_passed(name):
            raise ConfigurationError(
                f"{key!r} has {toml_text(name)}, which is never passed: it steers what a program loads, or opens a "
                "door of yours. Leave it out, or let the script take it under another name."
            )


def check_value(key: str, value: object, place: Place) -> Any:  # noqa: ANN401 - as different as settings are
    """The value as its reader wants it. The policy itself says what it can be."""
    if key == "profile":
        if not isinstance(value, str) or value not in PROFILES:
            raise ConfigurationError(f"{key!r} is {toml_text(value)}; it must be one of: {', '.join(PROFILES)}.")
        return value
    if key == AGE_KEY:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_DAYS:
            raise ConfigurationError(f"{key!r} is {toml_text(value)}; it must be a number of days up to {MOST_DAYS}.")
        return value
    if key == VARIABLES_KEY and isinstance(value, list):
        _refuse_what_is_never_passed(key, value)
    if key == HOSTS_KEY:
        if not isinstance(value, bool):
            raise ConfigurationError(f"{key!r} is {toml_text(value)}; it must be true or false.")
        return value
    if key in PATH_KEYS:
        return tuple(_checked_path(key, text, place) for text in _texts(key, value))
    try:
        return FIELDS[key.removeprefix("policy.")].read(repr(key), value)
    except ConfigurationError as error:
        told = str(error)
        raise ConfigurationError(told if told.startswith(repr(key)) else f"{key!r}: {told}") from None


def _texts(key: str, value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each and "\0" not in each for each in value):
        raise ConfigurationError(f"{key!r} is {toml_text(value)}; it must be a list of paths.")
    return value


def _checked_path(key: str, text: str, place: Place) -> Path:
    """`~` is the user's home; a relative path starts at the file's own folder."""
    assert place.file is not None  # noqa: S101 - a file's place has one
    path = Path(os.path.expanduser(text))
    if str(path).startswith("~"):
        raise ConfigurationError(f"{key!r} names {text!r}, and there is no such user. Write the folder's whole path.")
    if key == TRUSTED_KEY and not path.is_absolute():
        raise ConfigurationError(f"{key!r} names {text!r}; a project is named by its whole path.")
    path = place.file.parent / path
    # Links of a project are followed once, here: where they lead was compared, and later they may lead elsewhere.
    if place.kind == PROJECT or ".." in path.parts:
        path = Path(os.path.realpath(path))
    if key in FOLDER_KEYS and not os.path.isdir(path):
        raise ConfigurationError(
            f"{key!r} names {text!r}, and {path} is not a folder. Create it, correct it, or leave it out."
        )
    return path


def shorten_value(text: str, longest: int = SHOWN_CHARACTERS) -> str:
    """The remedy stands at the end, so what is left out is in the middle."""
    return text if len(text) <= longest else f"{text[: longest // 2]} ... {text[-longest // 3 :]}"


def toml_text(value: object) -> str:
    """As it stands in a TOML file."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_text, value))}]"
    if isinstance(value, str | Path):
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else repr(value)


def is_trusted(project_file: Path, user: ConfigFile | None) -> bool:
    """The very folder must be listed; one above it is not enough."""
    listed = user.values.get(TRUSTED_KEY, ()) if user else ()
    return os.path.realpath(project_file.parent) in map(os.path.realpath, listed)


def refuse_loosening(
    project: ConfigFile,
    user: ConfigFile | None,
    user_path: Path | None,
    *,
    own: ScriptPolicy,
    own_places: Mapping[str, object],
    given: ScriptPolicy,
) -> None:
    """A repository comes from anywhere: its word counts where it asks for less, never where it asks for more."""
    found = [*_policy_problems(project, own, own_places, given), *islice(_folder_problems(project), SHOWN_PROBLEMS)]
    found += [*_host_problems(project, user), *_age_problems(project, own_places)]
    if found:
        remedy = _trusting_remedy(project.path.parent, user, user_path)
        raise ConfigurationError("\n".join([*found, remedy]))


def _policy_problems(
    project: ConfigFile, own: ScriptPolicy, own_places: Mapping[str, object], given: ScriptPolicy
) -> Iterator[str]:
    for each in loosenings(own, given):
        ours, theirs = (shorten_value(toml_text(value)) for value in (each.own, each.given))
        yield (
            f"{_blamed(project, each)} {theirs}, but your settings ({own_places[each.key]}) say {ours}. "
            f"A project may only tighten: {each.reason}."
        )


def _blamed(project: ConfigFile, each: Loosening) -> str:
    """The line that does it: the field's own, or that of the profile."""
    if each.key in project.values:
        return f"{project.place(each.key)}: {each.key!r} is"
    return f"{project.place('profile')}: profile {project.values['profile']!r} makes {each.key!r}"


def _folder_problems(project: ConfigFile) -> Iterator[str]:
    """Skills of its own a project may bring; those elsewhere on the machine are not its to offer."""
    folder = os.path.realpath(project.path.parent)
    for key in FOLDER_KEYS:
        for path in project.values.get(key, ()):  # real paths, as everything that a project's file names
            if not path.is_relative_to(folder):
                name = shorten_value(toml_text(path))
                yield f"{project.place(key)}: {key!r} names {name}, which is outside the project's own folder."


def _host_problems(project: ConfigFile, user: ConfigFile | None) -> Iterator[str]:
    if project.values.get(HOSTS_KEY) and user is not None and user.values.get(HOSTS_KEY) is False:
        yield (
            f"{project.place(HOSTS_KEY)}: {HOSTS_KEY!r} is true, but your settings ({user.place(HOSTS_KEY)}) say false."
            " A project may only tighten: fewer folders are searched."
        )


def _age_problems(project: ConfigFile, own_places: Mapping[str, object]) -> Iterator[str]:
    own = getattr(own_places.get(AGE_KEY), "value", 0)
    if project.values.get(AGE_KEY, own) < own:
        yield (
            f"{project.place(AGE_KEY)}: {AGE_KEY!r} is {project.values[AGE_KEY]}, but your settings "
            f"({own_places[AGE_KEY]}) say {own}. A project may only tighten: releases have to be older."
        )


def _trusting_remedy(folder: Path, user: ConfigFile | None, user_path: Path | None) -> str:
    name = toml_text(os.path.realpath(folder))
    start = "Correct it, or, if you trust this project,"
    if user and TRUSTED_KEY in user.values:
        return f"{start} add {name} to {TRUSTED_KEY!r} in {user.place(TRUSTED_KEY)}"
    file = Place("user", user_path) if user_path else f"a file of yours that ${CONFIG_VARIABLE} names"
    return f"{start} write into {file}:\n\n  [projects]\n  trusted = [{name}]"
