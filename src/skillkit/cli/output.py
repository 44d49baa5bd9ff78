"""A script's output, a chunk at a time -> our own: byte for byte in a pipe, text and colours only on a terminal."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from skillkit.present.terminal import escaped

__all__ = ["TerminalText", "script_output"]

COLOUR = r"\x1b\[[0-9;:]{0,40}m"
# Whatever else a terminal obeys moves, hides or rewrites what is on it, or answers into the shell.
OBEYED = re.compile(rf"({COLOUR})|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
UNFINISHED = re.compile(r"\x1b(?:\[[0-9;:]{0,40})?\Z")
NO_COLOUR = "\x1b[0m"


class TerminalText:
    """Bytes as they come -> text for a terminal; a colour that arrives in two parts is one colour."""

    def __init__(self) -> None:
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.held = ""
        self.is_coloured = False
        self.ends_line = True

    def of(self, data: bytes, *, is_last: bool = False) -> str:
        text = self.held + self.decoder.decode(data, is_last)
        rest = None if is_last else UNFINISHED.search(text)
        self.held = rest[0] if rest else ""
        text = text[: len(text) - len(self.held)]
        self.ends_line = text.endswith("\n") if text else self.ends_line
        return OBEYED.sub(self.shown, text)

    def shown(self, found: re.Match[str]) -> str:
        self.is_coloured = self.is_coloured or bool(found[1])
        return found[1] or escaped(found[0])

    def end(self) -> str:
        """What is still held; afterwards our own words begin on a line and in a colour of their own."""
        text = self.of(b"", is_last=True)
        return text + NO_COLOUR * self.is_coloured + "\n" * (not self.ends_line)


@contextmanager
def script_output() -> Iterator[Callable[[str, bytes], None]]:
    """Takes the name of a stream and what came on it."""
    targets = {"stdout": sys.stdout, "stderr": sys.stderr}
    tamed = {name: TerminalText() for name, target in targets.items() if target.isatty()}

    def show(stream: str, data: bytes) -> None:
        write(targets[stream], tamed[stream].of(data).encode() if stream in tamed else data)

    try:
        yield show
    finally:
        for stream, text in tamed.items():
            write(targets[stream], text.end().encode())


def write(target: TextIO, data: bytes) -> None:
    target.buffer.write(data)
    target.buffer.flush()
