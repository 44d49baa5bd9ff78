"""What happens in a chat -> what a person sees, on a terminal or in a pipe."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from skillkit.chat.events import Event, Note
from skillkit.chat.safe_text import SafeText
from skillkit.core.questions import Approver, Cancel, OptionAnswer, OptionRequest
from skillkit.integrations.inline import Text
from skillkit.present.terminal import visible

__all__ = ["AskingHere", "Screen"]

WAITING = "…"
CLEAR_LINE = "\r\x1b[K"
DIM, BOLD, PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"
RED, CYAN = "\x1b[31m", "\x1b[36m"


class Screen:
    """Text flows; what became of commands stands on lines of its own, below the line that they were in."""

    def __init__(self, out: TextIO | None = None, remarks: TextIO | None = None) -> None:
        """Remarks go beside the text: on a terminal they are the same place."""
        self._out = sys.stdout if out is None else out
        is_terminal = self._out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._remarks = self._out if remarks is None and self._out.isatty() else remarks or sys.stderr
        self.has_color = is_terminal and not os.environ.get("NO_COLOR")
        self._is_lively = is_terminal
        self._safe = SafeText()
        self._is_at_start = True
        self._is_broken = False  # a line that goes on below what came between
        self._is_waiting = False
        self._held: list[str] = []

    def show(self, event: Event) -> None:
        self.stop_waiting()
        if isinstance(event, Text):
            self._show_text(self._safe.shown(event.text))
        elif isinstance(event, Note):
            self._held.append(event.text)
        else:
            self._held.append(event.line)
        if self._is_at_start:
            self._show_held()
        self._out.flush()

    def _show_text(self, text: str) -> None:
        """What is held goes below the line that is being written."""
        while self._held and "\n" in text:
            line, _, text = text.partition("\n")
            self._write(f"{line}\n")
            self._show_held()
        self._write(text)

    def wait(self) -> None:
        """It is the model's turn: each of its answers begins a line."""
        self.finish()
        if self._is_lively:
            self._out.write(self._styled(WAITING, DIM))
            self._out.flush()
            self._is_waiting = True

    def stop_waiting(self) -> None:
        if self._is_waiting:
            self._out.write(CLEAR_LINE)
            self._is_waiting = False

    def finish(self) -> None:
        """The answer is over, however it ended: the next words begin a line."""
        self.stop_waiting()
        self._safe.finish()
        self.begin_line()
        self._show_held()
        self._out.flush()

    def make_room(self) -> None:
        """For a question on the same terminal; the line goes on below it."""
        if self._is_lively:
            self.stop_waiting()
            self.begin_line()
            self._show_held()
        self._out.flush()

    def begin_line(self) -> None:
        if not self._is_at_start:
            self._write("\n")

    def moved_to_new_line(self) -> None:
        """Somebody else wrote on the same terminal."""
        if self._is_lively:
            self._is_at_start = self._is_broken = True

    def leave_gap(self) -> None:
        """Between an answer and the next question, where a person reads them one below the other."""
        if self._is_lively:
            self._out.write("\n")
            self._out.flush()

    def say(self, text: str, *, style: str = DIM) -> None:
        """A remark of the chat's own."""
        self.finish()
        for line in text.split("\n"):
            self._remark(line, style)
        self._remarks.flush()

    def complain(self, text: str) -> None:
        self.say(text, style=RED)

    def _show_held(self) -> None:
        held, self._held = self._held, []
        for line in held:
            self._remark(f"  {line}", DIM)
        if held:
            self._remarks.flush()

    def _remark(self, line: str, style: str) -> None:
        self._out.flush()
        self._remarks.write(f"{self._styled(visible(line), style) if line else ''}\n")

    def _write(self, text: str) -> None:
        text = text.lstrip(" ").removeprefix("\n") if self._is_broken else text
        if text:
            self._out.write(text)
            self._is_at_start = text.endswith("\n")
            self._is_broken = False

    def _styled(self, text: str, style: str) -> str:
        return f"{style}{text}{PLAIN}" if self.has_color else text


class AskingHere:
    """Another approver's questions, on the terminal that the chat writes on."""

    def __init__(self, approver: Approver, screen: Screen) -> None:
        self._approver = approver
        self._screen = screen
        self.channel = approver.channel

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        self._screen.make_room()
        try:
            return self._approver.ask(request, cancel)
        finally:
            self._screen.moved_to_new_line()
