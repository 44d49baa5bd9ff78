"""What a command shows on a terminal of some width."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pexpect

__all__ = ["drawn", "on_screen"]


def on_screen(*words: str | Path, width: int, typed: str = "") -> list[str]:
    """Its lines, without colours; `typed` is what a person answers."""
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    child = pexpect.spawn(
        sys.executable,
        ["-m", "skillkit", *map(str, words)],
        env={**environment, "NO_COLOR": "1"},
        dimensions=(200, width),
        encoding="utf-8",
        timeout=60,
    )
    child.send(typed)
    seen = child.read()
    child.close()
    return str(seen).splitlines()


_PIECES = re.compile(r"\x1b([78])|\x1b\[(\??[\d;]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n]+)")


def drawn(text: str, *, columns: int, rows: int) -> list[str]:
    """What a terminal of this size shows after this text: enough of one for what our own code sends."""
    lines, row, column, kept = [""], 0, 0, (0, 0)
    for saved, numbers, control, back, end, plain in _PIECES.findall(text):
        if saved:
            kept, (row, column) = ((row, column), (row, column)) if saved == "7" else (kept, kept)
        elif control == "A":
            row = max(row - int(numbers or 1), len(lines) - rows, 0)
        elif control == "K":
            lines[row] = lines[row][:column]
        elif back:
            column = 0
        elif end:
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif plain:
            before = lines[row].ljust(column)
            lines[row] = (before[:column] + plain + before[column + len(plain) :])[:columns]
            column += len(plain)
    return lines[-rows:]
