"""Text from anywhere -> text that is safe and tidy on a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Sequence

__all__ = ["columns", "cut", "escaped", "least_width", "visible", "width_of", "wrapped"]

# Characters that change how the text around them is shown: they can make it lie. Those that nobody has
# assigned yet are drawn as each terminal likes.
HIDING_CATEGORIES = frozenset(("Cc", "Cf", "Cn", "Cs", "Co", "Zl", "Zp"))
# Letters, marks and symbols that are drawn as nothing at all: fillers, blanks, selectors of variants.
UNSEEN = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, [*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0)]))
)
# No script needs more marks on one character; a pile of them paints over the lines around it.
MARKS_ON_ONE_CHARACTER = 4

NARROW_COLUMN, LAST_COLUMN = 12, 24


def visible(text: str) -> str:
    """Control, bidirectional and unseen characters written out as `\\x1b` or `\\u202e`; few marks on a letter."""
    if text.isascii() and text.isprintable():
        return text
    shown = []
    room = 0
    for char in text:
        if unicodedata.category(char)[0] == "M":
            room -= 1
            plain = room >= 0 and char not in UNSEEN
        else:
            plain = is_plain(char)
            room = MARKS_ON_ONE_CHARACTER if plain and not char.isspace() else 0
        shown.append(char if plain else escaped(char))
    return "".join(shown)


def is_plain(char: str) -> bool:
    return char in "\n\t" or (unicodedata.category(char) not in HIDING_CATEGORIES and char not in UNSEEN)


def escaped(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:  # noqa: PLR2004 - the range that has a short form
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004


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


def wrapped(line: str, width: int, *, at_words: bool = True) -> Iterator[str]:
    """One line as several, none wider than `width` on any terminal; only spaces at a break between words are lost."""
    start = 0
    while len(line) - start > width or not line.isascii():
        end = fitting(line, start, width)
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


def fitting(line: str, start: int, width: int) -> int:
    """Where the piece ends that begins at `start`; it has one character at least, and a mark stays with its letter."""
    used = 0
    for index in range(start, len(line)):
        used += widest(line[index])
        if used > width:
            end = index
            while end > start + 1 and unicodedata.category(line[end])[0] == "M":
                end -= 1
            return max(end, start + 1)
    return len(line)


def widest(char: str) -> int:
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
