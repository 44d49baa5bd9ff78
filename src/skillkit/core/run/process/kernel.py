"""A pid or a pidfd -> what Linux tells about that process: is it there, is it marked, how did it end."""

from __future__ import annotations

import errno
import functools
import math
import os
import select
import sys
import threading
import time

if sys.platform == "linux":
    import fcntl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "SHORTAGES",
    "UNKNOWN_STATUS",
    "PidOrder",
    "all_pids",
    "environment_of",
    "has_hung_up",
    "holds_inherited_end",
    "is_over",
    "is_unreaped",
    "last_pid",
    "parent_of",
    "pidfds_work",
    "proc_shows_our_pids",
    "seconds_to_start_over",
    "started_at",
    "taken_status",
]

UNKNOWN_STATUS = 255  # what asyncio reports, too, for a status that somebody else took
SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # they pass, and prove nothing about a process
READ_SIZE = 16_384  # bytes
PIDS_PER_CORE_SECOND = 50_000  # more than a kernel gives out; threads, which take them too, came to 37,000
LOOKS_A_ROUND = 4  # in the time that the kernel needs at least to use up all pids
PF_EXITING = 0x4  # in the flags of /proc/PID/stat

# From linux/pidfd.h: the status stays readable after the process was reaped (Linux 6.15 and later).
PIDFD_GET_INFO = 0xC040FF0B
PIDFD_INFO_EXIT = 8
PIDFD_INFO_SIZE = 64


@functools.cache
def pidfds_work() -> bool:
    """Not on other systems, on kernels before 5.3 and in containers that forbid the call."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except AttributeError:
        return False
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EPERM, errno.EACCES):
            return False
        raise  # a shortage passes; it is not a reason to kill less thoroughly from now on
    return True


def is_over(pidfd: int, *, within: float = 0.0) -> bool:
    """Whether all threads of the process have ended; a zombie is over."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(within * 1000))


def is_unreaped(pid: int) -> bool:
    """Whether `pid` is our child, alive or not, so that its number cannot mean anybody else."""
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def taken_status(pidfd: int) -> int:
    """The status that another waiter, or a parent that ignores SIGCHLD, has taken; 255 on an old kernel."""
    info = bytearray(PIDFD_INFO_SIZE)
    for _ in range(10):
        info[0] = PIDFD_INFO_EXIT
        try:
            fcntl.ioctl(pidfd, PIDFD_GET_INFO, info)
        except (OSError, ValueError):
            return UNKNOWN_STATUS
        if info[0] & PIDFD_INFO_EXIT:
            return os.waitstatus_to_exitcode(int.from_bytes(info[60:64], sys.byteorder))
        time.sleep(0.001)  # the process is over but not quite gone
    return UNKNOWN_STATUS


def last_pid() -> int:
    """The newest pid of this PID namespace; 0 when the kernel does not tell."""
    try:
        return int(_content("/proc/loadavg").rsplit(None, 1)[-1])
    except (OSError, ValueError, IndexError):
        return 0


def all_pids() -> set[int]:
    try:
        return {int(name) for name in os.listdir("/proc") if name.isdecimal()}
    except OSError:
        return set()


@functools.cache
def seconds_to_start_over() -> float:
    """How long the kernel needs at least to use up all pids and begin again with the low ones."""
    try:
        return int(_content("/proc/sys/kernel/pid_max")) / PIDS_PER_CORE_SECOND / (os.cpu_count() or 1)
    except (OSError, ValueError):
        return 0.0


def proc_shows_our_pids() -> bool:
    """False where /proc is missing or belongs to another PID namespace: its numbers would hit strangers."""
    try:
        return os.readlink("/proc/self") == str(os.getpid())
    except OSError:
        return False


def environment_of(pid: int) -> bytes | None:
    """The environment of `pid`, empty when out of reach; None when it has none yet, in the middle of exec."""
    is_denied = False
    try:
        for thread in _threads(pid):
            environment = _environment(pid, thread)
            if environment:
                return environment
            is_denied = is_denied or environment is None
        fields = _fields(pid)
        flags, end_of_environment = int(fields[6]), int(fields[48])
    except (OSError, ValueError, IndexError) as error:
        if getattr(error, "errno", 0) in SHORTAGES:
            raise
        return b""
    return None if end_of_environment == 0 and not flags & PF_EXITING and not is_denied else b""


def parent_of(pid: int) -> int:
    """0 when it is gone."""
    try:
        return int(_fields(pid)[1])
    except (OSError, ValueError, IndexError):
        return 0


def started_at(pid: int) -> str:
    """Tells a process from a later one with its number; empty where the system does not say."""
    try:
        return _fields(pid)[19].decode()
    except (OSError, IndexError):
        return ""


def _fields(pid: int) -> list[bytes]:
    """Of /proc/PID/stat, from the third on: the second may hold anything."""
    return _content(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _threads(pid: int) -> Iterator[str]:
    """The first thread, then the others: a process may have ended its first and live on in them."""
    yield str(pid)
    yield from os.listdir(f"/proc/{pid}/task")


def _environment(pid: int, thread: str) -> bytes | None:
    """As that thread shows it; None when it may not be seen, as of a thread of ours that has ended."""
    try:
        return _content(f"/proc/{pid}/task/{thread}/environ")
    except ProcessLookupError:
        return b""
    except PermissionError:
        return None


def has_hung_up(*pipes: int) -> bool:
    """Whether nobody holds a write end of any of these pipes."""
    poller = select.poll()
    for fd in pipes:
        poller.register(fd, 0)
    return len(poller.poll(0)) == len(pipes)


def holds_inherited_end(pid: int, pipes: tuple[int, ...]) -> bool:
    """Whether `pid` has a write end of these pipes from a process we started.

    Copies that a fork of this program makes, and children of it that are about to exec, have theirs marked
    close-on-exec, as they were made; only what came through exec is not. OSError where descriptors are short.
    """
    names = {f"pipe:[{os.fstat(fd).st_ino}]" for fd in pipes}
    try:
        return any(
            os.readlink(f"/proc/{pid}/fd/{fd}") in names
            and _flags(pid, fd) & (os.O_ACCMODE | os.O_CLOEXEC) == os.O_WRONLY
            for fd in os.listdir(f"/proc/{pid}/fd")
        )
    except (OSError, ValueError) as error:
        if getattr(error, "errno", 0) in SHORTAGES:
            raise
        return False


def _flags(pid: int, fd: str) -> int:
    return int(_content(f"/proc/{pid}/fdinfo/{fd}").partition(b"flags:")[2].split()[0], base=8)


def _content(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = [os.read(fd, READ_SIZE)]
        while len(parts[-1]) == READ_SIZE:
            parts.append(os.read(fd, READ_SIZE))
        return b"".join(parts)
    finally:
        os.close(fd)


class PidOrder:
    """Pids are given out upwards until they are used up; then the low ones are given out again.

    Between two looks that are close enough, the kernel cannot have come round to where it was: the newest pid
    is higher than before, or the order was lost.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._losses = 0
        self._newest = 0
        self._looked = -math.inf

    def losses(self) -> int:
        """How often the order was lost: two equal answers say that it was not in between.

        Whoever asks keeps it known for everybody, if somebody asks every `look_seconds`.
        """
        now = time.monotonic()
        with self._lock:
            if now - self._looked >= self.look_seconds():
                newest, before = last_pid(), self._newest
                is_close = time.monotonic() - self._looked < seconds_to_start_over()
                self._losses += not (is_close and 0 < before <= newest)
                self._newest, self._looked = newest, now
            return self._losses

    def newest(self) -> tuple[int, int]:
        """The newest pid, and how often the order was lost until that was made.

        Every look before counts here: after a round, a pid can be lower than the last one seen and yet higher than
        that of a run which began long ago.
        """
        before = self._newest
        newest = last_pid()
        losses = self.losses()
        return newest, losses if newest >= before else losses + 1

    @staticmethod
    def look_seconds() -> float:
        return seconds_to_start_over() / LOOKS_A_ROUND
