"""A model's text as it comes -> the same with its Markdown shown as a terminal can: bold, bullets, code, tables.

Theory of operation. Words flow at once. Held back is only what cannot be told yet: the first characters of a line until
it is known what kind of line it is, a span from its opening sign to its closing one, and the rows of a table. A span
that is not closed within a bound, or by the end of its line, is text. However the text is cut into chunks, the same
comes out. What comes in is harmless already; every sequence that goes out is our own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from skillkit.present.terminal import width_of

__all__ = ["Markdown"]

LONGEST_SPAN = 400
DEEPEST = 4
MOST_ROWS = 200
BOLD, ITALIC, UNDERLINED, STRUCK, CODE, PLAIN = "\x1b[1m", "\x1b[3m", "\x1b[4m", "\x1b[9m", "\x1b[36m", "\x1b[0m"
BULLET, BAR, RULE = "•", "│", "─"
CODE_INDENT = "  "
RULE_COLUMNS = 24
SPANS = {"***": BOLD + ITALIC, "___": BOLD + ITALIC, "**": BOLD, "__": BOLD, "*": ITALIC, "_": ITALIC, "~~": STRUCK}
ESCAPABLE = frozenset("\\`*_{}[]()#+-.!|~>")
SIGNS = re.compile(r"[\\`*_~\[]")
# What a line may be while only its beginning is known.
OPEN_START = re.compile(r" {0,3}(?:#{1,6}[ \t]*|[`~]{1,2}|(?:`{3,}|~{3,})[^`\n]*|\|.*)?")
OPEN_ITEM = re.compile(r"\s*(?:[-*+][ \t]*)?")
RULER = re.compile(r" {0,3}([-*_])(?:[ \t]*\1)*[ \t]*")
HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(?=\S)")
ITEM = re.compile(r"(\s*)[-*+][ \t]+(?=\S)")
QUOTE = re.compile(r" {0,3}>[ \t]?")
QUOTES = re.compile(r"^(?: {0,3}>[ \t]?)+")
FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[^`]*")
CLOSING = re.compile(r" {0,3}(?:`*|~*)[ \t]*")
DIVIDER = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\(([^()\s]{1,190})\)")
OPEN_LINK = re.compile(r"\[[^\[\]\n]{0,200}(?:\]|\]\([^()\s]{0,190})?")
LEAST_RULE = 3


class Markdown:
    """One text; `columns` is how wide a table may be."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._held = ""
        self._line: _Line | None = None  # what is being written, once that is known
        self._fence = ""
        self._rows: list[str] = []
        self._before = ""

    def feed(self, text: str) -> str:
        """What can be shown now."""
        *lines, rest = text.split("\n")
        return "".join([*(self._add(line, is_end=True) for line in lines), self._add(rest, is_end=False)])

    def finish(self, *, is_over: bool = True) -> str:
        """What is left; the next text is another one, unless it is not over: then something comes between."""
        shown = self._add("", is_end=True, newline="") if self._held or self._line else ""
        self._fence = "" if is_over else self._fence
        return shown + self._table()

    def _add(self, text: str, *, is_end: bool, newline: str = "\n") -> str:
        self._held += text
        shown = ""
        if self._line is None:
            shown, self._line = self._begin(is_end=is_end)
            if self._line is None:
                if is_end:
                    self._held = ""
                return shown
            shown += self._line.style
        shown += self._flow(self._line, is_end=is_end)
        if is_end:
            shown += f"{PLAIN if self._line.style else ''}{newline}"
            self._line, self._before = None, ""
        return shown

    def _flow(self, line: _Line, *, is_end: bool) -> str:
        if line.is_code:
            text, self._held = self._held, ""
            return text
        rendered, used = _inline(self._held, line.style, self._before, is_end=is_end)
        self._before = self._held[used - 1] if used else self._before
        self._held = self._held[used:]
        return rendered

    def _begin(self, *, is_end: bool) -> tuple[str, _Line | None]:
        """What kind of line it is, once that is certain; what of it is not text is taken away."""
        line = self._held
        if self._fence:
            return self._in_fence(line, is_end=is_end)
        quoted = QUOTES.sub("", line)
        if not is_end and any(pattern.fullmatch(quoted) for pattern in (OPEN_START, OPEN_ITEM, RULER)):
            return "", None
        if line.lstrip(" ").startswith("|") and len(self._rows) < MOST_ROWS:
            self._rows.append(line)
            return "", None
        table = self._table()
        if fence := FENCE.fullmatch(line):
            self._fence = fence[1]
            return table, None
        if (ruler := RULER.fullmatch(line)) and line.count(ruler[1]) >= LEAST_RULE:
            return f"{table}{RULE * RULE_COLUMNS}\n", None
        shown, style = table, ""
        while quote := QUOTE.match(self._held):
            shown, self._held = f"{shown}{BAR} ", self._held[quote.end() :]
        if heading := HEADING.match(self._held):
            style, self._held = BOLD, self._held[heading.end() :]
        elif item := ITEM.match(self._held):
            shown, self._held = f"{shown}{item[1]}{BULLET} ", self._held[item.end() :]
        return shown, _Line(style)

    def _in_fence(self, line: str, *, is_end: bool) -> tuple[str, _Line | None]:
        is_closing = CLOSING.fullmatch(line) is not None
        if is_closing and not is_end:
            return "", None
        if is_closing and line.strip().startswith(self._fence):
            self._fence = ""
            return "", None
        return (CODE_INDENT if line else ""), _Line(CODE if line else "", is_code=True)

    def _table(self) -> str:
        """The rows so far, in columns where they are a table that fits; else as they were written."""
        rows, self._rows = self._rows, []
        if not rows:
            return ""
        is_table = len(rows) > 1 and DIVIDER.fullmatch(rows[1]) is not None
        cells = [_cells(row) for row in (rows[0], *rows[2:])] if is_table else []
        count = max(map(len, cells), default=0)
        widths = [max(width_of(row[at]) for row in cells if at < len(row)) for at in range(count)]
        if not is_table or sum(widths) + 3 * count > self._columns:
            return "".join(f"{row}\n" for row in rows)
        head, *body = (_row(row, widths) for row in cells)
        line = f" {RULE} ".join(RULE * width for width in widths).replace(" ", RULE)
        return "".join(f"{each}\n" for each in (f"{BOLD}{head}{PLAIN}", line, *body))


class _Line(NamedTuple):
    """How the line that is being written is shown."""

    style: str
    is_code: bool = False


def _cells(row: str) -> list[str]:
    """As text: what stands in a table is short."""
    inside = row.strip().removeprefix("|")
    inside = inside[:-1] if inside.endswith("|") and not inside.endswith("\\|") else inside
    return [re.sub(r"[*`]{1,3}|\\(?=\|)", "", cell).strip() for cell in re.split(r"(?<!\\)\|", inside)]


def _row(cells: list[str], widths: list[int]) -> str:
    padded = [cell + " " * (width - width_of(cell)) for cell, width in zip(cells, widths, strict=False)]
    return f" {BAR} ".join(padded).rstrip()


def _inline(text: str, outer: str, before: str, *, is_end: bool, depth: int = 0) -> tuple[str, int]:
    """What of a line can be shown, and how many of its characters that is."""
    shown, at = list[str](), 0
    while sign := SIGNS.search(text, at):
        shown.append(text[at : sign.start()])
        at = sign.start()
        previous = text[at - 1] if at else before
        window = text[at : at + LONGEST_SPAN]
        span = _span(window, previous, is_end=is_end or len(window) == LONGEST_SPAN)
        if span is None:
            return "".join(shown), at
        style, inside, used = span
        if style and depth < DEEPEST and inside and style != CODE:
            inside, _ = _inline(inside, outer + style, "", is_end=True, depth=depth + 1)
        shown.append(f"{style}{inside}{PLAIN}{outer}" if style else inside)
        at += used
    shown.append(text[at:])
    return "".join(shown), len(text)


Span = tuple[str, str, int]
"""A style, what stands in it, and how many characters it is; without a style it is text."""


def _span(window: str, previous: str, *, is_end: bool) -> Span | None:
    """What begins here; None while nobody can tell."""
    sign = window[0]
    if sign == "\\":
        is_known = len(window) > 1 or is_end
        is_escape = window[1:2] in ESCAPABLE
        return (("", window[1], 2) if is_escape else ("", sign, 1)) if is_known else None
    if sign == "[":
        return _link(window, is_end=is_end)
    run = len(window) - len(window.lstrip(sign))
    if run == len(window) and not is_end:
        return None
    found = _code(window, run, is_end=is_end) if sign == "`" else _stressed(window, run, previous, is_end=is_end)
    # What was not closed in time is text.
    return found or (("", sign * run, run) if is_end else None)


def _code(window: str, run: int, *, is_end: bool) -> Span | None:
    closing = next(_runs(window, window[:run], run), None)
    if closing is None or (closing + run == len(window) and not is_end):
        return None
    return CODE, window[run:closing].strip(" ") or window[run:closing], closing + run


def _stressed(window: str, run: int, previous: str, *, is_end: bool) -> Span | None:
    """By `_` only whole words are: names of variables hold it."""
    mark, is_whole = window[:run], window[0] == "_"
    if mark not in SPANS or window[run : run + 1].isspace() or (is_whole and previous.isalnum()):
        return "", mark, run
    for closing in _runs(window, mark, run):
        end = closing + run
        if end == len(window) and not is_end:
            return None
        if not window[closing - 1].isspace() and not (is_whole and window[end : end + 1].isalnum()):
            return SPANS[mark], window[run:closing], end
    return None


def _runs(window: str, mark: str, start: int) -> Iterator[int]:
    """Where exactly this sign stands so many times, behind its first."""
    for found in re.finditer(rf"{re.escape(mark[0])}+", window[start:]):
        if len(found[0]) == len(mark):
            yield start + found.start()


def _link(window: str, *, is_end: bool) -> Span | None:
    """Its words, and where it leads unless they say that."""
    if link := LINK.match(window):
        words, address = link.groups()
        return UNDERLINED, words if words == address else f"{words} ({address})", link.end()
    return None if not is_end and OPEN_LINK.fullmatch(window) else ("", "[", 1)
