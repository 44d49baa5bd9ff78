"""A model's text in chunks of any size -> plain text and commands. Nothing is looked up or run here.

The grammar is written down in docs/reference/inline.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from skillkit.integrations.inline.candidates import COMMAND_LIMIT_CHARACTERS, Candidate, Ending

__all__ = ["COMMAND_LIMIT_CHARACTERS", "Command", "Event", "InlineParser", "Text"]

Kind = Literal["effect", "capture"]

NEWLINE = "\n"
HEAD_CHARACTERS = 64
RUN_CHARACTERS = 1_024
FENCE_CHARACTERS = 3  # at least
RUN = rf"`{{1,{RUN_CHARACTERS}}}|~{{1,{RUN_CHARACTERS}}}"

# What stands before a fence on its line: a quotation, a place in a list, any depth.
OPENING_HEAD = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?[ \t>]*")
CLOSING_HEAD = re.compile(r"[ \t>]*")

PLAIN_TOKEN = re.compile(rf"\\?[%!](?:\{{|\Z)|\\(?:`|\Z)|{RUN}")
INERT_TOKEN = re.compile(rf"\\(?:`|\Z)|{RUN}")
SPAN_TOKEN = re.compile(rf"\n|{RUN}")
FENCE_TOKEN = re.compile(RUN)
AFTER_FENCE_TOKEN = re.compile(r"[^ \t\r]")


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
TOKENS = {
    "plain": PLAIN_TOKEN,
    "inert": INERT_TOKEN,
    "span": SPAN_TOKEN,
    "info": SPAN_TOKEN,
    "fence": FENCE_TOKEN,
    "closing": AFTER_FENCE_TOKEN,
}
# Without these there is no token but an open one at the end; finding them is fifty times as fast as a pattern.
NEEDLES = {
    "plain": ("%{", "!{", "`", "~~~"),
    "inert": ("`", "~~~"),
    "span": ("\n", "`", "~~~"),
    "info": ("\n", "`", "~~~"),
    "fence": ("```", "~~~"),
    "closing": (),
}
OPEN_CHARACTERS = 2  # an open token that holds no needle is this long at most


class _Text:
    """A text that remembers where it found what, so that each part of it is searched once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._found: dict[str, int] = {}

    def token(self, state: str, position: int) -> re.Match[str] | None:
        text = self.text
        start = len(text) - OPEN_CHARACTERS if NEEDLES[state] else position
        for needle in NEEDLES[state]:
            place = self._found.get(needle, -1)
            if place < position:
                place = text.find(needle, position)
                place = self._found[needle] = place if place >= 0 else len(text)
            start = min(start, place - 1)  # a backslash may stand before it
        return TOKENS[state].search(text, max(start, position))


class InlineParser:
    """Feed chunks, then finish once; any chunking gives the same events, if pieces of text are joined."""

    def __init__(self) -> None:
        self._mode = PLAIN
        self._head = ""  # of the line that the text has come to
        self._held = ""  # may be the beginning of something
        self._candidate: Candidate | None = None
        self._events: list[Event] = []

    def feed(self, chunk: str) -> list[Event]:
        """What is certain by now: text as early as possible, a command when its last brace is there."""
        text, self._held = self._held + chunk, ""
        self._consume(text, is_last=False)
        return self._taken()

    def finish(self) -> list[Event]:
        """What was held back, as text; the parser is then as new."""
        text, self._held = self._held, ""
        self._consume(text, is_last=True)
        if self._candidate is not None:
            self._release(self._candidate.source)
        events = self._taken()
        self._mode, self._head, self._candidate = PLAIN, "", None
        return events

    def _taken(self) -> list[Event]:
        events, self._events = self._events, []
        return events

    def _consume(self, text: str, *, is_last: bool) -> None:
        position, searched = 0, _Text(text)
        while position < len(text):
            if self._candidate is not None:
                position = self._continue(self._candidate, text, position)
            else:
                position = self._pass(searched, position, is_inert=False, is_last=is_last)

    def _continue(self, candidate: Candidate, text: str, position: int) -> int:
        position, ending = candidate.take(text, position)
        if ending is Ending.NONE:
            return position
        self._candidate = None
        command = command_from(candidate.source) if ending is Ending.CLOSED else None
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
        if match.end() == len(text) and not is_last and is_open(token):
            self._say(text, position, match.start())
            self._held = token
            return len(text)
        if self._mode is PLAIN and token in ("%{", "!{"):
            self._say(text, position, match.start())
            self._candidate = Candidate(token)
        elif self._mode is PLAIN and token in (r"\%{", r"\!{"):
            self._say(text, position, match.start())
            self._say(token, 1, len(token))
        else:
            self._note(text[position : match.start()])
            self._mode = mode_after(self._mode, token, self._head)
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


def is_open(token: str) -> bool:
    """Whether the next character could belong to it."""
    return token in ("%", "!", "\\", r"\%", r"\!") or (token[0] in "`~" and len(token) < RUN_CHARACTERS)


def mode_after(mode: _Mode, token: str, head: str) -> _Mode:
    """What a token changes; `head` is its line up to it."""
    if mode.name == "closing":
        return PLAIN if token in NEWLINE else _Mode("fence", mode.mark)
    if mode.name == "fence":
        closes = token[0] == mode.mark[0] and len(token) >= len(mode.mark) and is_all(CLOSING_HEAD, head)
        return _Mode("closing", mode.mark) if closes else mode
    if token in NEWLINE:
        if mode.name == "info":
            return _Mode("fence", mode.mark)
        return PLAIN if not head.strip() else mode  # an empty line ends a span that was never closed
    if token[0] not in "`~":
        return mode
    return mode_after_run(mode, token, head)


def mode_after_run(mode: _Mode, token: str, head: str) -> _Mode:
    """Of marks outside a fence: blocks come before spans, as in Markdown."""
    if len(token) >= FENCE_CHARACTERS and is_all(OPENING_HEAD, head):
        return _Mode("fence" if token[0] == "~" else "info", token)
    if token[0] == "~":
        return mode
    if mode is PLAIN:
        return _Mode("span", token)
    # A fence's first line holds no backtick, so that it was a span all the time.
    return PLAIN if len(token) == len(mode.mark) else _Mode("span", mode.mark)


def is_all(pattern: re.Pattern[str], head: str) -> bool:
    return len(head) <= HEAD_CHARACTERS and pattern.fullmatch(head) is not None


def command_from(source: str) -> Command | None:
    """None for one that names nothing."""
    inner = source[2:-1]
    is_effect = source[0] == "%" or inner.startswith("!")
    # Not at the end: a backslash there may belong to the space behind it.
    body = (inner.removeprefix("!") if source[0] == "!" else inner).lstrip()
    return Command("effect" if is_effect else "capture", source, body) if body else None
