"""Two lists of lines -> how they differ, and as much of it as a person is shown.

Theory of operation. The exact comparison takes a time that grows faster than the product of both sides, so what is too
large for it is divided first: at the lines that stand once on both sides, in the same order; where there are none,
into blocks. So large and hostile files cannot stretch the time. Of the diffs of several files, what is new is
shown first, then what is gone: no other line takes the place of one that is new, in whichever file.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["BRIEF", "WHOLE", "Room", "Short", "groups_of", "shorten"]

CONTEXT = 3
COMPARED_LINES = 250_000
BLOCK = 64  # lines of each side that are compared exactly where nothing tells what belongs together
BLOCKED_LINES = 100_000  # where nothing tells what belongs together, more are taken as replaced
ROUNDS = 12
ADDED, REMOVED, SAME, HEADING = "+", "-", " ", "@"
WORDS = {ADDED: "added", REMOVED: "removed", SAME: "unchanged"}

Opcode = tuple[str, int, int, int, int]


class _Span(NamedTuple):
    """A part of the old lines and the part of the new ones that stands in its place."""

    old: int
    old_end: int
    new: int
    new_end: int
    round: int = 0

    @property
    def product(self) -> int:
        return (self.old_end - self.old) * (self.new_end - self.new)


def groups_of(old: Sequence[str], new: Sequence[str]) -> list[list[Opcode]]:
    """Changes with the lines around them, as `difflib` gives them."""
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, "", "")
    matcher.opcodes = _opcodes(old, new)  # type: ignore[attr-defined]  # no stub has it
    return list(matcher.get_grouped_opcodes(CONTEXT)) if old != new else []


def _opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """`equal` and `replace` in turn, from the beginning to the end of both."""
    found: list[Opcode] = []
    at_old = at_new = 0
    for start_old, start_new, length in (*_matches(old, new), (len(old), len(new), 0)):
        if at_old < start_old or at_new < start_new:
            found.append(("replace", at_old, start_old, at_new, start_new))
        if length and found and found[-1][0] == "equal":
            _, first_old, _, first_new, _ = found.pop()
            found.append(("equal", first_old, start_old + length, first_new, start_new + length))
        elif length:
            found.append(("equal", start_old, start_old + length, start_new, start_new + length))
        at_old, at_new = start_old + length, start_new + length
    return found


def _matches(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Runs of equal lines in order. Lines that stand once on both sides divide what is too large to compare at once."""
    left = [_Span(0, len(old), 0, len(new))]
    while left:
        span = left.pop()
        head, tail = _same_ends(old, new, span)
        if head:
            yield span.old, span.new, head
        inner = _Span(span.old + head, span.old_end - tail, span.new + head, span.new_end - tail, span.round)
        behind = [_Span(inner.old_end, span.old_end, inner.new_end, span.new_end, span.round)] if tail else []
        if inner.product == 0:
            left += behind
        elif inner.product <= COMPARED_LINES:
            yield from _exact(old, new, inner)
            left += behind
        else:
            left += [*behind, *reversed(_divided(old, new, inner))]


def _same_ends(old: Sequence[str], new: Sequence[str], span: _Span) -> tuple[int, int]:
    """How many lines are the same at the beginning, and of the rest at the end."""
    most = min(span.old_end - span.old, span.new_end - span.new)
    head = next((n for n in range(most) if old[span.old + n] != new[span.new + n]), most)
    most -= head
    tail = next((n for n in range(most) if old[span.old_end - 1 - n] != new[span.new_end - 1 - n]), most)
    return head, tail


def _exact(old: Sequence[str], new: Sequence[str], span: _Span) -> Iterator[tuple[int, int, int]]:
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, old[span.old : span.old_end], new[span.new : span.new_end])
    for at_old, at_new, length in matcher.get_matching_blocks():
        if length:
            yield span.old + at_old, span.new + at_new, length


def _divided(old: Sequence[str], new: Sequence[str], span: _Span) -> list[_Span]:
    """Smaller spans that together are this one; none where it is taken as replaced."""
    anchors = _anchors(old, new, span) if span.round < ROUNDS else []
    if not anchors:
        return _blocks(span)
    spans = []
    at_old, at_new = span.old, span.new
    for anchor_old, anchor_new in anchors:
        spans.append(_Span(at_old, anchor_old, at_new, anchor_new, span.round + 1))
        spans.append(_Span(anchor_old, anchor_old + 1, anchor_new, anchor_new + 1, span.round + 1))
        at_old, at_new = anchor_old + 1, anchor_new + 1
    return [*spans, _Span(at_old, span.old_end, at_new, span.new_end, span.round + 1)]


def _blocks(span: _Span) -> list[_Span]:
    lines = max(span.old_end - span.old, span.new_end - span.new)
    if lines > BLOCKED_LINES:
        return []
    old = [min(span.old + start, span.old_end) for start in range(0, lines + BLOCK, BLOCK)]
    new = [min(span.new + start, span.new_end) for start in range(0, lines + BLOCK, BLOCK)]
    return [_Span(*ends) for ends in zip(old, old[1:], new, new[1:], strict=False)]


def _anchors(old: Sequence[str], new: Sequence[str], span: _Span) -> list[tuple[int, int]]:
    """The longest row of lines that stand once on each side and in the same order on both."""
    counts_old = Counter(old[span.old : span.old_end])
    counts_new = Counter(new[span.new : span.new_end])
    places = {new[at]: at for at in range(span.new, span.new_end) if counts_new[new[at]] == 1}
    pairs = [(at, places[old[at]]) for at in range(span.old, span.old_end)
             if counts_old[old[at]] == 1 and old[at] in places]  # fmt: skip
    ends: list[int] = []  # by length, the new place that the best row of that length ends at
    last: list[int] = []  # by length, the number of the pair that ends it
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        last[length : length + 1] = [number]
    row, at = [], last[-1] if last else -1
    while at >= 0:
        row.append(pairs[at])
        at = before[at]
    return row[::-1]


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
class _Draft:
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


def shorten(diffs: Iterable[Sequence[str]], room: Room) -> list[Short]:
    """No line that is gone and no line that stayed takes the place of one that is new, in whichever file."""
    drafts = [_Draft(lines) for lines in diffs]
    characters, lines = room.all_characters, room.all_lines
    for kind in (ADDED, REMOVED, SAME):
        for draft in drafts:
            size, count = draft.size, len(draft.kept)
            _fill(draft, kind, room, min(room.file_characters, size + characters), min(room.file_lines, count + lines))
            characters, lines = characters - draft.size + size, lines - len(draft.kept) + count
    return [Short("\n".join(_lines_of(draft)), draft.unseen) for draft in drafts]


def _fill(draft: _Draft, kind: str, room: Room, characters: int, lines: int) -> None:
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
    """What is not a line of a diff is our own word about it, and shown like what is new."""
    return line[:1] if line[:1] in (REMOVED, SAME) else ADDED


def _cut(line: str, limit: int) -> str:
    return line if len(line) <= limit else f"{line[:limit]}... ({len(line):,} characters)"


def _lines_of(draft: _Draft) -> Iterator[str]:
    """In order; in the place of what is left out stands how much it is."""
    missing: Counter[str] = Counter()
    for number, line in enumerate(draft.lines):
        if number not in draft.kept:
            missing[_kind(line)] += not line.startswith(HEADING)
            continue
        if missing.total():
            yield _count(missing)
            missing.clear()
        yield draft.kept[number]
    if missing.total():
        yield _count(missing)


def _count(missing: Counter[str]) -> str:
    counted = [f"{missing[kind]:,} {word}" for kind, word in WORDS.items() if missing[kind]]
    return f"... {' and '.join(counted)} line{'' if missing.total() == 1 else 's'} not shown"
