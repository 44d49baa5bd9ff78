"""The controlling terminal -> key presses in, text out, one question at a time; it is always left as it was found.

Several who want to ask on one terminal take turns. A terminal is the controlling one of a single session, so the
session's id names it. Each terminal is one byte of a lock file in the state folder: only its owner can reach that, the
lock ends with the process that holds it, and nothing is left to tidy up.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from skillkit.core.exceptions import ApprovalUnavailableError
from skillkit.core.paths import require_own_folder

__all__ = [
    "ESCAPE",
    "INTERRUPTS",
    "KEPT_BYTES",
    "SUSPEND",
    "Screen",
    "controlling_terminal",
    "is_unfinished",
    "keys_of",
    "terminal_lock",
    "unavailable",
]

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

ESCAPE = "escape"
UNKNOWN = "unknown"
INTERRUPTS = ("\x03", "\x04", "\x1c")
"""Ctrl-C, Ctrl-D and Ctrl-\\, as bytes: the terminal is told to make no signals of them."""
SUSPEND = "\x1a"

# A control sequence, a function key, a key with Alt, or a single byte.
PRESS = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[@-~]|\x1b[^\x1b\[O]|.", re.DOTALL)
UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|O)?\Z")
NAMES = {
    b"\x1b": ESCAPE,
    **dict.fromkeys((b"\x1b[A", b"\x1bOA"), "up"),
    **dict.fromkeys((b"\x1b[B", b"\x1bOB"), "down"),
    **dict.fromkeys((b"\x1b[H", b"\x1bOH", b"\x1b[1~"), "home"),
    **dict.fromkeys((b"\x1b[F", b"\x1bOF", b"\x1b[4~"), "end"),
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
}

LOCK_NAME = "terminals.lock"
PAUSE_SECONDS = 0.05
# The lock on the file counts for the whole process; this one keeps its threads apart.
_threads = threading.Lock()


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
        _require_foreground(descriptor)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def terminal_lock(state_folder: Path, require_wanted: Callable[[], None]) -> Iterator[None]:
    """Waits until nobody else asks here; `require_wanted` raises when waiting has no point any more."""
    while not _threads.acquire(timeout=PAUSE_SECONDS):
        require_wanted()
    try:
        descriptor = _open_lock(state_folder)
        try:
            while not _try_lock(descriptor):
                require_wanted()
                time.sleep(PAUSE_SECONDS)
            yield
        finally:
            os.close(descriptor)  # which lets go of the lock
    finally:
        _threads.release()


def _open_lock(state_folder: Path) -> int:
    path = state_folder / LOCK_NAME
    try:
        state_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_own_folder(state_folder, may_be_link=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _lock_error(path, error) from error


def _try_lock(descriptor: int) -> bool:
    """Whether this terminal's byte is ours now."""
    import fcntl

    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, os.getsid(0))
    except (BlockingIOError, PermissionError):  # systems differ in how they say that it is held
        return False
    except OSError as error:
        raise _lock_error(LOCK_NAME, error) from error
    return True


def _lock_error(path: Path | str, error: OSError) -> ApprovalUnavailableError:
    return ApprovalUnavailableError(
        f"The terminal cannot be reserved for a question: {path}: {error.strerror or error}. "
        "Make the state folder writable, or name another with SKILLKIT_STATE_DIR.",
        reasons=["the terminal cannot be reserved"],
    )


def keys_of(data: bytes) -> tuple[str, ...]:
    """One name for each key; a sequence that nobody here knows is one unknown key, never several plain ones."""
    presses = PRESS.findall(data)
    return tuple(NAMES.get(each) or (each.decode("latin-1") if len(each) == 1 else UNKNOWN) for each in presses)


def is_unfinished(data: bytes) -> bool:
    """Whether the rest of a sequence may still be on its way."""
    return UNFINISHED.search(data) is not None


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

        _require_foreground(self._descriptor)
        with _closed_is_unavailable():
            self._found = termios.tcgetattr(self._descriptor)
            termios.tcsetattr(self._descriptor, termios.TCSANOW, _quiet_modes(self._found))
        self._control(MARK_PASTES)
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing here raises: a terminal that is gone needs no care."""
        import termios

        self._control(LEAVE_PASTES)
        with suppress(OSError, termios.error):
            self._restore()

    def _restore(self) -> None:
        """Unless somebody else took the terminal and set it up for themselves."""
        import termios

        now = termios.tcgetattr(self._descriptor)
        if _is_foreground(self._descriptor) or now[3] == _quiet_modes(self._found)[3]:
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})  # would stop us in the background
            try:
                termios.tcsetattr(self._descriptor, termios.TCSANOW, self._found)
                termios.tcflush(self._descriptor, termios.TCIFLUSH)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def size(self) -> tuple[int, int]:
        """Columns and rows, now; asked each time, since a signal would reach only the main thread."""
        with _closed_is_unavailable():
            columns, rows = os.get_terminal_size(self._descriptor)
        return columns or UNKNOWN_COLUMNS, rows or UNKNOWN_ROWS

    def write(self, text: str) -> None:
        """All of it, as long as somebody wants it; a stopped terminal does not hold us for ever."""
        data = text.encode("utf-8", "backslashreplace")
        if not self.is_plain:
            data = NO_WRAP.encode() + data + WRAP.encode()
        while data:
            self._require_wanted()
            if _is_ready(self._descriptor, TURN_SECONDS, to_write=True):
                _require_foreground(self._descriptor)
                with _closed_is_unavailable(), suppress(BlockingIOError):
                    data = data[os.write(self._descriptor, data) :]

    def say_last(self, text: str) -> None:
        """Also when nobody wants an answer any more; what cannot be said at once is left unsaid."""
        with suppress(OSError):
            if _is_foreground(self._descriptor):
                os.write(self._descriptor, text.encode("utf-8", "backslashreplace"))

    def drop_input(self) -> None:
        """What was typed before it could be an answer is none."""
        import termios

        with _closed_is_unavailable():
            termios.tcflush(self._descriptor, termios.TCIFLUSH)

    def pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._require_wanted()
            time.sleep(min(left, TURN_SECONDS))

    def read_keys(self, *, together: bool) -> tuple[str, ...]:
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
        _require_foreground(self._descriptor)
        if not _is_ready(self._descriptor, seconds):
            return b""
        with _closed_is_unavailable():
            try:
                data = os.read(self._descriptor, KEPT_BYTES)
            except BlockingIOError:  # another reader was faster
                return b""
        if not data:
            raise _closed_terminal()
        return data

    def suspend(self) -> None:
        """What Ctrl-Z does elsewhere: the terminal as it was for whoever is next, quiet again when we go on."""
        self.__exit__()
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


def _require_foreground(descriptor: int) -> None:
    """Who reads in the background would be stopped by the system, and a person would not know whom they answer."""
    with _closed_is_unavailable():
        is_ours = _is_foreground(descriptor)
    if not is_ours:
        raise unavailable("this process is in the background of its terminal", "Bring it to the foreground with fg")


def _is_foreground(descriptor: int) -> bool:
    return os.tcgetpgrp(descriptor) == os.getpgrp()


def _is_ready(descriptor: int, seconds: float, *, to_write: bool = False) -> bool:
    if sys.platform == "darwin":  # whose poll does not know terminals
        waiting = select.select([] if to_write else [descriptor], [descriptor] if to_write else [], [], seconds)
        return any(waiting)
    poller = select.poll()
    poller.register(descriptor, select.POLLOUT if to_write else select.POLLIN)
    return bool(poller.poll(seconds * 1000))


def _quiet_modes(found: Modes) -> Modes:
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
def _closed_is_unavailable() -> Iterator[None]:
    import termios

    try:
        yield
    except BlockingIOError:
        raise
    except (OSError, termios.error) as error:
        raise _closed_terminal() from error


def _closed_terminal() -> ApprovalUnavailableError:
    return unavailable("the terminal was closed before there was an answer", "Run it again in a terminal that stays")


def unavailable(reason: str, remedy: str) -> ApprovalUnavailableError:
    return ApprovalUnavailableError(f"Nobody can be asked here: {reason}. {remedy}.", reasons=[reason])
