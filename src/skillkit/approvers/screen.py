"""The controlling terminal -> key presses in, text out; it is always left as it was found."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from skillkit.approvers.keys import is_unfinished, keys_of
from skillkit.core.exceptions import ApprovalUnavailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["Screen", "controlling_terminal"]

Modes = list[Any]
"""As termios gives them: four numbers, two speeds, and a list of characters."""

TURN_SECONDS = 0.1
# Keys that come closer together than this were not pressed one by one; so long the rest of a sequence is awaited.
QUIET_SECONDS = 0.05
STOP_SECONDS = 0.1
KEPT_BYTES = 256
UNKNOWN_COLUMNS, UNKNOWN_ROWS = 80, 24

# Marked pastes: then even a single pasted character is told from a key.
MARK_PASTES, LEAVE_PASTES = "\x1b[?2004h", "\x1b[?2004l"
# A line that a terminal draws wider than expected is cut, so that its rest never stands where our words stand.
NO_WRAP, WRAP = "\x1b[?7l", "\x1b[?7h"
SECOND_SCREEN, FIRST_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


@contextmanager
def controlling_terminal() -> Iterator[int]:
    """Opened anew, so that stdin, stdout and stderr may be anything."""
    if sys.platform == "win32":
        raise unavailable("terminal questions need Linux or macOS", "Answer through another channel")
    try:
        descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        reason = f"this process has no controlling terminal ({error.strerror})"
        raise unavailable(reason, "Run it in a terminal, or answer through another channel") from error
    try:
        require_foreground(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


class Screen:
    """The terminal while a question is on it: no echo, every key at once, no signals from keys."""

    def __init__(self, descriptor: int, require_wanted: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._require_wanted = require_wanted
        self._found: Modes = []
        self.is_plain = os.environ.get("TERM", "dumb") in ("", "dumb")
        self.has_color = not self.is_plain and not os.environ.get("NO_COLOR")

    def __enter__(self) -> Self:
        import termios

        require_foreground(self._descriptor)
        with closed_is_unavailable():
            self._found = termios.tcgetattr(self._descriptor)
            termios.tcsetattr(self._descriptor, termios.TCSANOW, quiet_modes(self._found))
        self._control(MARK_PASTES)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing here raises: a terminal that is gone needs no care."""
        import termios

        self._control(LEAVE_PASTES)
        with suppress(OSError, termios.error):
            self._restore()

    def _restore(self) -> None:
        """Unless somebody else took the terminal and set it up for themselves."""
        import termios

        now = termios.tcgetattr(self._descriptor)
        if is_foreground(self._descriptor) or now[3] == quiet_modes(self._found)[3]:
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})  # would stop us in the background
            try:
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._found)
                termios.tcflush(self._descriptor, termios.TCIFLUSH)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def size(self) -> tuple[int, int]:
        """Columns and rows, now; asked each time, since a signal would reach only the main thread."""
        with closed_is_unavailable():
            columns, rows = os.get_terminal_size(self._descriptor)
        return columns or UNKNOWN_COLUMNS, rows or UNKNOWN_ROWS

    def write(self, text: str) -> None:
        """All of it, as long as somebody wants it; a stopped terminal does not hold us for ever."""
        data = text.encode("utf-8", "backslashreplace")
        if not self.is_plain:
            data = NO_WRAP.encode() + data + WRAP.encode()
        while data:
            self._require_wanted()
            if is_ready(self._descriptor, TURN_SECONDS, to_write=True):
                require_foreground(self._descriptor)
                with closed_is_unavailable(), suppress(BlockingIOError):
                    data = data[os.write(self._descriptor, data) :]

    def say_last(self, text: str) -> None:
        """Also when nobody wants an answer any more; what cannot be said at once is left unsaid."""
        with suppress(OSError):
            if is_foreground(self._descriptor):
                os.write(self._descriptor, text.encode("utf-8", "backslashreplace"))

    def drop_input(self) -> None:
        """What was typed before it could be an answer is none."""
        import termios

        with closed_is_unavailable():
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

    def pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._require_wanted()
            time.sleep(min(left, TURN_SECONDS))

    def pressed(self, *, together: bool) -> tuple[str, ...]:
        """Keys of this short turn, often none; `together` gathers all that come without a pause between them."""
        data = self._chunk(TURN_SECONDS)
        while data and (together or is_unfinished(data)):
            more = self._chunk(QUIET_SECONDS)
            if not more:
                break
            data = (data + more)[:KEPT_BYTES]
        return keys_of(data)

    def _chunk(self, seconds: float) -> bytes:
        self._require_wanted()
        require_foreground(self._descriptor)
        if not is_ready(self._descriptor, seconds):
            return b""
        with closed_is_unavailable():
            try:
                data = os.read(self._descriptor, KEPT_BYTES)
            except BlockingIOError:  # another reader was faster
                return b""
        if not data:
            raise closed_terminal()
        return data

    def suspend(self) -> None:
        """What Ctrl-Z does elsewhere: the terminal as it was for whoever is next, quiet again when we go on."""
        self.__exit__(None, None, None)
        os.kill(0, signal.SIGTSTP)
        # The signal may reach another thread first: going on at once could leave the terminal quiet while stopped.
        time.sleep(STOP_SECONDS)
        self.__enter__()

    @contextmanager
    def second_screen(self) -> Iterator[None]:
        """What is drawn there vanishes, and what was on the terminal comes back."""
        self._control(SECOND_SCREEN)
        try:
            yield
        finally:
            self._control(FIRST_SCREEN)

    def _control(self, sequence: str) -> None:
        if not self.is_plain:
            with suppress(OSError):
                os.write(self._descriptor, sequence.encode())


def require_foreground(descriptor: int) -> None:
    """Who reads in the background would be stopped by the system, and a person would not know whom they answer."""
    with closed_is_unavailable():
        is_ours = is_foreground(descriptor)
    if not is_ours:
        raise unavailable("this process is in the background of its terminal", "Bring it to the foreground with fg")


def is_foreground(descriptor: int) -> bool:
    return os.tcgetpgrp(descriptor) == os.getpgrp()


def is_ready(descriptor: int, seconds: float, *, to_write: bool = False) -> bool:
    if sys.platform == "darwin":  # whose poll does not know terminals
        waiting = select.select([] if to_write else [descriptor], [descriptor] if to_write else [], [], seconds)
        return any(waiting)
    poller = select.poll()
    poller.register(descriptor, select.POLLOUT if to_write else select.POLLIN)
    return bool(poller.poll(seconds * 1000))


def quiet_modes(found: Modes) -> Modes:
    """The same terminal, but keys come at once, unseen, and none of them stops or ends anybody."""
    import termios

    input_modes, output_modes, control_modes, local_modes, *speeds, characters = found
    quiet = list(characters)
    quiet[termios.VMIN], quiet[termios.VTIME] = 1, 0
    return [
        input_modes & ~termios.IXON,
        output_modes | termios.OPOST | termios.ONLCR,
        control_modes,
        local_modes & ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN),
        *speeds,
        quiet,
    ]


@contextmanager
def closed_is_unavailable() -> Iterator[None]:
    import termios

    try:
        yield
    except BlockingIOError:
        raise
    except (OSError, termios.error) as error:
        raise closed_terminal() from error


def closed_terminal() -> ApprovalUnavailableError:
    return unavailable("the terminal was closed before there was an answer", "Run it again in a terminal that stays")


def unavailable(reason: str, remedy: str) -> ApprovalUnavailableError:
    return ApprovalUnavailableError(f"Nobody can be asked here: {reason}. {remedy}.", reasons=[reason])
