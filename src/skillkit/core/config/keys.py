"""The text of a configuration file -> its values, each checked and with its line; every problem at once."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from skillkit.core.config.files import PROJECT, Place
from skillkit.core.config.lines import KeyPath, key_lines
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.policy import PATH_LISTS, PROFILES, Limits, ScriptPolicy

__all__ = ["KEYS", "ConfigFile", "config_file", "shortened", "written"]

POLICY_KEYS = tuple(f"policy.{each.name}" for each in fields(ScriptPolicy) if each.name != "limits")
LIMIT_KEYS = tuple(f"policy.limits.{each.name}" for each in fields(Limits))
PATH_KEYS = tuple(f"policy.{name}" for name in PATH_LISTS)
FOLDER_KEYS = ("skills.paths", "skills.plugins")
TRUSTED_KEY = "projects.trusted"
KEYS = ("profile", *POLICY_KEYS, *LIMIT_KEYS, *FOLDER_KEYS, TRUSTED_KEY)
TABLES = frozenset(key.rpartition(".")[0] for key in KEYS) - {""}
PLACE_IN_TEXT = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
# A hostile file must not flood whoever reads the error.
SHOWN_PROBLEMS = 10
SHOWN_CHARACTERS = 600
# A key stands on one line, and tomllib takes half a minute for one of thirty thousand words.
DOTS_IN_A_LINE = 100
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


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
    data, lines = parsed(place, text)
    values: dict[str, Any] = {}
    problems = []
    for key_path, value in leaves(data):
        where = Place(place.kind, path, lines[key_path])
        key = ".".join(key_path) if all(map(BARE_KEY.fullmatch, key_path)) else ""
        try:
            require_setting(key_path, key, value, place.kind)
            values[key] = checked(key, value, place)
        except ConfigurationError as error:
            problems.append(shortened(f"{where}: {error}"))
        if len(problems) == SHOWN_PROBLEMS:
            problems.append("Correct these first; more lines were not looked at.")
            break
    if problems:
        raise ConfigurationError("\n".join(problems))
    return ConfigFile(place.kind, path, values, {key: lines[tuple(key.split("."))] for key in values})


def parsed(place: Place, text: str) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    import tomllib  # costs milliseconds, and most folders have no file to read

    refuse_long_keys(place, text)
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


def refuse_long_keys(place: Place, text: str) -> None:
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


def require_setting(path: KeyPath, key: str, value: object, kind: str) -> None:
    name = shortened(".".join(part if BARE_KEY.fullmatch(part) else json.dumps(part) for part in path), 80)
    if key in TABLES:
        raise ConfigurationError(f"{name!r} is {written(value)}; it must be a table: [{key}].")
    if key not in KEYS:
        raise ConfigurationError(f"{name!r} is no setting. {nearest(name)}")
    if key == TRUSTED_KEY and kind == PROJECT:
        raise ConfigurationError(f"{key!r} may stand in the user's own file only: no project trusts itself.")


def nearest_key(name: str, keys: Collection[str], tables: Iterable[str] = ()) -> str | None:
    """Looks for the whole key, then for its last word: people forget which table a key is in."""
    import difflib

    last_words = {key.rpartition(".")[2]: key for key in keys}
    near = difflib.get_close_matches(name, [*keys, *tables], n=1, cutoff=0.75)
    near = near or [last_words[each] for each in difflib.get_close_matches(name.rpartition(".")[2], last_words, n=1)]
    return near[0] if near else None


def nearest(name: str) -> str:
    table = name.rpartition(".")[0]
    if near := nearest_key(name, KEYS, TABLES):
        return f"Did you mean {near!r}?"
    if table in TABLES:
        beside = [key.rpartition(".")[2] for key in KEYS if key.rpartition(".")[0] == table]
        return f"In [{table}] there are: {', '.join(beside)}."
    return f"There are 'profile' and the tables {', '.join(sorted(TABLES))}."


def checked(key: str, value: object, place: Place) -> Any:  # noqa: ANN401 - as different as settings are
    """The value as its reader wants it. The policy itself says what it can be."""
    name = key.rpartition(".")[2]
    if key == "profile":
        if not isinstance(value, str) or value not in PROFILES:
            raise ConfigurationError(f"{key!r} is {written(value)}; it must be one of: {', '.join(PROFILES)}.")
        return value
    if key in PATH_KEYS or key in FOLDER_KEYS or key == TRUSTED_KEY:
        return tuple(checked_path(key, text, place) for text in texts(key, value))
    try:
        checking = Limits if key in LIMIT_KEYS else ScriptPolicy
        return getattr(checking(**{name: value}), name)  # type: ignore[arg-type]  # that is what is checked
    except ConfigurationError as error:
        reason = str(error).removeprefix("limits.").removeprefix(f"{name} ")
        raise ConfigurationError(f"{key!r} {reason}" if reason.startswith("is ") else f"{key!r}: {reason}") from None


def texts(key: str, value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) and each and "\0" not in each for each in value):
        raise ConfigurationError(f"{key!r} is {written(value)}; it must be a list of paths.")
    return value


def checked_path(key: str, text: str, place: Place) -> Path:
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
    if key in FOLDER_KEYS and not path.is_dir():
        raise ConfigurationError(
            f"{key!r} names {text!r}, and {path} is not a folder. Create it, correct it, or leave it out."
        )
    return path


def shortened(text: str, longest: int = SHOWN_CHARACTERS) -> str:
    """The remedy stands at the end, so what is left out is in the middle."""
    return text if len(text) <= longest else f"{text[: longest // 2]} ... {text[-longest // 3 :]}"


def written(value: object) -> str:
    """As it stands in a TOML file."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(written, value))}]"
    if isinstance(value, str | Path):
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else repr(value)
