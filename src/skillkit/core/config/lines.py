"""TOML text that tomllib accepts -> the line on which each key first stands, which tomllib does not tell."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable

__all__ = ["KeyPath", "key_lines"]

KeyPath = tuple[str, ...]

SPACE = re.compile(r"[ \t]*")
BETWEEN = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
KEY_PART = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|[A-Za-z0-9_-]+')
# Three quotes that a fourth follows are still inside: the last three of a row close the text.
TEXT = re.compile(
    r'"""(?:[^\\]|\\.)*?"""(?!")|' + r"'''.*?'''(?!')|" + r'"(?:[^"\\]|\\.)*"|' + r"'[^']*'",
    re.DOTALL,
)
PLAIN = re.compile(r"[^,\]}#\n]+")


def key_lines(text: str, depth: int = 3) -> dict[KeyPath, int]:
    """Tables, dotted and quoted keys, and keys of inline tables; entries of a list have the list's own path.

    No setting is deeper than three words. One key of thousands would otherwise fill the memory with its beginnings.
    """
    scanner = Scanner(text.replace("\r\n", "\n"), depth)
    scanner.document()
    return scanner.lines


class Scanner:
    """Walks over the text from key to key. It trusts that the text is TOML and checks nothing."""

    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.depth = depth
        self.position = 0
        self.line_ends = [match.start() for match in re.finditer("\n", text)]
        self.lines: dict[KeyPath, int] = {}

    def document(self) -> None:
        table: KeyPath = ()
        self.skip(BETWEEN)
        while self.position < len(self.text):
            if self.next_is("["):
                width = 2 if self.text.startswith("[[", self.position) else 1
                self.position += width
                table = self.key(())
                self.position += width
            else:
                self.pair(table)
            self.skip(BETWEEN)

    def pair(self, table: KeyPath) -> None:
        path = self.key(table)
        self.position += len("=")
        self.skip(SPACE)
        self.value(path)

    def key(self, table: KeyPath) -> KeyPath:
        """Reads `a."b c".d`, and stands behind it and its spaces."""
        path = table
        while True:
            self.skip(SPACE)
            line = bisect_right(self.line_ends, self.position) + 1
            part = self.skip(KEY_PART)
            if len(path) < self.depth:
                path = (*path, plain_key(part))
                self.lines.setdefault(path, line)
            self.skip(SPACE)
            if not self.next_is("."):
                return path
            self.position += len(".")

    def value(self, path: KeyPath) -> None:
        if self.next_is("["):
            self.entries("]", lambda: self.value(path))
        elif self.next_is("{"):
            self.entries("}", lambda: self.pair(path))
        elif self.next_is('"') or self.next_is("'"):
            self.skip(TEXT)
        else:
            self.skip(PLAIN)

    def entries(self, closing: str, read_one: Callable[[], None]) -> None:
        self.position += len("[")
        self.skip(BETWEEN)
        while not self.next_is(closing):
            read_one()
            self.skip(BETWEEN)
            if self.next_is(","):
                self.position += len(",")
                self.skip(BETWEEN)
        self.position += len(closing)

    def next_is(self, character: str) -> bool:
        return self.text.startswith(character, self.position)

    def skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.position)
        if match is None:
            raise ValueError(f"no TOML at character {self.position}")
        self.position = match.end()
        return match.group()


def plain_key(written: str) -> str:
    """`a b` for `"a b"`; a key's escapes are a text's escapes."""
    if written[0] not in "\"'":
        return written
    import tomllib

    plain: str = tomllib.loads(f"key = {written}")["key"]
    return plain
