"""A command's source -> numbered lines in colour, a part at a time; bounded in time and size."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from pygments.lexers import get_lexer_by_name  # type: ignore[import-untyped]  # it brings no types
from pygments.token import Comment, Keyword, Name, Number, Operator, String  # type: ignore[import-untyped]

from skillkit.core.values.questions import Prompt

__all__ = ["Part", "colored_lines", "lines_with", "part_of", "part_of_text"]

PART_LINES = 400
FEWEST_LINES = 20
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


@dataclass(frozen=True, slots=True)
class Part:
    """Some lines of the source of command `number`; `number` and `start` count from 1, `flagged` lines have risks."""

    number: int
    script: str
    start: int
    lines: list[str]
    total: int
    first_line: str
    flagged: frozenset[int]

    @property
    def end(self) -> int:
        return self.start + len(self.lines) - 1

    @property
    def start_before(self) -> int:
        return max(1, self.start - PART_LINES)

    def rows(self) -> Iterator[tuple[int, list[Piece]]]:
        """Each line's number, and the line in pieces."""
        return enumerate(colored_lines(self.lines, self.script, self.first_line), self.start)


def part_of(prompt: Prompt, number: int, start: int = 1, *, shared_by: int = 1) -> Part:
    """Of the source of one command, what fits on one page, shared by all sources that stand there."""
    command = prompt.commands[number - 1]
    flagged = frozenset(risk.line for risk in prompt.risks if risk.path == command.script)
    return part_of_text(command.source, command.script, flagged, number=number, start=start, shared_by=shared_by)


def part_of_text(
    text: str, name: str, flagged: frozenset[int], *, number: int = 1, start: int = 1, shared_by: int = 1
) -> Part:
    lines = _lines_of(text)
    start = max(1, min(start, len(lines)))
    shown = lines[start - 1 : start - 1 + max(PART_LINES // shared_by, FEWEST_LINES)]
    return Part(number, name, start, shown, len(lines), lines[0] if lines else "", flagged)


def lines_with(text: str, wanted: str, most: int) -> list[tuple[int, str]]:
    """The first lines that hold it, in whichever case, each with its number."""
    small = wanted.casefold()
    found = ((at, line) for at, line in enumerate(_lines_of(text), 1) if small in line.casefold())
    return [(at, line[:LONGEST_LINE]) for at, line in islice(found, most)]


def _lines_of(text: str) -> list[str]:
    return text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []


def colored_lines(lines: list[str], script: str, first_line: str) -> Iterator[list[Piece]]:
    """Colour says nothing that the text does not."""
    language = _language_of(script, first_line)
    text = "\n".join(lines)
    is_small = len(text) <= MOST_CHARACTERS and max(map(len, lines), default=0) <= LONGEST_LINE
    pieces = list(_lex(text, language)) if language and is_small else [("", text)]  # only the lexer's time counts
    return _split_lines(pieces)


def _language_of(script: str, first_line: str) -> str:
    _, dot, suffix = script.rpartition(".")
    if dot and suffix.lower() in LEXERS:
        return LEXERS[suffix.lower()]
    if first_line.startswith("#!"):
        return next((name for program, name in SHEBANGS.items() if program in first_line), "")
    return ""


def _lex(text: str, language: str) -> Iterator[Piece]:
    """When the time is over, the rest comes without colour; all of the text comes in any case."""
    tokens = get_lexer_by_name(language).get_tokens_unprocessed(text)
    done, until = 0, time.monotonic() + MOST_SECONDS
    for at, kind, part in tokens:
        if at != done or time.monotonic() > until:
            break
        done += len(part)
        yield next((name for group, name in CLASSES if kind in group), ""), part
    if done < len(text):
        yield "", text[done:]


def _split_lines(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    line: list[Piece] = []
    for kind, text in pieces:
        first, *others = text.split("\n")
        line.append((kind, first))
        for other in others:
            yield line
            line = [(kind, other)]
    yield line
