"""A model's text in chunks of any size -> plain text and commands. Nothing is looked up or run here.

Theory of operation. The grammar is written down in docs/reference/inline.md. The parser is in one mode (plain text, a
code span, a fence) and goes from token to token; a token that the next chunk could continue is held back. An opening
brace in plain text begins a candidate, which takes every character until its braces are closed (a command) or it is
too long or has an empty line (then it was text, and is read again as text in which no command counts). Each character
is looked at once or twice, and no decision depends on where a chunk ends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

__all__ = ["COMMAND_LIMIT_CHARACTERS", "Command", "Event", "InlineParser", "Text"]

Kind = Literal["effect", "capture"]
_Ending = Literal["goes on", "closed", "no command"]
GOES_ON: _Ending = "goes on"

COMMAND_LIMIT_CHARACTERS = 65_536
NEWLINE = "\n"
HEAD_CHARACTERS = 64
RUN_CHARACTERS = 1_024
FENCE_CHARACTERS = 3  # at least
RUN = rf"`{{1,{RUN_CHARACTERS}}}|~{{1,{RUN_CHARACTERS}}}"

# What stands before a fence on its line: a quotation, a place in a list, any depth.
OPENING_HEAD = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?[ \t>]*")
CLOSING_HEAD = re.compile(r"[ \t>]*")

OUTSIDE_QUOTES = re.compile(r"[{}\"'\\\n]")
IN_QUOTES = {'"': re.compile(r"[\"\\\n]"), "'": re.compile(r"['\n]")}


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text, to be shown as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """One whole command; `body` is what stands between the braces, without the mark of its kind."""

    kind: Kind
    source: str
    body: str


Event = Text | Command


@dataclass(frozen=True, slots=True)
class _Mode:
    """Where the text is: plain, a code span, the first line of a fence, a fence, or behind its closing marks."""

    name: Literal["plain", "span", "info", "fence", "closing"] = "plain"
    mark: str = ""
    """The marks by which it was opened."""


PLAIN = _Mode()
# For each mode what changes it, and what such a token holds unless it is still open at the text's end: to find that
# first is fifty times as fast as the pattern. "inert" is plain text in which no command counts.
TOKENS: dict[str, tuple[re.Pattern[str], tuple[str, ...]]] = {
    "plain": (re.compile(rf"\\?[%!](?:\{{|\Z)|\\(?:`|\Z)|{RUN}"), ("%{", "!{", "`", "~~~")),
    "inert": (re.compile(rf"\\(?:`|\Z)|{RUN}"), ("`", "~~~")),
    "span": (re.compile(rf"\n|{RUN}"), ("\n", "`", "~~~")),
    "info": (re.compile(rf"\n|{RUN}"), ("\n", "`", "~~~")),
    "fence": (re.compile(RUN), ("```", "~~~")),
    "closing": (re.compile(r"[^ \t\r]"), ()),
}
OPEN_CHARACTERS = 2  # an open token that holds no needle is this long at most


class _Text:
    """A text that remembers where it found what, so that each part of it is searched once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._found: dict[str, int] = {}

    def token(self, state: str, position: int) -> re.Match[str] | None:
        text, (pattern, needles) = self.text, TOKENS[state]
        start = len(text) - OPEN_CHARACTERS if needles else position
        for needle in needles:
            place = self._found.get(needle, -1)
            if place < position:
                place = text.find(needle, position)
                place = self._found[needle] = place if place >= 0 else len(text)
            start = min(start, place - 1)  # a backslash may stand before it
        return pattern.search(text, max(start, position))


class _Candidate:
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

    def take(self, text: str, start: int) -> tuple[int, _Ending]:
        """The place behind what was taken; an end is decided by the characters alone, never by the chunks."""
        limit = min(len(text), start + COMMAND_LIMIT_CHARACTERS - self._size)
        position, ending = start, GOES_ON
        while position < limit and ending == "goes on":
            position, ending = self._step(text, position, limit)
        self._pieces.append(text[start:position])
        self._size += position - start
        if ending == "goes on" and self._size >= COMMAND_LIMIT_CHARACTERS:
            ending = "no command"
        return position, ending

    def _step(self, text: str, position: int, limit: int) -> tuple[int, _Ending]:
        """To the next character that means something, and what it means."""
        if self._is_escaped:
            self._is_escaped = False
            # An escaped line end is one all the same, so that an empty line always ends it.
            return position + 1, self._end_line() if text[position] == "\n" else "goes on"
        pattern = IN_QUOTES[self._quote] if self._quote else OUTSIDE_QUOTES
        match = pattern.search(text, position, limit)
        end = limit if match is None else match.start()
        if text[position:end].strip(" \t\r"):
            self._is_line_empty = False
        if match is None:
            return limit, "goes on"
        return end + 1, self._after(match[0])

    def _after(self, char: str) -> _Ending:
        if char == "\n":
            return self._end_line()
        self._is_line_empty = False
        if char == "\\":
            self._is_escaped = True
        elif char in "\"'":
            self._quote = "" if self._quote else char
        else:
            self._depth += 1 if char == "{" else -1
        return "goes on" if self._depth else "closed"

    def _end_line(self) -> _Ending:
        if self._is_line_empty:
            return "no command"
        self._is_line_empty = True
        return "goes on"


class InlineParser:
    """Feed chunks, then finish once; any chunking gives the same events, if pieces of text are joined."""

    def __init__(self) -> None:
        self._mode = PLAIN
        self._head = ""  # of the line that the text has come to
        self._held = ""  # may be the beginning of something
        self._candidate: _Candidate | None = None
        self._events: list[Event] = []

    def feed(self, chunk: str) -> list[Event]:
        """What is certain by now: text as early as possible, a command when its last brace is there."""
        text, self._held = self._held + chunk, ""
        self._consume(text, is_last=False)
        return self._take_events()

    def finish(self) -> list[Event]:
        """What was held back, as text; the parser is then as new."""
        text, self._held = self._held, ""
        self._consume(text, is_last=True)
        if self._candidate is not None:
            self._release(self._candidate.source)
        events = self._take_events()
        self._mode, self._head, self._candidate = PLAIN, "", None
        return events

    def _take_events(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def _consume(self, text: str, *, is_last: bool) -> None:
        position, searched = 0, _Text(text)
        while position < len(text):
            if self._candidate is not None:
                position = self._continue(self._candidate, text, position)
            else:
                position = self._pass(searched, position, is_inert=False, is_last=is_last)

    def _continue(self, candidate: _Candidate, text: str, position: int) -> int:
        position, ending = candidate.take(text, position)
        if ending == "goes on":
            return position
        self._candidate = None
        command = _command_from(candidate.source) if ending == "closed" else None
        if command is None:
            self._release(candidate.source)
        else:
            self._note(command.source)
            self._events.append(command)
        return position

    def _release(self, source: str) -> None:
        """What turned out to be no command: text, fences in it are seen, commands in it are not."""
        self._candidate = None
        position, searched = 0, _Text(source)
        while position < len(source):
            position = self._pass(searched, position, is_inert=True, is_last=True)

    def _pass(self, searched: _Text, position: int, *, is_inert: bool, is_last: bool) -> int:
        """Text until the place comes where something changes; gives that place."""
        text = searched.text
        match = searched.token("inert" if is_inert and self._mode is PLAIN else self._mode.name, position)
        if match is None:
            self._say(text, position, len(text))
            return len(text)
        token = match[0]
        if match.end() == len(text) and not is_last and _is_open(token):
            self._say(text, position, match.start())
            self._held = token
            return len(text)
        if self._mode is PLAIN and token in ("%{", "!{"):
            self._say(text, position, match.start())
            self._candidate = _Candidate(token)
        elif self._mode is PLAIN and token in (r"\%{", r"\!{"):
            self._say(text, position, match.start())
            self._say(token, 1, len(token))
        else:
            self._note(text[position : match.start()])
            self._mode = _mode_after(self._mode, token, self._head)
            self._note(token)
            self._show(text[position : match.end()])
        return match.end()

    def _say(self, text: str, start: int, end: int) -> None:
        if start < end:
            said = text[start:end]
            self._note(said)
            self._show(said)

    def _show(self, said: str) -> None:
        if said:
            self._events.append(Text(said))

    def _note(self, said: str) -> None:
        """Keeps the beginning of the line that the text has come to."""
        newline = said.rfind("\n")
        if newline >= 0:
            self._head = said[newline + 1 : newline + 2 + HEAD_CHARACTERS]
        elif len(self._head) <= HEAD_CHARACTERS:
            self._head += said[:HEAD_CHARACTERS]


def _is_open(token: str) -> bool:
    """Whether the next character could belong to it."""
    return token in ("%", "!", "\\", r"\%", r"\!") or (token[0] in "`~" and len(token) < RUN_CHARACTERS)


def _mode_after(mode: _Mode, token: str, head: str) -> _Mode:
    """What a token changes; `head` is its line up to it."""
    if mode.name == "closing":
        return PLAIN if token in NEWLINE else _Mode("fence", mode.mark)
    if mode.name == "fence":
        closes = token[0] == mode.mark[0] and len(token) >= len(mode.mark) and _is_all(CLOSING_HEAD, head)
        return _Mode("closing", mode.mark) if closes else mode
    if token in NEWLINE:
        if mode.name == "info":
            return _Mode("fence", mode.mark)
        return PLAIN if not head.strip() else mode  # an empty line ends a span that was never closed
    if token[0] not in "`~":
        return mode
    return _mode_after_run(mode, token, head)


def _mode_after_run(mode: _Mode, token: str, head: str) -> _Mode:
    """Of marks outside a fence: blocks come before spans, as in Markdown."""
    if len(token) >= FENCE_CHARACTERS and _is_all(OPENING_HEAD, head):
        return _Mode("fence" if token[0] == "~" else "info", token)
    if token[0] == "~":
        return mode
    if mode is PLAIN:
        return _Mode("span", token)
    # A fence's first line holds no backtick, so that it was a span all the time.
    return PLAIN if len(token) == len(mode.mark) else _Mode("span", mode.mark)


def _is_all(pattern: re.Pattern[str], head: str) -> bool:
    return len(head) <= HEAD_CHARACTERS and pattern.fullmatch(head) is not None


def _command_from(source: str) -> Command | None:
    """None for one that names nothing."""
    inner = source[2:-1]
    is_effect = source[0] == "%" or inner.startswith("!")
    # Not at the end: a backslash there may belong to the space behind it.
    body = (inner.removeprefix("!") if source[0] == "!" else inner).lstrip()
    return Command("effect" if is_effect else "capture", source, body) if body else None
