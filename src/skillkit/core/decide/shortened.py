"""The diffs of several files -> as much of them as a person is shown: what is new first, then what is gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

__all__ = ["BRIEF", "WHOLE", "Room", "Short", "shortened"]

ADDED, REMOVED, SAME, HEADING = "+", "-", " ", "@"
WORDS = {ADDED: "added", REMOVED: "removed", SAME: "unchanged"}


@dataclass(frozen=True, slots=True)
class Room:
    """How much is shown."""

    files: int
    file_lines: int
    file_characters: int
    all_characters: int
    all_lines: int
    added_characters: int
    """Of one line that is new."""
    other_characters: int
    """Of any other line."""
    compared_bytes: int = 1_000_000
    """Of one file; a larger one is only named."""
    all_compared_bytes: int = 10_000_000


BRIEF = Room(200, 1000, 64_000, 256_000, 20_000, added_characters=2000, other_characters=500)
NO_END = 1 << 62
WHOLE = Room(NO_END, NO_END, NO_END, NO_END, NO_END, NO_END, NO_END, 50_000_000, NO_END)


@dataclass(frozen=True, slots=True)
class Short:
    """What is shown of one file's diff."""

    text: str
    unseen: int
    """Added lines that are not shown, or not to their end."""


@dataclass(slots=True)
class Draft:
    """One diff while it is decided what of it is kept."""

    lines: Sequence[str]
    kept: dict[int, str] = field(default_factory=dict)
    size: int = 0
    unseen: int = 0

    def keep(self, number: int, text: str, heading: int | None) -> None:
        """With the heading it stands under."""
        for at, line in ((heading, self.lines[heading] if heading is not None else ""), (number, text)):
            if at is not None and at not in self.kept:
                self.kept[at] = line
                self.size += len(line) + 1


def shortened(diffs: Iterable[Sequence[str]], room: Room) -> list[Short]:
    """No line that is gone and no line that stayed takes the place of one that is new, in whichever file."""
    drafts = [Draft(lines) for lines in diffs]
    characters, lines = room.all_characters, room.all_lines
    for kind in (ADDED, REMOVED, SAME):
        for draft in drafts:
            size, count = draft.size, len(draft.kept)
            _fill(draft, kind, room, min(room.file_characters, size + characters), min(room.file_lines, count + lines))
            characters, lines = characters - draft.size + size, lines - len(draft.kept) + count
    return [Short("\n".join(_written(draft)), draft.unseen) for draft in drafts]


def _fill(draft: Draft, kind: str, room: Room, characters: int, lines: int) -> None:
    """Keeps the lines of one kind, in order, while they fit."""
    heading: int | None = None
    limit = room.added_characters if kind == ADDED else room.other_characters
    is_full = False
    for number, line in enumerate(draft.lines):
        if line.startswith(HEADING):
            heading = number
        elif _kind(line) == kind:
            text = _cut(line, limit)
            is_full = is_full or len(draft.kept) >= lines or draft.size + len(text) + 1 > characters
            if not is_full:
                draft.keep(number, text, heading)
            if kind == ADDED and (is_full or text is not line):
                draft.unseen += 1


def _kind(line: str) -> str:
    """What is no line of a diff is our own word about it, and shown like what is new."""
    return line[:1] if line[:1] in (REMOVED, SAME) else ADDED


def _cut(line: str, limit: int) -> str:
    return line if len(line) <= limit else f"{line[:limit]}... ({len(line):,} characters)"


def _written(draft: Draft) -> Iterator[str]:
    """In order; in the place of what is left out stands how much it is."""
    missing: Counter[str] = Counter()
    for number, line in enumerate(draft.lines):
        if number not in draft.kept:
            missing[_kind(line)] += not line.startswith(HEADING)
            continue
        if missing.total():
            yield _told(missing)
            missing.clear()
        yield draft.kept[number]
    if missing.total():
        yield _told(missing)


def _told(missing: Counter[str]) -> str:
    counted = [f"{missing[kind]:,} {word}" for kind, word in WORDS.items() if missing[kind]]
    return f"... {' and '.join(counted)} line{'' if missing.total() == 1 else 's'} not shown"
