"""A host on a real terminal of 80 columns; an emulator keeps what a person would see on it."""

from __future__ import annotations

import codecs
import os
import re
import shutil
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import pyte
from ptyprocess import PtyProcess

from support.hosts.transcripts import Transcript

__all__ = ["HostScreen"]

COLUMNS, ROWS = 80, 50
STILL_SECONDS, RESTLESS_SECONDS = 0.3, 1.5
# What the emulator does not know and would take for text: keyboard protocols, graphics, questions about the terminal.
UNKNOWN = re.compile(
    r"\x1b\[[<>=][\d;:?]*[ -/]*[@-~]|\x1b\[\?[\d;]*(?:\$p|[^\d;$hlJK])|\x1b\[[\d;]*(?:[ !\"$'*][@-~]|t)|\x1b[P_^X].*?\x1b\\|\x1b\].*?(?:\x07|\x1b\\)",
    re.DOTALL,
)
UNFINISHED = re.compile(r"\x1b(?:\[[\d;:?<>=]*[ -/]*|[P_^X\]](?:(?!\x1b\\|\x07).)*)?$", re.DOTALL)
# What hosts ask a terminal and wait for: its colours, its keyboard.
ANSWERS = {
    "\x1b]10;?": "\x1b]10;rgb:ffff/ffff/ffff\x1b\\",
    "\x1b]11;?": "\x1b]11;rgb:0000/0000/0000\x1b\\",
    "\x1b[?u": "\x1b[?0u",
}


class _Screen(pyte.Screen):
    def __init__(self, columns: int, rows: int, terminal: PtyProcess) -> None:
        super().__init__(columns, rows)
        self.terminal = terminal

    def write_process_input(self, data: str) -> None:
        with suppress(OSError):
            os.write(self.terminal.fd, data.encode())


class HostScreen:
    def __init__(
        self, argv: Sequence[str], environment: Mapping[str, str], folder: Path, transcript: Transcript
    ) -> None:
        transcript.write(f"$ {' '.join(argv)}")
        words = [shutil.which(argv[0], path=environment["PATH"]) or argv[0], *argv[1:]]
        self.program = PtyProcess.spawn(words, cwd=str(folder), env=dict(environment), dimensions=(ROWS, COLUMNS))
        self.transcript = transcript
        self._screen = _Screen(COLUMNS, ROWS, self.program)
        self._stream: Any = pyte.Stream(self._screen)
        self._lock = threading.Lock()
        self._changed = time.monotonic()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.transcript.screen("at the end", self.rows())
        self.end()

    def _read(self) -> None:
        rest, decoder = "", codecs.getincrementaldecoder("utf-8")("replace")
        with suppress(OSError, EOFError):
            while data := os.read(self.program.fd, 65536):
                text = rest + decoder.decode(data)
                begun = UNFINISHED.search(text[-4096:])
                rest = begun[0] if begun else ""
                self._show(text[: len(text) - len(rest)])

    def _show(self, text: str) -> None:
        for asked, answer in ANSWERS.items():
            if asked in text:
                self._screen.write_process_input(answer)
        with self._lock:
            self._stream.feed(UNKNOWN.sub("", text))
            self._changed = time.monotonic()

    def rows(self) -> list[str]:
        with self._lock:
            return [row.rstrip() for row in self._screen.display]

    @property
    def text(self) -> str:
        return "\n".join(self.rows())

    def has(self, pattern: str) -> bool:
        return re.search(pattern, self.text) is not None

    def wait_for(self, pattern: str, seconds: float = 40) -> None:
        """Until it is on the screen; then until the screen is still, unless something on it never is."""
        until = time.monotonic() + seconds
        while not self.has(pattern):
            if time.monotonic() > until:
                self.transcript.screen(f"where {pattern!r} never came", self.rows())
                raise AssertionError(f"{pattern!r} never came; the screen:\n{self.text}")
            time.sleep(0.05)
        until = time.monotonic() + RESTLESS_SECONDS
        while time.monotonic() - self._changed < STILL_SECONDS and time.monotonic() < until:
            time.sleep(0.05)

    def send(self, keys: str) -> None:
        os.write(self.program.fd, keys.encode())

    def type(self, words: str) -> None:
        """As a person does: the words, a moment, Enter."""
        self.transcript.write(f"TYPED: {words}")
        self.send(words)
        time.sleep(0.5)
        self.send("\r")

    def press(self, keys: str, why: str) -> None:
        """Later than any form counts as answered by nobody."""
        time.sleep(0.7)
        self.transcript.write(f"PRESSED {keys!r}: {why}")
        self.send(keys)

    def capture(self, what: str) -> list[str]:
        rows = self.rows()
        self.transcript.screen(what, rows)
        return rows

    def end(self, seconds: float = 5) -> None:
        """As if its window were closed; what does not go by then is ended."""
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL):
            if not self.program.isalive():
                break
            with suppress(ProcessLookupError):
                os.killpg(self.program.pid, number)
            until = time.monotonic() + seconds
            while self.program.isalive() and time.monotonic() < until:
                time.sleep(0.05)
        with suppress(OSError):
            self.program.close(force=True)
        self._reader.join(5)
