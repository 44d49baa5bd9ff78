"""Shell text -> its simple commands: words without quotes, where they write, what they are piped from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = ["SUBSTITUTED", "Command", "commands_in"]

DOCUMENTS = 100  # each is searched for its end
DOCUMENTS_A_LINE = 4
WORD_LIMIT = 4_000  # characters
SUBSTITUTED = "{}"
"""Stands in a word for the output of a command."""

# Every alternative ends at what it finds or at the end of the text: nothing is looked at twice.
TOKEN = re.compile(
    r"""
      (?P<comment>(?<![^\s;&|()`])\#[^\n]*)
    | (?P<arithmetic>\$?\(\([^()\n]{0,500}\)\))
    | (?P<heredoc><<-?[ \t]*(?P<quote>['"\\]?)(?P<tag>[A-Za-z_]\w{0,60})['"]?(?!<))
    | (?P<newline>\n)
    | (?P<gap>(?:[ \t\r\f\v]|\\\r?\n)+)
    | (?P<escaped>\$'(?:[^'\\]|\\.)*'?)
    | (?P<single>'[^']*'?)
    | (?P<double>\$?"(?:[^"\\]|\\.)*"?)
    | (?P<parameter>\$\{[^}\n]{0,200}\}?)
    | (?P<open>\$\(|\()
    | (?P<close>\))
    | (?P<tick>`)
    | (?P<redirect>&>{1,2}|[0-9]?(?:<<<|>{1,2}\|?|<>?)(?:&[0-9-])?)
    | (?P<pipe>\|&?(?!\|))
    | (?P<end>;+&?|&{1,2}|\|\|)
    | (?P<bare>\\.|[^\s'"\\;|&()`\#<>$]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)

ESCAPE = re.compile(
    r"\\(?:x(?P<byte>[0-9a-fA-F]{1,2})|u(?P<wide>[0-9a-fA-F]{1,4})|(?P<octal>[0-7]{1,3})|(?P<other>.))", re.DOTALL
)
BASES = {"byte": 16, "wide": 16, "octal": 8}


@dataclass(slots=True)
class Command:
    """One simple command; `inside` is the program whose word a substitution is part of."""

    line: int
    words: list[str] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    documents: list[tuple[int, str]] = field(default_factory=list)
    """Texts fed to it by `<<`, each with its first line."""
    piped_from: Command | None = None
    inside: str = ""
    word: str | None = None
    redirect: str = ""

    def end_word(self) -> None:
        if self.word is None:
            return
        place = self.words if not self.redirect else self.writes if ">" in self.redirect else self.reads
        place.append(self.word)
        self.word, self.redirect = None, ""

    def add(self, text: str) -> None:
        word = self.word or ""
        self.word = word + text if len(word) < WORD_LIMIT else word


@dataclass(slots=True)
class Reader:
    """The state between two tokens: the command being read, and those around it."""

    text: str
    line: int
    command: Command
    outer: list[tuple[str, Command]] = field(default_factory=list)
    pending: list[tuple[str, Command]] = field(default_factory=list)
    """Documents announced on this line."""
    documents: int = 0

    def finished(self, following: Command) -> Iterator[Command]:
        self.command.end_word()
        done, self.command = self.command, following
        if done.words or done.writes or done.reads:
            yield done


def commands_in(text: str, line: int = 1) -> Iterator[Command]:
    """In the order in which they end; quotes that never close end with the text."""
    reader = Reader(text, line, Command(line))
    at = 0
    while match := TOKEN.match(text, at):
        at = match.end()
        if match.lastgroup == "newline":
            reader.line += 1
            at = _past_documents(reader, at)
            yield from _end(reader, match)
        else:
            yield from STEPS[match.lastgroup or "bare"](reader, match)
            reader.line += match[0].count("\n")
    yield from reader.finished(Command(reader.line))
    while reader.outer:
        _, reader.command = reader.outer.pop()
        yield from reader.finished(Command(reader.line))


def _past_documents(reader: Reader, at: int) -> int:
    """Where the commands go on; a document without its end is none: `1 << x` looks the same."""
    for tag, command in reader.pending:
        end = re.compile(rf"^[\t ]*{tag}[ \t\r]*$", re.MULTILINE).search(reader.text, at)
        if end:
            body = reader.text[at : end.start()]
            command.documents.append((reader.line, body))
            reader.line += body.count("\n")
            at = end.end()
    reader.pending.clear()
    return at


def _skip(_reader: Reader, _match: re.Match[str]) -> Iterator[Command]:
    yield from ()


def _add(reader: Reader, match: re.Match[str]) -> Iterator[Command]:
    command, text = reader.command, match[0]
    if text in ("{", "}") and command.word is None:
        yield from reader.finished(Command(reader.line))
        return
    command.add(text.removeprefix("\\"))


def _add_quoted(reader: Reader, match: re.Match[str]) -> Iterator[Command]:
    yield from ()
    text = match[0].removeprefix("$")
    inner = text[1:-1] if len(text) > 1 and text.endswith(text[0]) else text[1:]
    if match.lastgroup == "escaped":
        inner = unescaped(inner)
    elif match.lastgroup == "double":
        inner = inner.replace('\\"', '"')
    reader.command.add(inner)


def unescaped(text: str) -> str:
    r"""`curl` for `\x63url` and `\143url`, as the shell reads `$'...'`."""
    return ESCAPE.sub(_character, text)


def _character(escape: re.Match[str]) -> str:
    kind = escape.lastgroup or "other"
    return chr(int(escape[kind], BASES[kind])) if kind in BASES else escape[kind]


def _gap(reader: Reader, _match: re.Match[str]) -> Iterator[Command]:
    yield from ()
    reader.command.end_word()


def _end(reader: Reader, _match: re.Match[str]) -> Iterator[Command]:
    yield from reader.finished(Command(reader.line, inside=reader.command.inside))


def _pipe(reader: Reader, _match: re.Match[str]) -> Iterator[Command]:
    source = reader.command
    yield from reader.finished(Command(reader.line, piped_from=source, inside=source.inside))


def _open(reader: Reader, match: re.Match[str]) -> Iterator[Command]:
    yield from ()
    outer = reader.command
    program = outer.words[0] if outer.words else ""
    reader.outer.append((match[0], outer))
    reader.command = Command(reader.line, inside=program)


def _close(reader: Reader, match: re.Match[str]) -> Iterator[Command]:
    if not reader.outer:  # as after the pattern of a case
        yield from _end(reader, match)
        return
    opened, outer = reader.outer.pop()
    yield from reader.finished(outer)
    if opened != "(":
        outer.add(SUBSTITUTED)


def _tick(reader: Reader, match: re.Match[str]) -> Iterator[Command]:
    is_closing = bool(reader.outer) and reader.outer[-1][0] == "`"
    yield from _close(reader, match) if is_closing else _open(reader, match)


def _redirect(reader: Reader, match: re.Match[str]) -> Iterator[Command]:
    yield from ()
    reader.command.end_word()
    if not match[0][-1].isdigit() and not match[0].endswith("-"):  # `2>&1` is followed by no file
        reader.command.redirect = match[0]


def _document(reader: Reader, match: re.Match[str]) -> Iterator[Command]:
    yield from ()
    reader.command.end_word()
    if len(reader.pending) < DOCUMENTS_A_LINE and reader.documents < DOCUMENTS:
        reader.documents += 1
        reader.pending.append((match["tag"], reader.command))


STEPS = {
    "comment": _skip,
    "arithmetic": _add,
    "heredoc": _document,
    "gap": _gap,
    "escaped": _add_quoted,
    "single": _add_quoted,
    "double": _add_quoted,
    "parameter": _add,
    "open": _open,
    "close": _close,
    "tick": _tick,
    "redirect": _redirect,
    "pipe": _pipe,
    "end": _end,
    "bare": _add,
}
