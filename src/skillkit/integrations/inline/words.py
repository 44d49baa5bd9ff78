"""A command's body -> its words, split as a shell quotes them; nothing is expanded and no shell sees them."""

from __future__ import annotations

import re

__all__ = ["words_of"]

SPACE = " \t\r\n"
PLAIN = re.compile(r"[^ \t\r\n\"'\\{]+")
DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
SINGLE = re.compile(r"'([^']*)'")
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
IN_DOUBLE = re.compile(r'\\(["\\])')
GROUP_TOKEN = re.compile(r"""[{}]|'[^']*'|"(?:[^"\\]|\\.)*"|\\.|["'\\]""", re.DOTALL)


def words_of(body: str) -> tuple[str, ...] | None:
    """POSIX quoting; braces outside quotes keep what is between them as it is written, so that JSON needs no quotes.

    None where a quote, a brace or a backslash is left open.
    """
    words: list[str] = []
    position = 0
    while True:
        while position < len(body) and body[position] in SPACE:
            position += 1
        if position == len(body):
            return tuple(words)
        pieces: list[str] = []
        while position < len(body) and body[position] not in SPACE:
            piece, position = piece_at(body, position)
            if position < 0:
                return None
            pieces.append(piece)
        words.append("".join(pieces))


def piece_at(body: str, position: int) -> tuple[str, int]:
    """One quoted, grouped or plain piece of a word, and the place behind it; -1 when it has no end."""
    if body[position] == "{":
        end = group_end(body, position)
        return body[position:end], end
    for pattern in (PLAIN, DOUBLE, SINGLE, ESCAPED):
        match = pattern.match(body, position)
        if match is not None:
            if pattern is DOUBLE:
                return IN_DOUBLE.sub(r"\1", match[1]), match.end()
            return match[match.lastindex or 0], match.end()
    return "", -1


def group_end(body: str, position: int) -> int:
    """Behind the brace that closes the one at `position`; -1 when there is none."""
    depth = 0
    for match in GROUP_TOKEN.finditer(body, position):
        if match[0] in "\"'\\":  # it never ends
            return -1
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    return -1
