"""A long text -> a view that a person can move in, and leave; nothing they press there is an answer."""

from __future__ import annotations

from collections.abc import Callable

from skillkit.approvers.keys import ESCAPE, INTERRUPTS
from skillkit.approvers.screen import Screen
from skillkit.present.terminal import cut

__all__ = ["moved", "show_pages"]

LEAVING = ("q", "Q", ESCAPE, *INTERRUPTS)
HOME, CLEAR_LINE, CLEAR_BELOW, REVERSE, NORMAL = "\x1b[H", "\x1b[K", "\x1b[J", "\x1b[7m", "\x1b[0m"


def show_pages(screen: Screen, title: str, text_for: Callable[[int], str]) -> None:
    """Draws again whenever the window's size changes; `text_for` gives the text for so many columns."""
    if screen.is_plain:
        screen.write("\n" + text_for(screen.size()[0]) + "\n")
        return
    with screen.second_screen():
        lines: list[str] = []
        top, shown, width = 0, None, 0
        while True:
            columns, rows = screen.size()
            if columns != width:
                before, lines = max(len(lines), 1), text_for(columns).rstrip("\n").split("\n")
                top, width = top * len(lines) // before, columns
            top = moved("", top, height=rows - 1, count=len(lines))
            if shown != (top, columns, rows):
                screen.write(page(lines, top, title, columns, rows))
                shown = (top, columns, rows)
            for key in screen.pressed(together=False):
                if key in LEAVING:
                    return
                top = moved(key, top, height=rows - 1, count=len(lines))


def moved(key: str, top: int, *, height: int, count: int) -> int:
    """The first line to show after this key; the last page stays full."""
    steps = {
        "down": 1,
        "j": 1,
        "\n": 1,
        "\r": 1,
        "up": -1,
        "k": -1,
        " ": height - 1,
        "page down": height - 1,
        "f": height - 1,
        "page up": 1 - height,
        "b": 1 - height,
        "home": -count,
        "g": -count,
        "end": count,
        "G": count,
    }
    return max(0, min(top + steps.get(key, 0), count - height))


def page(lines: list[str], top: int, title: str, columns: int, rows: int) -> str:
    height = max(rows - 1, 1)
    visible_lines = lines[top : top + height]
    # Cleared before it is written: a terminal that has just filled a line would clear its last character.
    body = "".join(f"{CLEAR_LINE}{line}\n" for line in visible_lines)
    last = top + len(visible_lines)
    place = f"{title}, {top + 1:,} to {last:,} of {len(lines):,}. Space and arrows move, q goes back."
    return f"{HOME}{body}{CLEAR_BELOW}\x1b[{rows};1H{REVERSE} {cut(place, columns - 2)} {NORMAL}"
