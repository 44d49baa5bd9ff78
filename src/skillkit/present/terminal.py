"""Text from anywhere -> text that is safe and tidy on a terminal: cut, folded, in columns, or behind a gutter."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from skillkit.core.values.text import on_one_line, visible

__all__ = [
    "BOLD",
    "CYAN",
    "DIM",
    "GREEN",
    "RED",
    "YELLOW",
    "Layout",
    "behind_bar",
    "columns",
    "cut",
    "harmless",
    "least_width",
    "width_of",
    "wrap",
]

NARROW_COLUMN, LAST_COLUMN = 12, 24

BOLD, DIM, RED, GREEN, YELLOW, CYAN = "1", "2", "31", "32", "33", "36"
LABEL_COLUMNS = 11
BESIDE_LABELS = 56  # columns; on less, a label stands above its text
SHORTEST_PIECE = 8
TAB_COLUMNS = 4


def width_of(text: str) -> int:
    """Columns on a terminal: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF") for char in text)


def cut(text: str, width: int) -> str:
    """On one line and at most this wide; what is missing is marked."""
    line = " ".join(text.split())
    if width_of(line) <= width:
        return line
    kept = ""
    for char in line:
        if width_of(kept + char) > width - 1:
            break
        kept += char
    return kept.rstrip() + "…"


def wrap(line: str, width: int, *, at_words: bool = True) -> Iterator[str]:
    """One line as several, none wider than `width` on any terminal; only spaces at a break between words are lost."""
    start = 0
    while len(line) - start > width or not line.isascii():
        end = _fitting(line, start, width)
        if end == len(line):
            break
        space = line.rfind(" ", start + 1, end + 1) if at_words else -1
        if space > 0 and not line[start:space].isspace():
            yield line[start:space].rstrip(" ")
            start = space + 1
            while line[start : start + 1] == " ":
                start += 1
        else:
            yield line[start:end]
            start = end
    if start < len(line) or not line:
        yield line[start:]


def _fitting(line: str, start: int, width: int) -> int:
    """Where the piece ends that begins at `start`; it has one character at least, and a mark stays with its letter."""
    used = 0
    for index in range(start, len(line)):
        used += _widest(line[index])
        if used > width:
            end = index
            while end > start + 1 and unicodedata.category(line[end])[0] == "M":
                end -= 1
            return max(end, start + 1)
    return len(line)


def _widest(char: str) -> int:
    """Columns on the terminal that gives it most: some draw every symbol wide and every mark apart."""
    if char.isascii() or unicodedata.category(char)[0] == "M":
        return 1
    return 1 if char.isalpha() and unicodedata.east_asian_width(char) not in "WF" else 2


def least_width(rows: Sequence[Sequence[str]], whole: Collection[int] = ()) -> int:
    """How wide a screen must be so that `columns` cuts none of those in `whole`, and the others not too much."""
    widths = [max(width_of(visible(cell)) for cell in column) for column in zip(*rows, strict=True)]
    least = [width if at in whole else min(width, NARROW_COLUMN) for at, width in enumerate(widths[:-1])]
    return sum(2 + width for width in least) + min(widths[-1], LAST_COLUMN)


def columns(rows: Sequence[Sequence[str]], width: int, *, indent: str = "  ", whole: Collection[int] = ()) -> list[str]:
    """Aligned lines; the last column takes what room is left and is cut to it, those in `whole` are not cut."""
    if not rows:
        return []
    safe = [[visible(cell) for cell in row] for row in rows]
    limit = max(NARROW_COLUMN, width // 3)
    widths = [max(width_of(row[index]) for row in safe) for index in range(len(rows[0]) - 1)]
    elastic = [index for index in range(len(widths)) if index not in whole]
    for index in elastic:
        widths[index] = min(limit, widths[index])
    shared = width - 2 * len(widths) - len(indent)
    while shared - sum(widths) < LAST_COLUMN and max((widths[index] for index in elastic), default=0) > NARROW_COLUMN:
        widths[max(elastic, key=widths.__getitem__)] -= 1
    room = max(NARROW_COLUMN, shared - sum(widths))
    lines = []
    for row in safe:
        cells = [cut(cell, size) for cell, size in zip(row, widths, strict=False)]
        padded = [cell + " " * (size - width_of(cell)) for cell, size in zip(cells, widths, strict=True)]
        lines.append((indent + "  ".join([*padded, cut(row[-1], room)])).rstrip())
    return lines


def behind_bar(text: str) -> list[str]:
    """Somebody's lines where our own words stand at the left margin."""
    return [f"  │ {line}" for line in visible(text).splitlines()]


def harmless(line: str) -> str:
    """On one line; whatever could move the cursor, hide or reorder is written out."""
    return on_one_line(line.expandtabs(TAB_COLUMNS))


class Layout(NamedTuple):
    """Where our words and other people's stand on a page of this width, so that they cannot be mistaken for each other.

    Labels and our own words are plain. Everything else, from a skill or a caller, stands behind a gutter: it can
    never begin where a heading or an option of ours begins.
    """

    width: int
    color: bool = False
    has_keys: bool = True
    """Whether whoever reads can press one to see more."""

    def more(self, key: str) -> str:
        """How to see the rest, where there is a way."""
        return f"; {key} shows all" if self.has_keys else ""

    @property
    def room(self) -> int:
        """Columns for text, behind label and gutter."""
        return max(self.width - (LABEL_COLUMNS + 5 if self.width >= BESIDE_LABELS else 4), SHORTEST_PIECE)

    def painted(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.color and style and text else text

    def said(self, label: str, text: str) -> list[str]:
        """Our own words."""
        rows = [f"  {self.painted(piece, DIM)}" for piece in wrap(text, self.room)]
        return self._labelled(label, rows)

    def quoted(
        self,
        label: str,
        lines: Iterable[str],
        *,
        style: str = "",
        at_words: bool = True,
        start: str = "",
        limit: int | None = None,
    ) -> list[str]:
        """Anybody's words, made harmless; `start` is ours and stands before the first row of each line."""
        rows: list[str] = []
        for line in lines:
            for prefix, piece in self._pieces(line, start, at_words=at_words, limit=limit):
                if limit is not None and len(rows) == limit:
                    return [*self._labelled(label, rows), *self.said("", f"more{self.more('v')}")]
                gutter = self.painted("│", DIM)
                rows.append(f"{gutter} {self.painted(prefix, DIM)}{self.painted(piece, style)}".rstrip())
        return self._labelled(label, rows)

    def row(self, label: str, text: str, *, style: str = "", start: str = "", end: str = "") -> list[str]:
        """The same on one row: what has no room between start and end is left out, and that is seen."""
        room = max(self.room - width_of(start) - 2, SHORTEST_PIECE)  # what marks a cut is wide on some terminals
        last = cut(harmless(end), room // 2)
        told = cut(harmless(text), max(room - width_of(last) - bool(last), SHORTEST_PIECE))
        return self.quoted(label, [f"{told} {last}".rstrip()], style=style, start=start, at_words=False)

    def _pieces(self, line: str, start: str, *, at_words: bool, limit: int | None) -> Iterator[tuple[str, str]]:
        room = max(self.room - len(start), SHORTEST_PIECE)
        # One row more than is shown: a line of megabytes is not worth the work, and its rest must not go unsaid.
        kept = line if limit is None else line[: (limit + 1) * room]
        prefix = start
        for piece in wrap(harmless(kept), room, at_words=at_words):
            yield prefix, piece
            prefix = " " * len(start)
        if len(kept) < len(line):
            yield prefix, "…"

    def _labelled(self, label: str, rows: list[str]) -> list[str]:
        if self.width < BESIDE_LABELS:
            above = [f"  {self.painted(label, BOLD)}"] if label and rows else []
            return above + [f"  {row}" for row in rows]
        labels = [self.painted(label, BOLD) + " " * (LABEL_COLUMNS - len(label)), *[" " * LABEL_COLUMNS] * len(rows)]
        return [f"  {name} {row}" for name, row in zip(labels, rows, strict=False)]
