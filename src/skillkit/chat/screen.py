"""A chat's terminal or pipes: what happens -> what a person sees; a prompt -> the line that they type."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from skillkit.chat.events import Event, Note
from skillkit.chat.markdown import Markdown
from skillkit.core.paths import is_own_state
from skillkit.core.values.questions import Approver, Cancel, OptionAnswer, OptionRequest
from skillkit.core.values.text import visible
from skillkit.integrations.inline.syntax import Text
from skillkit.present.terminal import cut

__all__ = ["AskingHere", "Lines", "SafeText", "Screen"]

WAITING = "…"
CLEAR_LINE = "\r\x1b[K"
DIM, BOLD, PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"
RED, CYAN = "\x1b[31m", "\x1b[36m"
KEPT_CHARACTERS = 8
"""More marks than this are too many on one letter anyway."""
STATUS_COLUMNS = 60
HISTORY_FILE = "chat-history"
HISTORY_LINES = 1_000
PROMPT, MORE = "> ", ". "
TICK_SECONDS = 1.0
PASTE_SECONDS = 0.03
AFTER_NO = "They said no to what was asked before, and have not spoken since."
# Between these a line editor counts no columns.
UNCOUNTED = "\x01{}\x02"


class SafeText:
    """Shows text as `visible` does, however it is cut into chunks."""

    def __init__(self) -> None:
        self._before = ""
        self._is_returning = False

    def make_visible(self, chunk: str) -> str:
        """A carriage return waits for what follows: before a line end it means nothing."""
        text = ("\r" if self._is_returning else "") + chunk
        self._is_returning = text.endswith("\r")
        text = text.removesuffix("\r").replace("\r\n", "\n")
        shown = visible(self._before + text)[len(visible(self._before)) :]
        self._before = _last_letter(self._before + text)
        return shown

    def finish(self) -> None:
        """The next text is another one."""
        self._before = ""
        self._is_returning = False


def _last_letter(text: str) -> str:
    """With the marks on it: how many more it may have depends on them."""
    start = len(text) - 1
    while start > 0 and unicodedata.category(text[start])[0] == "M":
        start -= 1
    return text[max(start, 0) :][:KEPT_CHARACTERS]


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
        self._markdown = Markdown(shutil.get_terminal_size().columns) if self.has_color else None
        self._is_at_start = True
        self._is_broken = False  # a line that goes on below what came between
        self._is_waiting = False
        self._is_asking = False
        self._drawing = threading.RLock()
        self._held: list[str] = []

    def show(self, event: Event) -> None:
        self.stop_waiting()
        if isinstance(event, Text):
            text = self._safe.make_visible(event.text)
            self._show_text(self._markdown.feed(text) if self._markdown else text)
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

    @contextmanager
    def running(self, name: str) -> Iterator[None]:
        """While something runs, a line says so and for how long; it gives way to whatever else is shown."""
        if not self._is_lively:
            yield
            return
        is_over, began = threading.Event(), time.monotonic()

        def tick() -> None:
            while not is_over.wait(TICK_SECONDS):
                with self._drawing:
                    if not self._is_asking and not is_over.is_set():
                        self._draw_status(
                            f"{cut(visible(name), STATUS_COLUMNS)} runs, {time.monotonic() - began:.0f} s"
                        )

        ticking = threading.Thread(target=tick, name="skillkit-chat-status", daemon=True)
        ticking.start()
        try:
            yield
        finally:
            is_over.set()
            ticking.join()
            self.stop_waiting()

    def _draw_status(self, text: str) -> None:
        if not self._is_waiting:
            self.begin_line()
        self._out.write(f"{CLEAR_LINE}{self._styled(text, DIM)}")
        self._out.flush()
        self._is_waiting = True

    def finish(self) -> None:
        """The answer is over, however it ended: the next words begin a line."""
        self.stop_waiting()
        self._safe.finish()
        self._show_rest(is_over=True)
        self.begin_line()
        self._show_held()
        self._out.flush()

    def make_room(self) -> None:
        """For a question on the same terminal; the line goes on below it."""
        with self._drawing:
            self._is_asking = True
            if self._is_lively:
                self.stop_waiting()
                self._show_rest(is_over=False)
                self.begin_line()
                self._show_held()
            self._out.flush()

    def _show_rest(self, *, is_over: bool) -> None:
        """What waited for the end of a span or of a table."""
        if self._markdown:
            self._show_text(self._markdown.finish(is_over=is_over))

    def begin_line(self) -> None:
        if not self._is_at_start:
            self._write("\n")

    def note_new_line(self) -> None:
        """Somebody else wrote on the same terminal."""
        self._is_asking = False
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
    """Another approver's questions, on the terminal that the chat writes on.

    A no without a reason stops the round: what the model asks for after it is declined without a question, until the
    person says something. A reason goes to the model instead, and the round goes on.
    """

    def __init__(self, approver: Approver, screen: Screen) -> None:
        self._approver = approver
        self._screen = screen
        self.channel = approver.channel
        self.was_stopped = False

    def begin_round(self) -> None:
        self.was_stopped = False

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        if self.was_stopped:
            return OptionAnswer("no", self.channel, time.time(), request.id, reason=AFTER_NO)
        self._screen.make_room()
        try:
            answer = self._approver.ask(request, cancel)
        finally:
            self._screen.note_new_line()
        self.was_stopped = answer.option_id == "no" and not answer.reason
        return answer


class Lines:
    """Reads from stdin; on a terminal with the arrow keys, and with what was typed in earlier chats."""

    def __init__(self, state_dir: Path, *, has_color: bool = False) -> None:
        self._file = state_dir / HISTORY_FILE
        self.is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        self._readline: Any = self._open_history() if self.is_terminal else None
        self._has_color = has_color and self._readline is not None

    def read(self) -> str:
        """One question; a line that ends with a backslash goes on, and so does one that more was pasted behind.

        EOFError and KeyboardInterrupt as they come.
        """
        line = self._read_line(PROMPT)
        while (goes_on := line.endswith("\\")) or self._has_more():
            line = f"{line[:-1] if goes_on else line}\n{self._read_line(MORE)}"
        self._remember(line)
        return line

    def _has_more(self) -> bool:
        """Whether something stands behind the line that nobody can have typed so soon.

        A terminal that marks what is pasted has it in the line already; others send it line by line.
        """
        if self._readline is None or sys.platform == "win32":
            return False
        import select
        import termios

        descriptor = sys.stdin.fileno()
        modes = termios.tcgetattr(descriptor)
        # By whole lines the terminal would not tell of the last one, which has no end yet.
        by_letters = [*modes[:3], modes[3] & ~termios.ICANON, *modes[4:]]
        termios.tcsetattr(descriptor, termios.TCSANOW, by_letters)
        try:
            return bool(select.select([descriptor], [], [], PASTE_SECONDS)[0])
        finally:
            termios.tcsetattr(descriptor, termios.TCSANOW, modes)

    def _read_line(self, prompt: str) -> str:
        if not self.is_terminal:
            line = sys.stdin.readline()
            if not line:
                raise EOFError
            return line.rstrip("\n")
        if self._has_color:
            prompt = UNCOUNTED.format(BOLD + CYAN) + prompt + UNCOUNTED.format(PLAIN)
        return input(prompt)

    def _open_history(self) -> Any:  # noqa: ANN401 - a module, where there is one
        try:
            import readline
        except ImportError:
            return None
        readline.set_auto_history(False)
        # What is pasted is one message, however many lines it has; Enter sends it.
        readline.parse_and_bind("set enable-bracketed-paste on")
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
