"""Files that list packages -> the packages: PEP 723 blocks, requirements, pyproject.toml, package.json."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from skillkit.core.find.needs.found import Facts
from skillkit.core.find.needs.installing import requirement_name
from skillkit.core.find.needs.texts import numbered
from skillkit.core.values.text import toml_of

__all__ = ["block_facts", "is_manifest", "manifest_facts", "script_block"]

REQUIREMENTS = re.compile(r"requirements(?:[-_.][\w-]{1,30})?\.(?:txt|in)")
DEVELOPMENT = re.compile(r"requirements[-_.](?:dev|test|tests|docs|lint)\.\w+")
LOCAL = ("file:", "link:", "workspace:", "portal:")
LISTED = 300


def is_manifest(name: str) -> bool:
    is_requirements = REQUIREMENTS.fullmatch(name) is not None and not DEVELOPMENT.fullmatch(name)
    return is_requirements or name in ("pyproject.toml", "package.json")


def manifest_facts(name: str, text: str) -> Facts:
    """By the file's name; what cannot be read lists nothing."""
    facts = Facts()
    if name == "package.json":
        for package, line in _of_package_json(text):
            facts.add_npm_package(package, line)
        return facts
    of_file = _of_pyproject(text) if name == "pyproject.toml" else _of_requirements(text)
    for written, line in of_file:
        if (package := requirement_name(written)) and package.lower() != "python":
            facts.add_package(package, line)
    return facts


def block_facts(text: str) -> Facts:
    """Of the comment block by which a script lists its own packages."""
    facts = Facts()
    toml, first = script_block(text)
    for written in _texts(_toml(toml).get("dependencies")):
        facts.add_package(requirement_name(written), _line_of(toml, written, first))
    return facts


def script_block(text: str) -> tuple[str, int]:
    """The TOML in the first PEP 723 block of a script and the line where it begins; nothing and 0 where there is none.

    The last closing line that its comment reaches ends it. Each line is looked at once, however many blocks only open.
    """
    lines = text.split("\n") if "# /// script" in text else []
    opened = closed = 0  # counted from 1
    for number, line in enumerate(lines, start=1):
        word = line.rstrip(" \t")
        if not opened:
            opened = number if word == "# /// script" else 0
        elif word == "# ///" and number > opened + 1:
            closed = number
        elif line != "#" and not line.startswith("# "):
            if closed:
                break
            opened = 0
    return ("\n".join(line[2:] for line in lines[opened : closed - 1]), opened + 1) if closed else ("", 0)


def _of_requirements(text: str) -> Iterator[tuple[str, int]]:
    for number, line in numbered(text):
        written = line.partition(" #")[0].strip()
        if written and not written.startswith(("#", "-")) and number <= LISTED * 10:
            yield written, number


def _of_pyproject(text: str) -> Iterator[tuple[str, int]]:
    content = _toml(text)
    for written in _texts(_inner(content, "project").get("dependencies")):
        yield written, _line_of(text, written)
    poetry = _inner(_inner(content, "tool"), "poetry").get("dependencies")
    for name in poetry if isinstance(poetry, Mapping) else ():
        yield name, _line_of(text, name)


def _of_package_json(text: str) -> Iterator[tuple[str, int]]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return
    listed = content.get("dependencies") if isinstance(content, dict) else None
    for name, version in list(listed.items())[:LISTED] if isinstance(listed, dict) else ():
        if not str(version).startswith(LOCAL):
            yield name, _line_of(text, f'"{name}"')


def _toml(text: str) -> Mapping[str, Any]:
    try:
        return toml_of(text)
    except ValueError:
        return {}


def _inner(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = table.get(name)
    return inner if isinstance(inner, Mapping) else {}


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)][:LISTED] if isinstance(value, list) else []


def _line_of(text: str, written: str, first: int = 1) -> int:
    at = text.find(written)
    return text.count("\n", 0, at) + first if at >= 0 else first
