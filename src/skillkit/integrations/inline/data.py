"""Text that a model is given as data -> the same text, its commands defused and remembered as not the model's own."""

from __future__ import annotations

import re

__all__ = ["ForeignText", "defused"]

OPENER = re.compile(r"\\?([%!]\{)")
IGNORED = re.compile(r"[\s\"'\\]+")
REMEMBERED_CHARACTERS = 4_000_000


def defused(text: str) -> str:
    """Every opening brace of a command gets a backslash, so that a model that repeats it runs nothing."""
    return OPENER.sub(r"\\\1", text)


class ForeignText:
    """What a model has read from outside; a command that stands there was not its own idea."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._size = 0

    def add(self, text: str) -> None:
        if "{" not in text:
            return
        self._texts.append(plain(text))
        self._size += len(self._texts[-1])
        while self._size > REMEMBERED_CHARACTERS and len(self._texts) > 1:
            self._size -= len(self._texts.pop(0))

    def holds(self, body: str) -> bool:
        """Whether a command with this body stands there, however it is quoted or spaced."""
        wanted = plain(body)
        return any(f"{opener}{wanted}}}" in text for text in self._texts for opener in ("%{", "!{", "!{!"))


def plain(text: str) -> str:
    return IGNORED.sub("", text)
