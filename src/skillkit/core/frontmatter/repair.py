"""A block that YAML refuses -> its top-level entries, and the text a person meant by each."""

from __future__ import annotations

import json
import re
import textwrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["as_written", "child_block", "entries", "quoted"]

ENTRY = re.compile(r"^([A-Za-z_][\w.\-]*(?: +[\w.\-]+)*)[ \t]*:(?=\s|$)")
CONFLICT_MARKER = re.compile(r"^(<{7}|={7}|>{7})( |$)")
BLOCK_INDICATOR = re.compile(r"^[|>][+-]?\d?\n")


def quoted(value: str) -> str:
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
        value = unescaped(value)
    elif len(value) > 1 and value[0] == value[-1] == "'":
        value = value[1:-1].replace("''", "'")
    return BLOCK_INDICATOR.sub("", value).encode("utf-8", "replace").decode("utf-8")


def unescaped(value: str) -> str:
    """JSON knows the surrogate pairs that YAML refuses in a double-quoted text."""
    try:
        return str(json.loads(value.replace("\n", " ")))
    except ValueError:
        return value[1:-1]
