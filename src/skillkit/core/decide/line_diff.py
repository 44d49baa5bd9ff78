"""Two lists of lines -> which are the same, in a time that large and hostile files cannot stretch."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["CONTEXT", "Opcode", "groups_of"]

CONTEXT = 3
# The exact comparison takes a time that grows faster than the product of both sides.
COMPARED_LINES = 250_000
BLOCK = 64  # lines of each side that are compared exactly where nothing tells what belongs together
BLOCKED_LINES = 100_000  # where nothing tells what belongs together, more are taken as replaced
ROUNDS = 12

Opcode = tuple[str, int, int, int, int]


class Span(NamedTuple):
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
    matcher.opcodes = opcodes_of(old, new)  # type: ignore[attr-defined]  # no stub has it
    return list(matcher.get_grouped_opcodes(CONTEXT)) if old != new else []


def opcodes_of(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
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
    left = [Span(0, len(old), 0, len(new))]
    while left:
        span = left.pop()
        head, tail = _same_ends(old, new, span)
        if head:
            yield span.old, span.new, head
        inner = Span(span.old + head, span.old_end - tail, span.new + head, span.new_end - tail, span.round)
        behind = [Span(inner.old_end, span.old_end, inner.new_end, span.new_end, span.round)] if tail else []
        if inner.product == 0:
            left += behind
        elif inner.product <= COMPARED_LINES:
            yield from _exact(old, new, inner)
            left += behind
        else:
            left += [*behind, *reversed(_divided(old, new, inner))]


def _same_ends(old: Sequence[str], new: Sequence[str], span: Span) -> tuple[int, int]:
    """How many lines are the same at the beginning, and of the rest at the end."""
    most = min(span.old_end - span.old, span.new_end - span.new)
    head = next((n for n in range(most) if old[span.old + n] != new[span.new + n]), most)
    most -= head
    tail = next((n for n in range(most) if old[span.old_end - 1 - n] != new[span.new_end - 1 - n]), most)
    return head, tail


def _exact(old: Sequence[str], new: Sequence[str], span: Span) -> Iterator[tuple[int, int, int]]:
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, old[span.old : span.old_end], new[span.new : span.new_end])
    for at_old, at_new, length in matcher.get_matching_blocks():
        if length:
            yield span.old + at_old, span.new + at_new, length


def _divided(old: Sequence[str], new: Sequence[str], span: Span) -> list[Span]:
    """Smaller spans that together are this one; none where it is taken as replaced."""
    anchors = _anchors(old, new, span) if span.round < ROUNDS else []
    if not anchors:
        return _blocks(span)
    spans = []
    at_old, at_new = span.old, span.new
    for anchor_old, anchor_new in anchors:
        spans.append(Span(at_old, anchor_old, at_new, anchor_new, span.round + 1))
        spans.append(Span(anchor_old, anchor_old + 1, anchor_new, anchor_new + 1, span.round + 1))
        at_old, at_new = anchor_old + 1, anchor_new + 1
    return [*spans, Span(at_old, span.old_end, at_new, span.new_end, span.round + 1)]


def _blocks(span: Span) -> list[Span]:
    lines = max(span.old_end - span.old, span.new_end - span.new)
    if lines > BLOCKED_LINES:
        return []
    starts = range(0, lines, BLOCK)
    return [
        Span(
            min(span.old + start, span.old_end),
            min(span.old + start + BLOCK, span.old_end),
            min(span.new + start, span.new_end),
            min(span.new + start + BLOCK, span.new_end),
        )
        for start in starts
    ]


def _anchors(old: Sequence[str], new: Sequence[str], span: Span) -> list[tuple[int, int]]:
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
