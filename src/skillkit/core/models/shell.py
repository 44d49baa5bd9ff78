"""Text of a shell -> its simple commands and their words; nothing is expanded and nothing is run.

Theory of operation. One regular expression takes the next sign (a quotation, an operator, a plain piece) from left to
right; every alternative ends at what it finds, at a bound or at the end of the text, so no character is looked at
twice. Signs build up the word of the innermost command; a gap ends the word, an operator the command. Two dialects
differ in what is left open:

- a script is read as a shell reads it: substitutions are commands of their own, whose place in the word around them
  is taken by `{}`; a quote that never closes reaches to the end; a document (`<<A`) without its end is none, because
  a shift in arithmetic looks the same;
- prose, such as a skill's instructions, is written for people: `<file>` is a word to be filled in, an apostrophe
  opens no quote where none closes it, a substitution is a piece of its word, and what stands behind the start of a
  document is never taken for commands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

__all__ = ["SUBSTITUTED", "Command", "Word", "commands_in", "split_words"]

SUBSTITUTED = "{}"
"""Stands in a word for the output of a command."""
DOCUMENTS = 100  # each is searched for its end
DOCUMENTS_IN_ONE_LINE = 4
COMMENT_CHARACTERS = 1_000

_SIGNS = r"""
      (?P<arithmetic>\$?\(\([^()\n]{{0,500}}\)\))
    | (?P<document><<-?[ \t]*['"\\]?(?P<tag>[A-Za-z_][\w.-]{{0,60}})['"]?(?!<))
    | (?P<newline>\n)
    | (?P<gap>(?:[ \t\r\f\v]|\\\r?\n)+)
    | (?P<coded>\$'(?:[^'\\]|\\.)*'{unclosed})
    | (?P<single>'[^']*'{unclosed})
    | (?P<double>\$?"(?:[^"\\]|\\.)*"{unclosed})
    | {dialect}
    | (?P<expansion>\$\{{[^}}\n]{{0,200}}\}}?|\$[A-Za-z_0-9@*\#?!]\w{{0,100}})
    | (?P<open>\()
    | (?P<close>\))
    | (?P<redirect>&>{{1,2}}|[0-9]?(?:<<<|>{{1,2}}\|?|<>?)(?:&[0-9-])?)
    | (?P<operator>\|\||\|&?|;+&?|&{{1,2}})
    | (?P<escaped>\\.)
    | (?P<plain>[^\s'"\\;|&()`\#<>$]+|.)
"""
_IN_SCRIPT = r"(?P<substitution>[$<>]\() | (?P<tick>`)"
_IN_PROSE = r"(?P<example><[A-Za-z][^<>\n|&;]{0,80}>) | (?P<substituted>`[^`\n]*`|\$\([^()\n]{0,500}\))"
SCRIPT_SIGN = re.compile(_SIGNS.format(unclosed="?", dialect=_IN_SCRIPT), re.VERBOSE | re.DOTALL)
PROSE_SIGN = re.compile(_SIGNS.format(unclosed="", dialect=_IN_PROSE), re.VERBOSE | re.DOTALL)

EXPANDED_IN_QUOTES = re.compile(r"(?<!\\)(?:`|\$[\w({@*#?!])")
EXPANDED_OUTSIDE = re.compile(r"[*?]|^~|\{[^{}]*,[^{}]*\}")
ESCAPED_IN_QUOTES = re.compile(r'\\(["\\$`\n])')
CODED = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|(.))", re.DOTALL)
CODE_BASES = (16, 16, 8)

WORD_PIECE = re.compile(
    r"""(?P<gap>[ \t\r\n]+)|(?P<quoted>'[^']*'|"(?:[^"\\]|\\.)*"|\\.)|(?P<unclosed>['"\\])|(?P<brace>[{}])"""
    r"""|(?P<plain>[^ \t\r\n'"\\{}]+)""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Word:
    """One word; `text` is without its quotes."""

    text: str
    is_literal: bool
    """Whether a shell would pass on exactly this text."""
    source: str = field(repr=False)
    start: int
    end: int

    @property
    def raw(self) -> str:
        """As it is written. Cut out when asked for: words around substitutions overlap."""
        return self.source[self.start : self.end]

    @property
    def is_quoted(self) -> bool:
        return self.source[self.start] in "'\""


@dataclass(slots=True)
class Command:
    """A program and its arguments, as written."""

    line: int
    words: list[Word] = field(default_factory=list)
    writes: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    documents: list[tuple[int, str]] = field(default_factory=list)
    """Texts fed to it by `<<`, each with its first line."""
    comment: str = ""
    """Beside it, or on the line above."""
    is_plain: bool = True
    """Whether it means the same by itself: no pipe, redirection, alternative, group, background."""
    piped_from: Command | None = None
    inside: str = ""
    """The program whose word it is a substitution in."""


@dataclass(slots=True)
class _Building:
    """A command that is being read, and its word so far."""

    command: Command
    opened_by: str = ""
    opened_at: int = 0
    start: int = -1
    """Of the word; -1 between words."""
    pieces: list[str] = field(default_factory=list)
    is_literal: bool = True
    redirect: str = ""


def commands_in(text: str, line: int = 1, *, is_prose: bool = False) -> list[Command]:
    """In the order in which they end; never fails, whatever the text."""
    return _Reader(text, line, is_prose=is_prose).read()


class _Reader:
    def __init__(self, text: str, line: int, *, is_prose: bool) -> None:
        self.text, self.line, self.is_prose = text, line, is_prose
        self.here = _Building(Command(line))
        self.outer: list[_Building] = []
        self.done: list[Command] = []
        self.braces = self.documents = 0
        self.pending: list[tuple[str, Command]] = []
        """Documents announced on this line."""
        self.comment = self.comment_above = ""

    def read(self) -> list[Command]:
        sign_at = (PROSE_SIGN if self.is_prose else SCRIPT_SIGN).match
        at = 0
        while match := sign_at(self.text, at):
            at = match.end()
            if match[0] == "#" and self.here.start < 0:
                at = self.pass_comment(match.start())
            elif match.lastgroup == "newline":
                self.line += 1
                at = self.end_line(at, match.start())
            else:
                self.take(match.lastgroup or "", match)
                self.line += match[0].count("\n")
        self.end_command(len(self.text))
        while self.outer:
            self.here = self.outer.pop()
            self.end_command(len(self.text))
        return self.done

    def take(self, kind: str, match: re.Match[str]) -> None:
        sign, start = match[0], match.start()
        if kind == "gap":
            self.end_word(start)
        elif kind == "operator":
            self.end_command(start, sign)
        elif kind == "redirect":
            self.end_word(start)
            self.here.command.is_plain = False
            if not sign[-1].isdigit() and sign[-1] != "-":  # `2>&1` is followed by no file
                self.here.redirect = sign
        elif kind == "document":
            self.announce_document(match["tag"], start)
        elif kind == "close" or (kind == "tick" and self.here.opened_by == "`"):
            self.close(start)
        elif kind in ("open", "substitution", "tick"):
            self.open(sign, start)
        elif self.here.start < 0 and sign in ("{", "}"):
            self.braces = max(0, self.braces + (1 if sign == "{" else -1))
            self.end_command(start)
        else:
            self.add(*_piece(kind, sign), start)

    def add(self, text: str, is_literal: bool, start: int) -> None:
        here = self.here
        here.start = start if here.start < 0 else here.start
        here.is_literal = here.is_literal and is_literal
        here.pieces.append(text)

    def end_word(self, end: int) -> None:
        here = self.here
        if here.start < 0:
            return
        word = Word("".join(here.pieces), here.is_literal, self.text, here.start, end)
        if not here.redirect:
            here.command.words.append(word)
        else:
            (here.command.writes if ">" in here.redirect else here.command.reads).append(word.text)
        here.start, here.pieces, here.is_literal, here.redirect = -1, [], True, ""

    def end_command(self, end: int, operator: str = "") -> None:
        """And begin the next one."""
        self.end_word(end)
        self.here.redirect = ""
        done = self.here.command
        is_pipe = operator in ("|", "|&")
        if is_pipe or operator == "&":
            done.is_plain = False
        done.comment = " ".join(filter(None, (self.comment_above, self.comment)))
        if done.words or done.writes or done.reads:
            self.done.append(done)
        self.here.command = Command(
            self.line,
            is_plain=not (is_pipe or operator == "||" or self.here.opened_by or self.braces),
            piped_from=done if is_pipe else None,
            inside=done.inside,
        )

    def pass_comment(self, at: int) -> int:
        """Where it ends; `#` inside a word starts none."""
        end = self.text.find("\n", at)
        end = len(self.text) if end < 0 else end
        self.comment = self.text[at : min(end, at + COMMENT_CHARACTERS)]
        return end

    def end_line(self, at: int, end: int) -> int:
        """Where the next line with commands begins: behind the documents announced on this one."""
        self.end_word(end)
        for tag, command in self.pending:
            found = re.compile(rf"^[\t ]*{re.escape(tag)}[ \t\r]*$", re.MULTILINE).search(self.text, at)
            if found or self.is_prose:
                body = self.text[at : found.start() if found else len(self.text)]
                command.documents.append((self.line, body))
                self.line += body.count("\n")
                at = found.end() if found else len(self.text)
        self.pending.clear()
        has_words = bool(self.here.command.words)
        self.end_command(end)
        self.comment_above, self.comment = "" if has_words else self.comment, ""
        return at

    def announce_document(self, tag: str, start: int) -> None:
        self.end_word(start)
        self.here.command.is_plain = False
        if len(self.pending) < DOCUMENTS_IN_ONE_LINE and self.documents < DOCUMENTS:
            self.documents += 1
            self.pending.append((tag, self.here.command))

    def open(self, sign: str, start: int) -> None:
        around = self.here.command
        if sign not in ("$(", "`"):
            self.end_word(start)
            around.is_plain = False
        inside = around.inside if sign == "(" else around.words[0].text if around.words else ""
        self.outer.append(self.here)
        self.here = _Building(Command(self.line, is_plain=False, inside=inside), sign, start)

    def close(self, start: int) -> None:
        if not self.outer:  # as after the pattern of a case
            self.here.command.is_plain = False
            self.end_command(start)
            return
        self.end_command(start)
        closed, self.here = self.here, self.outer.pop()
        if closed.opened_by != "(":
            self.add(SUBSTITUTED, False, closed.opened_at)


def _piece(kind: str, sign: str) -> tuple[str, bool]:
    """What a sign adds to its word, and whether a shell would pass on exactly that."""
    if kind == "escaped":
        return sign[1:], True
    if kind == "plain":
        is_broken = sign in ("'", '"', "`")
        return sign, not is_broken and not EXPANDED_OUTSIDE.search(sign)
    if kind not in ("single", "double", "coded"):
        return sign, False
    quoted = sign.removeprefix("$")
    is_closed = len(quoted) > 1 and quoted[-1] == quoted[0]
    inner = quoted[1:-1] if is_closed else quoted[1:]
    if kind == "single":
        return inner, is_closed
    if kind == "coded":
        return CODED.sub(_coded_character, inner), False
    return ESCAPED_IN_QUOTES.sub(r"\1", inner), is_closed and not EXPANDED_IN_QUOTES.search(sign)


def _coded_character(code: re.Match[str]) -> str:
    r"""`c` for `\x63` and `\143`, as the shell reads `$'...'`."""
    at = (code.lastindex or 4) - 1
    return chr(int(code[at + 1], CODE_BASES[at])) if at < len(CODE_BASES) else code[4]


def split_words(text: str, *, keeps_braces: bool = False) -> list[str] | None:
    """The words of a line of arguments, quoted as POSIX quotes; None where a quote or a backslash is left open.

    As `shlex.split`, which takes half a minute for one long word; this looks at each character once.
    `keeps_braces`: what stands between braces outside quotes stays as it is written, so that JSON needs no quotes.
    """
    words: list[str] = []
    pieces: list[str] = []
    depth = 0
    for match in WORD_PIECE.finditer(text):
        kind, sign = match.lastgroup, match[0]
        if kind == "unclosed":
            return None
        if kind == "gap" and not depth:
            words += ["".join(pieces)] if pieces else []
            pieces = []
            continue
        if kind == "brace" and keeps_braces:
            depth = max(0, depth + (1 if sign == "{" else -1))
        pieces.append(_unquote(sign) if kind == "quoted" and not depth else sign)
    words += ["".join(pieces)] if pieces else []
    return words if not depth else None


def _unquote(piece: str) -> str:
    if piece[0] == '"':
        return re.sub(r'\\(["\\])', r"\1", piece[1:-1])
    return piece[1:-1] if piece[0] == "'" else piece[1:]
