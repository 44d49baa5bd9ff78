"""Text of a shell -> its simple commands, each as words; nothing is expanded and nothing is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["SimpleCommand", "Word", "simple_commands", "typed_at_prompts"]

# One pass from left to right; what may be long is bounded, so that no text makes it slow.
TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|\\\r?\n)
    |(?P<newline>\n)
    |(?P<comment>\#[^\n]*)
    |(?P<example><[A-Za-z][^<>\n|&;]{0,80}>)
    |(?P<operator>&&|\|\||;;?|\|&?|&>>?|&|\d?>>?(?:&\d)?|<<<|<<-?|<|[()])
    |(?P<single>'[^']*')
    |(?P<double>"(?:[^"\\]|\\.)*")
    |(?P<expansion>`[^`\n]*`|\$\([^()\n]{0,500}\)|\$\{[^}\n]{0,200}\}|\$[A-Za-z_0-9@*\#?!]\w{0,100})
    |(?P<escaped>\\.)
    |(?P<plain>[^\s'"`$\\&|;<>()\#]+|.)""",
    re.VERBOSE | re.DOTALL,
)
IN_WORD = re.compile(r"(?P<plain>\#)")
COMMENT_CHARACTERS = 1_000
EXPANDED_IN_QUOTES = re.compile(r"(?<!\\)(?:`|\$[\w({@*#?!])")
EXPANDED_OUTSIDE = re.compile(r"[*?]|^~|\{[^{}]*,[^{}]*\}")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
PROMPT = re.compile(r"[ \t]*(?:[$%\u276f\u279c]|PS [^>\n]{0,80}>)[ \t]+")
OPENING = frozenset("if for while until case select function {".split())
CLOSING = frozenset("fi done esac }".split())
SHAPING = OPENING | CLOSING | frozenset("then do else elif ! time".split())


@dataclass(frozen=True, slots=True)
class Word:
    """One word; `text` is without its quotes."""

    text: str
    raw: str
    is_literal: bool
    """Whether a shell would pass on exactly this text."""

    @property
    def is_quoted(self) -> bool:
        return self.raw[:1] in ("'", '"')


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A program and its arguments, as written."""

    words: tuple[Word, ...]
    is_plain: bool
    """Whether it means the same by itself: no pipe, redirection, condition, loop, variable set, background."""
    comment: str
    """Beside it, or on the line above."""


@dataclass(slots=True)
class _Reading:
    """What was seen so far of the command that is being read."""

    depth: int = 0
    words: list[Word] = field(default_factory=list)
    pieces: list[tuple[str, str]] = field(default_factory=list)
    is_plain: bool = True
    is_next_plain: bool = True
    comment_above: str = ""
    comment: str = ""
    here_documents: list[str] = field(default_factory=list)
    is_delimiter_next: bool = False

    def end_word(self) -> None:
        if not self.pieces:
            return
        word = word_from(self.pieces)
        self.pieces = []
        if self.is_delimiter_next:
            self.here_documents.append(word.text)
            self.is_delimiter_next = False
            return
        self.words.append(word)

    def ended(self) -> SimpleCommand | None:
        """The command without the words that only shape the flow."""
        words, is_plain = self.words, self.is_plain and not self.depth
        self.words, self.is_plain = [], self.is_next_plain
        self.is_next_plain = True
        start = 0
        while start < len(words) and is_shaping(words[start]):
            first = words[start].text
            self.depth = max(0, self.depth + (first in OPENING) - (first in CLOSING))
            start, is_plain = start + 1, False
        if start == len(words):
            return None
        comment = " ".join(filter(None, (self.comment_above, self.comment)))
        return SimpleCommand(tuple(words[start:]), is_plain, comment)


def is_shaping(word: Word) -> bool:
    """Whether it is no program: a word of a loop or condition, or a variable that is set."""
    return word.text in SHAPING or ASSIGNMENT.match(word.raw) is not None


def simple_commands(text: str) -> Iterator[SimpleCommand]:
    """In order; a quote that is never closed leaves a word that is not literal."""
    reading, position = _Reading(), 0
    pending: list[SimpleCommand] = []
    while position < len(text):
        # A sign inside a word starts no comment.
        match = (IN_WORD if reading.pieces and text[position] == "#" else TOKEN).match(text, position)
        assert match is not None  # noqa: S101 - the last alternative takes any character
        kind, token = match.lastgroup or "", match[0]
        position = match.end()
        if kind == "comment":
            reading.comment = token[:COMMENT_CHARACTERS]
        elif kind in ("space", "newline", "operator"):
            reading.end_word()
            if kind != "space":
                pending += operated(reading, token)
        else:
            reading.pieces.append((kind, token))
        if kind == "newline":
            yield from pending
            pending = []
            position = after_here_documents(reading, text, position)
    reading.end_word()
    last = reading.ended()
    yield from (*pending, last) if last else pending


def operated(reading: _Reading, operator: str) -> Iterator[SimpleCommand]:
    """What an operator or the end of a line does to the command before and the one after it."""
    if operator.startswith("<<") and operator != "<<<":
        reading.is_plain, reading.is_delimiter_next = False, True
        return
    if "<" in operator or ">" in operator:
        reading.is_plain = False
        return
    if operator in ("|", "|&", "&", "(", ")"):
        reading.is_plain = False
    if operator in ("|", "|&", "||", "("):
        reading.is_next_plain = False
    has_words = bool(reading.words)
    if command := reading.ended():
        yield command
    if operator == "\n":
        reading.comment_above = "" if has_words else reading.comment
        reading.comment = ""


def after_here_documents(reading: _Reading, text: str, position: int) -> int:
    """Behind the lines that are input and not commands."""
    for delimiter in reading.here_documents:
        while position < len(text):
            end = text.find("\n", position)
            end = len(text) if end < 0 else end
            line = text[position:end]
            position = end + 1
            if line.strip() == delimiter:
                break
    reading.here_documents = []
    return position


def word_from(pieces: list[tuple[str, str]]) -> Word:
    raw = "".join(token for _, token in pieces)
    text, is_literal = "", True
    for kind, token in pieces:
        if kind == "single":
            text += token[1:-1]
        elif kind == "double":
            is_literal = is_literal and not EXPANDED_IN_QUOTES.search(token)
            text += re.sub(r'\\(["\\$`\n])', r"\1", token[1:-1])
        elif kind == "escaped":
            text += token[1:]
        else:
            is_broken = kind == "plain" and token in ("'", '"', "`")
            is_literal = is_literal and kind == "plain" and not is_broken and not EXPANDED_OUTSIDE.search(token)
            text += token
    return Word(text, raw, is_literal)


def typed_at_prompts(text: str) -> str:
    """Where prompts are shown, only what is typed at them; what is printed becomes empty lines."""
    lines = text.split("\n")
    if not any(PROMPT.match(line) for line in lines):
        return text
    kept, goes_on = [], False
    for line in lines:
        prompt = PROMPT.match(line)
        typed = line[prompt.end() :] if prompt else line if goes_on else ""
        goes_on = typed.rstrip("\r").endswith("\\")
        kept.append(typed)
    return "\n".join(kept)
