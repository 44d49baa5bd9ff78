"""Text from anywhere -> text that is safe and tidy on a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

__all__ = ["columns", "cut", "visible", "width_of"]

# Characters that change how the text around them is shown: they can make it lie.
HIDING_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))


def visible(text: str) -> str:
    """Control, bidirectional and other unseen characters written out as `\\x1b` or `\\u202e`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if is_plain(char) else escaped(char) for char in text)


def is_plain(char: str) -> bool:
    return char in "\n\t" or unicodedata.category(char) not in HIDING_CATEGORIES


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


def columns(rows: Sequence[Sequence[str]], width: int, *, indent: str = "  ") -> list[str]:
    """Aligned lines; the last column takes what room is left and is cut to it."""
    if not rows:
        return []
    safe = [[visible(cell) for cell in row] for row in rows]
    limit = max(12, width // 3)
    fitted = [[*(cut(cell, limit) for cell in row[:-1]), row[-1]] for row in safe]
    widths = [max(width_of(row[index]) for row in fitted) for index in range(len(rows[0]) - 1)]
    room = max(20, width - sum(widths) - 2 * len(widths) - len(indent))
    lines = []
    for row in fitted:
        padded = [cell + " " * (size - width_of(cell)) for cell, size in zip(row, widths, strict=False)]
        lines.append((indent + "  ".join([*padded, cut(row[-1], room)])).rstrip())
    return lines
