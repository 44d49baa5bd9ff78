"""The pipes of one run: its input fed without blocking, the first bytes of its output kept, nothing left open."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.paths import Judged

if sys.platform == "linux":
    import fcntl
    import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Self

__all__ = ["READ_SIZE", "Capture", "Descriptors", "Feed", "Watchdog"]

READ_SIZE = 65_536  # bytes: what a pipe holds; larger pipes and splice(2) were measured and gain nothing
STANDARD_STREAMS = 2  # and below
RESERVE = 32  # descriptors left free by starts, for what running ones need to come to an end


class Descriptors:
    """What one run has open; closed at the end, whatever happens."""

    def __init__(self) -> None:
        self._open: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_all()

    def keep(self, fd: int, *, least: int = 3) -> int:
        """`fd`, moved to `least` or above: in a program without standard streams, pipes get their numbers."""
        self._open.add(fd)
        if fd >= least:
            return fd
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, least)
        self._open.add(moved)
        self.close(fd)
        return moved

    def pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self._open.update(ends)
        return ends if ends[0] > STANDARD_STREAMS < ends[1] else (self.keep(ends[0]), self.keep(ends[1]))

    def are_scarce(self) -> bool:
        """Whether the reserve is touched; numbers are given out from below, so the highest tells."""
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return limit != resource.RLIM_INFINITY and max(self._open, default=0) > limit - RESERVE

    def close_all(self) -> None:
        self.close(*self._open)

    def open_all(
        self, contents: Iterable[bytes], places: Iterable[Judged], handed: Iterable[int] = (), *, least: int
    ) -> list[int]:
        """Readable descriptors with these bytes, of what was judged, and copies, all numbered `least` or above."""
        memories = [self.make_memory(content, least=least) for content in contents]
        judged = [self.keep(_open_judged(place), least=least) for place in places]
        return memories + judged + [self.keep(os.dup(number), least=least) for number in handed]

    def make_memory(self, content: bytes, *, least: int) -> int:
        fd = self.keep(os.memfd_create("skillkit", os.MFD_CLOEXEC), least=least)
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(fd, rest) :]
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def close(self, *fds: int) -> None:
        """Close those of `fds` that are open."""
        for fd in self._open.intersection(fds):
            self._open.remove(fd)
            os.close(fd)


def _open_judged(place: Judged) -> int:
    """Without any right to read or write: walls are put around what it stands for, whatever has its name by now."""
    try:
        fd = os.open(place.path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _replaced(place.path) from None
    seen = os.fstat(fd)
    if (seen.st_dev, seen.st_ino) != (place.device, place.inode):
        os.close(fd)
        raise _replaced(place.path)
    return fd


def _replaced(path: str) -> SandboxUnavailableError:
    return SandboxUnavailableError.because(
        f"The walls could not be put up: {path} was replaced or removed meanwhile. Nothing was run",
        f"Look who changes {path}, and try again.",
        missing=("files",),
    )


class Feed:
    """Input on its way into a non-blocking pipe; a reader that closed early simply gets no more."""

    __slots__ = ("_rest",)

    def __init__(self, content: bytes) -> None:
        self._rest = memoryview(content)

    def write(self, fd: int) -> bool:
        """Give what fits; false when everything was given or nobody reads any more."""
        try:
            size = _write_unsignalled(fd, self._rest)
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        self._rest = self._rest[size:]
        return bool(self._rest)


def _write_unsignalled(fd: int, content: memoryview) -> int:
    """`os.write`, but a closed pipe raises even where SIGPIPE would end the calling program."""
    if signal.getsignal(signal.SIGPIPE) is not signal.SIG_DFL:
        return os.write(fd, content)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    try:
        return os.write(fd, content)
    except BrokenPipeError:
        signal.sigtimedwait({signal.SIGPIPE}, 0)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Capture:
    """One output stream: the first `limit` bytes are kept and shown, the rest is read and only counted."""

    __slots__ = ("_kept", "_limit", "_listener", "_name", "count")

    def __init__(self, name: str, limit: int, listener: Callable[[str, bytes], None] | None) -> None:
        self._name = name
        self._limit = limit
        self._listener = listener
        # getvalue() hands out its own buffer, so ten megabytes kept are ten megabytes used.
        self._kept = io.BytesIO()
        self.count = 0

    def read(self, fd: int, buffer: memoryview) -> bool:
        """Take once what is there, through a buffer that streams may share; false at the end."""
        size = os.readv(fd, [buffer])
        self.add(buffer[:size])
        return size > 0

    def add(self, chunk: memoryview) -> None:
        """Keep what fits, show the listener the same, count everything."""
        room = self._limit - self.count
        self.count += len(chunk)
        if room <= 0 or not chunk:
            return
        kept = chunk[:room]
        self._kept.write(kept)
        if self._listener is not None:
            self._listener(self._name, bytes(kept))

    def kept(self) -> bytes:
        return self._kept.getvalue()


class Watchdog:
    """A second thread that kills at the deadline while the first is held up in the caller's `on_output`."""

    def __init__(self, deadline: float, kill: Callable[[], None]) -> None:
        self._kill = kill
        self._timer = threading.Timer(deadline - time.monotonic(), self._bite)
        self.has_bitten = False

    def __enter__(self) -> Self:
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        # The pid may be reaped, and mean somebody else, only after this thread is through with it.
        self._timer.join()

    def _bite(self) -> None:
        self.has_bitten = True
        self._kill()
