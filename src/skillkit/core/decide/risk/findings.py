"""What was seen in one file, and how much of it is shown: a few of each kind, and how many more there are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from skillkit.core.questions import RiskFlag

__all__ = [
    "KINDS",
    "Finding",
    "Seen",
    "Snippet",
    "flags_of_file",
    "flags_of_skill",
    "numbered",
    "shown",
    "shown_path",
]

KINDS = ("obfuscation", "hidden_text", "credentials", "outside_write", "delete", "network", "process")
SHOWN_CHARACTERS = 60
PER_FILE = 3
"""Flags of one kind in one file: who is shown forty reads none."""
PER_SKILL = 12
LOOKED_AT = 2_000  # matches of one pattern in one text


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing in one file; line 0 speaks of the file as a whole."""

    kind: str
    message: str
    line: int


@dataclass(frozen=True, slots=True)
class Snippet:
    """Code of another language inside a file: a command in a program, a program in a command."""

    language: str
    text: str
    line: int


Seen = Finding | Snippet


@dataclass(frozen=True, slots=True)
class Counted:
    """A flag that is shown, and how many of its kind stand behind it."""

    flag: RiskFlag
    more: int = 0


def shown(text: str, limit: int = SHOWN_CHARACTERS) -> str:
    """On one line, cut, every character that cannot be seen written as its number."""
    start = " ".join(text[: 4 * limit].split())
    cut = start[:limit] + "..." if len(start) > limit or len(text) > 4 * limit else start
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in cut)


def numbered(pattern: re.Pattern[str], text: str, line: int = 1) -> Iterator[tuple[int, re.Match[str]]]:
    """The first matches, each with its line; lines are counted from one match to the next, so no text is read twice."""
    counted = 0
    for match in islice(pattern.finditer(text), LOOKED_AT):
        line += text.count("\n", counted, match.start())
        counted = match.start()
        yield line, match


def flags_of_file(path: str, findings: Iterable[Finding]) -> list[Counted]:
    """By line; of one kind the first few different ones, the last of which counts the rest."""
    by_kind: dict[str, list[Finding]] = {}
    for finding in sorted(set(findings), key=lambda each: (each.line, KINDS.index(each.kind), each.message)):
        by_kind.setdefault(finding.kind, []).append(finding)
    counted = []
    for found in by_kind.values():
        distinct = list({each.message: each for each in reversed(found)}.values())[::-1][:PER_FILE]
        flags = [RiskFlag(each.kind, _ended(each.message), shown_path(path), each.line) for each in distinct]
        counted += [Counted(flag) for flag in flags[:-1]]
        counted.append(Counted(flags[-1], len(found) - len(flags)))
    return sorted(counted, key=lambda each: (each.flag.line, KINDS.index(each.flag.kind), each.flag.message))


def _ended(message: str) -> str:
    """What was cut ends the sentence itself."""
    return message.replace("....", "...")


def shown_path(path: str) -> str:
    """A name that is no text is written so that it can be kept and shown."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def flags_of_skill(files: Iterable[list[Counted]]) -> tuple[RiskFlag, ...]:
    """In the given order; no kind is crowded out by another, and none is shown more often than a person reads."""
    kept: list[Counted] = []
    count: dict[str, int] = {}
    behind: dict[str, int] = {}
    for each in (each for found in files for each in found):
        kind = each.flag.kind
        count[kind] = count.get(kind, 0) + 1
        if count[kind] <= PER_SKILL:
            kept.append(each)
        else:
            behind[kind] = behind.get(kind, 0) + 1 + each.more
    return tuple(_written(kept, behind))


def _written(kept: list[Counted], behind: dict[str, int]) -> Iterator[RiskFlag]:
    last = {each.flag.kind: number for number, each in enumerate(kept)}
    for number, each in enumerate(kept):
        elsewhere = behind.get(each.flag.kind, 0) if last[each.flag.kind] == number else 0
        more = [f"{each.more:,} more here"] if each.more else []
        more += [f"{elsewhere:,} more in other files"] if elsewhere else []
        yield replace(each.flag, message=f"{each.flag.message} (and {', '.join(more)})") if more else each.flag
