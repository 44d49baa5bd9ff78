"""A part of a script -> its lines in colour, with what hides made visible; bounded in time and size."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import groupby

from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]  # it brings no types
from pygments.token import Comment, Keyword, Name, Number, Operator, String  # type: ignore[import-untyped]

from skillkit.present.terminal import escaped, is_plain
from skillkit.web.markup import Child, tag

__all__ = ["colored_lines", "marked"]

# A lexer is a heap of regular expressions, and the text is a stranger's: it gets little of it, and little time.
MOST_CHARACTERS = 40_000
LONGEST_LINE = 1_000
MOST_SECONDS = 0.3

LEXERS = {
    "py": "python", "sh": "bash", "bash": "bash", "zsh": "bash", "js": "javascript", "mjs": "javascript",
    "cjs": "javascript", "ts": "typescript", "rb": "ruby", "pl": "perl", "ps1": "powershell", "bat": "batch",
    "cmd": "batch",
}  # fmt: skip
SHEBANGS = {"python": "python", "bash": "bash", "/sh": "bash", "node": "javascript", "ruby": "ruby", "perl": "perl"}
CLASSES = (
    (Comment, "c"), (String, "s"), (Keyword, "k"), (Number, "m"), (Name.Builtin, "b"), (Name.Function, "f"),
    (Name.Class, "f"), (Name.Decorator, "d"), (Operator.Word, "k"),
)  # fmt: skip

Piece = tuple[str, str]
"""A class, or none, and the text that has it."""


def colored_lines(lines: list[str], script: str, first_line: str) -> Iterator[Child]:
    """One child for each line; colour says nothing that the text does not."""
    language = language_of(script, first_line)
    text = "\n".join(lines)
    is_small = len(text) <= MOST_CHARACTERS and max(map(len, lines), default=0) <= LONGEST_LINE
    pieces = lexed(text, language) if language and is_small else [("", text)]
    for line in split_lines(pieces):
        yield [tag("span", marked(part), class_=kind) if kind else marked(part) for kind, part in line]


def language_of(script: str, first_line: str) -> str:
    _, dot, suffix = script.rpartition(".")
    if dot and suffix.lower() in LEXERS:
        return LEXERS[suffix.lower()]
    if first_line.startswith("#!"):
        return next((name for program, name in SHEBANGS.items() if program in first_line), "")
    return ""


def lexed(text: str, language: str) -> Iterator[Piece]:
    """When the time is over, the rest comes without colour; all of the text comes in any case."""
    until = time.monotonic() + MOST_SECONDS
    done = 0
    for at, kind, part in get_lexer_by_name(language).get_tokens_unprocessed(text):
        if at != done or time.monotonic() > until:
            break
        done += len(part)
        yield class_of(kind), part
    if done < len(text):
        yield "", text[done:]


def class_of(kind: object) -> str:
    return next((name for group, name in CLASSES if kind in group), "")


def split_lines(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    line: list[Piece] = []
    for kind, text in pieces:
        first, *others = text.split("\n")
        line.append((kind, first))
        for other in others:
            yield line
            line = [(kind, other)]
    yield line


def marked(text: str) -> Child:
    """What a reader would not see is written out and set apart from text that only looks like that."""
    if text.isascii() and text.isprintable():
        return text
    return [
        "".join(run) if plain else tag("mark", "".join(map(escaped, run)), class_="unseen")
        for plain, run in groupby(text, is_plain)
    ]
