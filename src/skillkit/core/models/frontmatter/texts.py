"""What people wrote -> what they meant: text and tool rules of a field, entries of a block that YAML refuses."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import dataclass
from typing import TypeAlias

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Note", "Value", "as_written", "child_block", "entries", "quote", "split_tools", "text_of"]

ENTRY = re.compile(r"^([A-Za-z_][\w.\-]*(?: +[\w.\-]+)*)[ \t]*:(?=\s|$)")
CONFLICT_MARKER = re.compile(r"^(<{7}|={7}|>{7})( |$)")
BLOCK_INDICATOR = re.compile(r"^[|>][+-]?\d?\n")

Value: TypeAlias = str | list["Value"] | dict[str, "Value"] | None


@dataclass(frozen=True, slots=True)
class Note:
    """Something odd that reading got over: what it was, where, and how to write it properly."""

    code: str
    message: str
    line: int
    remedy: str


def text_of(value: Value) -> str:
    """One line of text for a field, even where something else than text was written."""
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(text_of(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {text_of(item)}" for key, item in value.items())
    return " ".join(value.split())


def split_tools(value: Value) -> tuple[str, ...]:
    """`allowed-tools` in any of its three forms; separators inside parentheses belong to the rule's scope."""
    if isinstance(value, list):
        return tuple(tool for item in value if (tool := text_of(item)))
    text = text_of(value)
    if "(" not in text:
        return tuple(rule for rule in text.replace(",", " ").split() if rule.strip("-"))
    rules, depth, word = list[str](), 0, ""
    for char in text:
        depth += (char == "(") - (char == ")" and depth > 0)
        if depth == 0 and char in ", ":
            rules.append(word)
            word = ""
        else:
            word += char
    rules.append(word)
    return tuple(rule for rule in rules if rule.strip("-"))


def quote(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def entries(block: str) -> Iterator[tuple[str, int, list[str]]]:
    """(key, line offset, lines) for each key at the margin, without tabs and merge conflict marks."""
    key, offset, lines = "", 0, list[str]()
    for number, line in enumerate(block.expandtabs(2).split("\n")):
        found = ENTRY.match(line)
        if found is not None:
            if key:
                yield key, offset, lines
            key, offset, lines = found[1], number, [line]
        elif key and not CONFLICT_MARKER.match(line):
            lines.append(line)
    if key:
        yield key, offset, lines


def child_block(entry: list[str]) -> str:
    """The indented lines below a bare `key:`, at the margin; empty when that is not what the entry is."""
    has_value = bool(entry[0].split(":", 1)[1].strip())
    children = [line for line in entry[1:] if line.strip()]
    if has_value or not children or not all(line.startswith(" ") for line in children):
        return ""
    margin_lines = textwrap.dedent("\n".join(entry[1:]))
    return margin_lines if any(ENTRY.match(line) for line in margin_lines.split("\n")) else ""


def as_written(key: str, entry: list[str]) -> str:
    """What stands after the key, continuation lines included, quotes and block marks removed."""
    first = entry[0].split(":", 1)[1].strip()
    value = first if key == "name" else "\n".join([first, *(line.strip() for line in entry[1:])]).strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = _unescaped(value)
    elif len(value) > 1 and value[0] == value[-1] == "'":
        value = value[1:-1].replace("''", "'")
    return BLOCK_INDICATOR.sub("", value).encode("utf-8", "replace").decode("utf-8")


def _unescaped(value: str) -> str:
    """JSON knows the surrogate pairs that YAML refuses in a double-quoted text."""
    try:
        return str(json.loads(value.replace("\n", " ")))
    except ValueError:
        return value[1:-1]
