"""Fields of the frontmatter -> what a skill says it needs: `requires`, also of clients, and `compatibility`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from skillkit.core.find.needs.found import PROGRAM_NAME, Facts
from skillkit.core.find.needs.installing import requirement_name
from skillkit.core.find.needs.packages import is_known_program
from skillkit.core.find.needs.texts import note_hosts
from skillkit.core.values.names import is_secret_name
from skillkit.core.values.policy import INTERPRETERS

__all__ = ["declared_facts"]

NAMES = 100  # of one field
JSON_LIMIT = 20_000
PROGRAMS = ("bins", "anyBins", "any_bins", "binaries", "commands", "cli", "tools", "system", "programs")
VARIABLES = ("env", "envs", "environment", "env_vars", "environment_variables", "secrets", "api_keys")
PACKAGES = ("packages", "pip", "python", "python_packages", "dependencies", "pypi")
NPM_PACKAGES = ("npm", "node_packages", "node")
HOSTS = ("hosts", "network", "domains")
VERSIONED = re.compile(r"[A-Za-z0-9][\w.-]{0,99}(?:\[[^\]]{0,100}\])?[ ]{0,4}[<>=!~]=?.{0,100}")
UPPER = re.compile(r"\b[A-Z][A-Z0-9]{1,30}(?:_[A-Z0-9]{1,30}){1,6}\b")
WORDS = re.compile(r"[A-Za-z][\w.+-]{1,40}")
QUOTED = re.compile(r"`([^`\n]{1,60})`")
SPACED_LIST = re.compile(r"[,;\n]+")
TOOLCHAIN = frozenset(("python", "python3", "node", "nodejs", "npm", "bash"))


def declared_facts(fields: Mapping[str, Any], text: str) -> Facts:
    """`text` is the frontmatter as written, which tells the line of each name."""
    facts = Facts()
    lines = _Lines(text)
    for table in _tables(fields):
        _note_requires(facts, table.get("requires"), lines)
        for name in _names(table.get("primaryEnv")):
            facts.add_variable(name, lines.of(name))
        for step in _list(table.get("install")):
            for name in _names(step.get("bins")) if isinstance(step, Mapping) else ():
                facts.add_program(name, lines.of(name))
    for key in ("dependencies", "python_packages"):
        for name in _names(fields.get(key)):
            if VERSIONED.fullmatch(name):
                _note_package(facts, name, lines)
    _note_compatibility(facts, fields.get("compatibility"), lines)
    return facts


def _tables(fields: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The frontmatter itself, its metadata, and what clients keep in that; some write it as JSON in a text."""
    yield fields
    metadata = _mapping(fields.get("metadata"))
    yield metadata
    for value in list(metadata.values())[:NAMES]:
        yield _mapping(value)


def _mapping(value: object) -> Mapping[str, Any]:
    if isinstance(value, str) and value.lstrip().startswith("{") and len(value) < JSON_LIMIT:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return value[:NAMES] if isinstance(value, list) else []


def _names(value: object) -> list[str]:
    """Of a text, a list of texts, a list of maps with a name, or a map by name."""
    if isinstance(value, str):
        return [part.strip() for part in SPACED_LIST.split(value[:JSON_LIMIT])][:NAMES]
    if isinstance(value, Mapping):
        return [str(each) for each in value][:NAMES]
    named = (each.get("name", "") if isinstance(each, Mapping) else each for each in _list(value))
    return [each for each in named if isinstance(each, str)]


def _note_requires(facts: Facts, requires: object, lines: _Lines) -> None:
    table = _mapping(requires)
    for name in (name for key in PROGRAMS for name in _names(table.get(key))):
        facts.add_program(name, lines.of(name))
    for name in (name for key in VARIABLES for name in _names(table.get(key))):
        facts.add_variable(name.partition("=")[0].strip(), lines.of(name))
    for name in (name for key in PACKAGES for name in _names(table.get(key))):
        _note_package(facts, name, lines)
    for name in (name for key in NPM_PACKAGES for name in _names(table.get(key))):
        facts.add_npm_package(re.sub(r"(?<=.)@[^/]*$", "", name), lines.of(name))
    for name in (name for key in HOSTS for name in _names(table.get(key))):
        note_hosts(facts, name if "://" in name else f"https://{name}", lines.of(name))
    for name in () if table else _names(requires):
        _note_any(facts, name, lines)


def _note_any(facts: Facts, name: str, lines: _Lines) -> None:
    """A name in a plain list: a key, a versioned package or a known program; other words may mean anything."""
    if UPPER.fullmatch(name):
        facts.add_variable(name, lines.of(name))
    elif VERSIONED.fullmatch(name):
        _note_package(facts, name, lines)
    elif is_known_program(name):
        facts.add_program(name, lines.of(name))


def _note_package(facts: Facts, written: str, lines: _Lines) -> None:
    if (name := requirement_name(written)) and name.lower() not in TOOLCHAIN and written[:1] not in "<>=":
        facts.add_package(name, lines.of(written))


def _note_compatibility(facts: Facts, value: object, lines: _Lines) -> None:
    """It is prose; only what cannot mean anything else counts: names of keys, and programs that are known."""
    text = value[:1_000] if isinstance(value, str) else ""
    for match in UPPER.finditer(text):
        if is_secret_name(match[0]):
            facts.add_variable(match[0], lines.of(match[0]))
    quoted = {match[1] for match in QUOTED.finditer(text) if PROGRAM_NAME.fullmatch(match[1])}
    for match in WORDS.finditer(text):
        name = match[0].rstrip(".")
        is_meant = name in quoted or name not in ORDINARY_WORDS
        # What runs the scripts goes without saying.
        if is_meant and is_known_program(name) and name not in INTERPRETERS:
            facts.add_program(name, lines.of(name))


# Programs whose names are words of English.
ORDINARY_WORDS = frozenset("make convert expect parallel tree dot file go bat fd identify montage".split())


class _Lines:
    """Where in the frontmatter a name stands."""

    def __init__(self, text: str) -> None:
        self.text = text

    def of(self, name: str) -> int:
        at = self.text.find(name) if name else -1
        return self.text.count("\n", 0, at) + 1 if at >= 0 else 1
