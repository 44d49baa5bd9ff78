"""Text of a language without a reader of its own -> what it reaches for, by patterns that pass over comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from skillkit.core.decide.risk.findings import Finding, Seen, Snippet, numbered, shown
from skillkit.core.decide.risk.pattern_tables import TABLES, Row
from skillkit.core.decide.risk.sensitive import (
    host_in,
    is_secret_name,
    outside_place,
    secret_variable,
    sensitive_findings,
)

__all__ = ["LANGUAGES", "pattern_seen", "without_comments"]

LANGUAGES = frozenset(TABLES)
HASH_COMMENTS = frozenset(("ruby", "perl", "powershell", "unparsed python"))
LINE_LIMIT = 2_000  # characters after a match in which its host or its command is looked for
# How a block that stands on lines of its own begins and ends.
BLOCKS = {
    "ruby": (re.compile(r"=begin\b"), re.compile(r"^=end\b")),
    "perl": (re.compile(r"=(?:pod|head\d|over|item|begin|encoding)\b"), re.compile(r"^=cut\b")),
    "powershell": (re.compile(r"\s{0,40}<#"), re.compile(r"#>")),
}
QUOTES = re.compile(r"[\"'`]")
# A whole argument, not the end of one that is put together, and nothing that only looks like a path.
PATH = re.compile(r"""[(,\s][\"'`](?!/[/*])([^\s\"'`*<>|\n]{2,300})[\"'`]""")
LITERAL = re.compile(r"""["'`]([^"'`\n]{1,600})["'`]""")


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of a table, with its pattern made."""

    row: Row
    pattern: re.Pattern[str]


@cache
def rules_for(language: str) -> tuple[Rule, ...]:
    flags = re.MULTILINE | (re.IGNORECASE if language == "powershell" else 0)
    return tuple(Rule(row, re.compile(row.pattern, flags)) for row in TABLES[language])


def pattern_seen(text: str, language: str, line: int = 1) -> Iterator[Seen]:
    code = without_comments(text, language)
    yield from sensitive_findings(code, line)
    lowered = code.lower() if language == "powershell" else code
    for rule in rules_for(language):
        if any(needle in lowered for needle in rule.row.needles):
            for number, match in numbered(rule.pattern, code, line):
                yield from _of_match(rule.row, match, code, number)


def _of_match(row: Row, match: re.Match[str], code: str, line: int) -> Iterator[Seen]:
    end = code.find("\n", match.end(), match.end() + LINE_LIMIT)
    rest = code[match.start() : end if end >= 0 else match.end() + LINE_LIMIT]
    name = shown((match[row.group] or match[0]).rstrip("( \t"))
    if row.test == "secret":
        if is_secret_name(name):
            yield secret_variable(name, line)
        return
    if row.test == "outside":
        place = next((found for found in map(outside_place, PATH.findall(rest)) if found), "")
        if place:
            yield Finding(row.kind, f"Writes outside its folder: {place}.", line)
        return
    host = host_in(rest) if row.kind == "network" else ""
    yield Finding(row.kind, f"{row.sentence.format(name)}{f': {host}' if host else ''}.", line)
    if row.kind == "process":
        yield from (Snippet("shell", command, line) for command in LITERAL.findall(rest)[:3] if " " in command)


def without_comments(text: str, language: str) -> str:
    """The same lines, comments empty. Only what is one for certain goes: code taken for a comment would be hidden."""
    lines = text.split("\n")
    if language in BLOCKS:
        _empty_blocks(lines, *BLOCKS[language])
    sign = "#" if language in HASH_COMMENTS else "//"
    if sign == "//":
        _empty_starred(lines)
    return "\n".join(_without_line_comment(line, sign) if sign in line else line for line in lines)


def _empty_blocks(lines: list[str], begin: re.Pattern[str], end: re.Pattern[str]) -> None:
    """A block without its end is none: it would hide the rest of the file."""
    last = max((number for number, line in enumerate(lines) if end.search(line)), default=-1)
    is_inside = False
    for number in range(last + 1):
        line = lines[number]
        is_inside = is_inside or bool(begin.match(line))
        ending = end.search(line) if is_inside else None
        if is_inside:
            lines[number] = line[ending.end() :] if ending else ""
        is_inside = is_inside and not ending


def _empty_starred(lines: list[str]) -> None:
    """`/* ... */` whose every line starts with a star; others might be part of a text that holds a star."""
    is_inside = False
    for number, line in enumerate(lines):
        start = line.lstrip()
        is_inside = start.startswith("/*") or (is_inside and start.startswith("*"))
        if is_inside:
            _, end, after = line.partition("*/")
            lines[number], is_inside = after, not end


def _without_line_comment(line: str, sign: str) -> str:
    """A sign after a quote may be part of a text, and one in a word part of an address or a pattern."""
    if line.lstrip().startswith(sign):
        return ""
    at = line.find(f" {sign} ")
    return line[:at] if at >= 0 and not QUOTES.search(line, 0, at) else line
