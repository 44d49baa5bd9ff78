"""A model's text in chunks -> the same, with nothing in it that a terminal would obey."""

from __future__ import annotations

import unicodedata

from skillkit.present.terminal import visible

__all__ = ["SafeText"]

KEPT_CHARACTERS = 8
"""More marks than this are too many on one letter anyway."""


class SafeText:
    """Shows text as `visible` does, however it is cut into chunks."""

    def __init__(self) -> None:
        self._before = ""
        self._is_returning = False

    def shown(self, chunk: str) -> str:
        """A carriage return waits for what follows: before a line end it means nothing."""
        text = ("\r" if self._is_returning else "") + chunk
        self._is_returning = text.endswith("\r")
        text = text.removesuffix("\r").replace("\r\n", "\n")
        shown = visible(self._before + text)[len(visible(self._before)) :]
        self._before = last_letter(self._before + text)
        return shown

    def finish(self) -> None:
        """The next text is another one."""
        self._before = ""
        self._is_returning = False


def last_letter(text: str) -> str:
    """With the marks on it: how many more it may have depends on them."""
    start = len(text) - 1
    while start > 0 and unicodedata.category(text[start])[0] == "M":
        start -= 1
    return text[max(start, 0) :][:KEPT_CHARACTERS]
