"""What follows an opening brace, in chunks -> whether and where the command ends."""

from __future__ import annotations

import re
from enum import Enum

__all__ = ["COMMAND_LIMIT_CHARACTERS", "Candidate", "Ending"]

COMMAND_LIMIT_CHARACTERS = 65_536

OUTSIDE = re.compile(r"[{}\"'\\\n]")
IN_QUOTES = {'"': re.compile(r"[\"\\\n]"), "'": re.compile(r"['\n]")}


class Ending(Enum):
    """How a candidate stands after some text."""

    NONE = "goes on"
    CLOSED = "its braces are closed"
    NO_COMMAND = "too long, or an empty line"


class Candidate:
    """The beginning of a command; looks at each character once, in whatever chunks they come."""

    def __init__(self, opener: str) -> None:
        self._pieces = [opener]
        self._size = len(opener)
        self._depth = 1
        self._quote = ""
        self._is_escaped = False
        self._is_line_empty = False

    @property
    def source(self) -> str:
        return "".join(self._pieces)

    def take(self, text: str, start: int) -> tuple[int, Ending]:
        """The place behind what was taken; an end is decided by the characters alone, never by the chunks."""
        limit = min(len(text), start + COMMAND_LIMIT_CHARACTERS - self._size)
        position, ending = start, Ending.NONE
        while position < limit and ending is Ending.NONE:
            position, ending = self._step(text, position, limit)
        self._pieces.append(text[start:position])
        self._size += position - start
        if ending is Ending.NONE and self._size >= COMMAND_LIMIT_CHARACTERS:
            ending = Ending.NO_COMMAND
        return position, ending

    def _step(self, text: str, position: int, limit: int) -> tuple[int, Ending]:
        """To the next character that means something, and what it means."""
        if self._is_escaped:
            self._is_escaped = False
            # An escaped line end is one all the same, so that an empty line always ends it.
            return (position + 1, Ending.NONE) if text[position] != "\n" else (position + 1, self._line_ended())
        pattern = IN_QUOTES[self._quote] if self._quote else OUTSIDE
        match = pattern.search(text, position, limit)
        end = limit if match is None else match.start()
        if text[position:end].strip(" \t\r"):
            self._is_line_empty = False
        if match is None:
            return limit, Ending.NONE
        return end + 1, self._after(match[0])

    def _after(self, char: str) -> Ending:
        if char == "\n":
            return self._line_ended()
        self._is_line_empty = False
        if char == "\\":
            self._is_escaped = True
        elif char in "\"'":
            self._quote = "" if self._quote else char
        else:
            self._depth += 1 if char == "{" else -1
        return Ending.NONE if self._depth else Ending.CLOSED

    def _line_ended(self) -> Ending:
        if self._is_line_empty:
            return Ending.NO_COMMAND
        self._is_line_empty = True
        return Ending.NONE
