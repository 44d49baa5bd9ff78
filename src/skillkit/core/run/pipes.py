"""Descriptors of one run -> pipes off the standard streams, input fed without blocking, nothing left open."""

from __future__ import annotations

import os
import signal
import sys

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.paths import Judged

if sys.platform == "linux":
    import fcntl
    import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

__all__ = ["Descriptors", "Feed"]

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

    def kept(self, fd: int, *, least: int = 3) -> int:
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
        return ends if ends[0] > STANDARD_STREAMS < ends[1] else (self.kept(ends[0]), self.kept(ends[1]))

    def are_scarce(self) -> bool:
        """Whether the reserve is touched; numbers are given out from below, so the highest tells."""
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return limit != resource.RLIM_INFINITY and max(self._open, default=0) > limit - RESERVE

    def close_all(self) -> None:
        self.close(*self._open)

    def given(self, contents: Iterable[bytes], places: Iterable[Judged], *, least: int) -> list[int]:
        """Readable descriptors with these bytes, then those of what was judged, all numbered `least` or above."""
        memories = [self.memory(content, least=least) for content in contents]
        return memories + [self.kept(_open_judged(place), least=least) for place in places]

    def memory(self, content: bytes, *, least: int) -> int:
        fd = self.kept(os.memfd_create("skillkit", os.MFD_CLOEXEC), least=least)
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
    remedy = f"Look who changes {path}, and try again."
    return SandboxUnavailableError(
        f"The walls could not be put up: {path} was replaced or removed meanwhile. Nothing was run. {remedy}",
        missing=("files",),
        remedy=remedy,
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
