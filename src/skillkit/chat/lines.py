"""A prompt -> the line a person types, with editing and a history where the terminal has them."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from skillkit.chat.screen import BOLD, CYAN, PLAIN
from skillkit.core.owned import is_own_state

__all__ = ["Lines"]

HISTORY_FILE = "chat-history"
HISTORY_LINES = 1_000
PROMPT, MORE = "> ", ". "
# Between these a line editor counts no columns.
UNCOUNTED = "\x01{}\x02"


class Lines:
    """Reads from stdin; on a terminal with the arrow keys, and with what was typed in earlier chats."""

    def __init__(self, state_dir: Path, *, has_color: bool = False) -> None:
        self._file = state_dir / HISTORY_FILE
        self.is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self._readline: Any = self._opened() if self.is_terminal else None
        self._has_color = has_color and self._readline is not None

    def read(self) -> str:
        """One question; a line that ends with a backslash goes on. EOFError and KeyboardInterrupt as they come."""
        line = self._typed(PROMPT)
        while line.endswith("\\"):
            line = f"{line[:-1]}\n{self._typed(MORE)}"
        self._remember(line)
        return line

    def _typed(self, prompt: str) -> str:
        if not self.is_terminal:
            line = sys.stdin.readline()
            if not line:
                raise EOFError
            return line.rstrip("\n")
        if self._has_color:
            prompt = UNCOUNTED.format(BOLD + CYAN) + prompt + UNCOUNTED.format(PLAIN)
        return input(prompt)

    def _opened(self) -> Any:  # noqa: ANN401 - a module, where there is one
        try:
            import readline
        except ImportError:
            return None
        readline.set_auto_history(False)
        readline.set_history_length(HISTORY_LINES)
        with suppress(OSError):
            self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not is_own_state(self._file.parent):
                return readline
            os.close(os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
            os.chmod(self._file, 0o600, follow_symlinks=False)
            readline.read_history_file(self._file)
        return readline

    def _remember(self, line: str) -> None:
        """At once, so that nothing typed is lost; a history that cannot be written stops nobody."""
        if self._readline is None or not line.strip():
            return
        self._readline.add_history(line)
        with suppress(OSError, AttributeError):  # some builds cannot append
            self._readline.append_history_file(1, self._file)

    def close(self) -> None:
        """Keeps the file from growing for ever."""
        if self._readline is None:
            return
        with suppress(OSError):
            if self._file.read_bytes().count(b"\n") > HISTORY_LINES:
                self._readline.write_history_file(self._file)
                os.chmod(self._file, 0o600)
