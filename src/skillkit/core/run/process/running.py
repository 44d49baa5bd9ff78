"""A started process and the pipes that tie it to us -> how it ended; also of one that was started ahead of its run.

The theory of operation stands in the room's own docstring.
"""

from __future__ import annotations

import enum
import errno
import math
import os
import select
import time
from array import array
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from skillkit.core.paths import Judged
from skillkit.core.run.process.kernel import UNKNOWN_STATUS, taken_status
from skillkit.core.run.process.pipes import READ_SIZE, Capture, Descriptors, Feed
from skillkit.core.run.process.spawn import DEVNULL, FIRST_FREE_FD, PREFACE_FD, Start, can_preface
from skillkit.core.run.process.spawn import spawn as spawn_process
from skillkit.core.run.process.survivors import (
    MARKER_NAME,
    NOBODY,
    Survivors,
    Tree,
    end_survivors,
    has_other_runs,
    idle,
    kill_group,
    new_marker,
    pid_order,
    release,
    start_counted,
)
from skillkit.core.values.policy import Limits
from skillkit.core.values.runs import ProcessExit, RunControl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    OnStop = Callable[[ProcessExit], None]

__all__ = ["KILLED_STATUS", "Ahead", "Ending", "ProcessRequest", "Run", "exit_of", "marked"]

CANCEL_LOOK_SECONDS = 0.02
LINGER_SECONDS = 0.1  # for `> >(tee log)`: the script is over, its helper still writes the last lines
DRAIN_SECONDS = 0.25  # for pipes that somebody out of reach keeps open
DEATH_SECONDS = 2.0  # for a killed process that the kernel cannot end yet
KILLED_STATUS = -9  # by SIGKILL, a name that Windows does not have
IDLE_BUFFERS = 16
OUTER_MARK = os.environ.get(MARKER_NAME)  # this process has had it, or not, from its start
PREFACED = {"PYTHONPATH": f"/proc/self/fd/{PREFACE_FD}"}
LIVENESS_FD = 200  # or above: clear of the numbers that scripts use by hand, and below bash's 255 as a rule


class ProcessRequest(NamedTuple):
    """What the runner needs of a command: nothing is inherited, nothing is looked up."""

    argv: tuple[str, ...]  # argv[0] is absolute
    cwd: str
    environment: Mapping[str, str]
    stdin: bytes  # b"" is an empty input, never the caller's
    timeout: float  # seconds
    output_limit: int = 10_000_000  # bytes kept of each stream
    contents: tuple[bytes, ...] = ()  # each becomes a descriptor whose number replaces `descriptor(n)` in argv
    job_limits: Limits | None = None  # for a job object, on Windows
    places: tuple[Judged, ...] = ()  # likewise, each opened if it still is what was judged
    handed: tuple[int, ...] = ()  # likewise, each a copy of the caller's
    preface: bytes = b""  # what a Python takes modules from that starts; where this system can place it


# Of such a tree, interrupted before it was known, every pid is looked at, whatever others know about it.
UNBORN = Tree(pid=0, marker=b"", pipes=(), started=math.inf, order=-1)
_idle_buffers: list[memoryview] = []  # a new one must be cleared, which takes its time and the caches


class Ending(enum.Enum):
    EXITED = enum.auto()
    TIMED_OUT = enum.auto()
    CANCELLED = enum.auto()


def exit_of(
    captures: tuple[Capture, ...], status: int, duration: float, ending: Ending, survivors: Survivors
) -> ProcessExit:
    stdout, stderr = captures
    return ProcessExit(
        status=status,
        stdout=stdout.kept(),
        stderr=stderr.kept(),
        stdout_bytes=stdout.count,
        stderr_bytes=stderr.count,
        duration_ms=duration * 1000,
        timed_out=ending is Ending.TIMED_OUT,
        cancelled=ending is Ending.CANCELLED,
        leftovers_killed=survivors.killed,
        kill="best-effort" if survivors.complete else "incomplete",
    )


def marked(request: ProcessRequest, marker: str) -> Mapping[str, str]:
    """A run inside a run carries both marks, so that the outer one finds it too."""
    return {**request.environment, MARKER_NAME: f"{OUTER_MARK}.{marker}" if OUTER_MARK else marker}


class Run:
    """A process, once it is started, and the pipes that tie it to us."""

    def __init__(self, held: Descriptors, captures: tuple[Capture, ...] = ()) -> None:
        self.status = UNKNOWN_STATUS
        self._held = held
        self._pidfd = self._feed_fd = -1
        self._has_exited = self._was_woken = self._is_reaped = False
        self._feed = Feed(b"")
        self._buffer = _idle_buffers.pop() if _idle_buffers else memoryview(bytearray(READ_SIZE))
        self._poller = select.poll()
        self._all_captures = captures
        self._captures: dict[int, Capture] = {}
        self._born = array("i", (0,))  # its pid, known as soon as there is one: an interrupt may strike anywhere
        self.tree = UNBORN

    def start(self, request: ProcessRequest) -> None:
        """Whatever comes out of here, `abandon` ends what was started."""
        held = self._held
        stdout, stdout_end = held.pipe()
        if held.are_scarce() and has_other_runs():
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        stderr, stderr_end = held.pipe()
        liveness, liveness_end = held.pipe()
        stdin, self._feed_fd = held.pipe() if request.stdin else (DEVNULL, -1)
        given = held.open_all(request.contents, request.places, request.handed, least=FIRST_FREE_FD)
        marker = new_marker()
        environment = marked(request, marker)
        streams = (stdin, stdout_end, stderr_end)
        preface = -1
        if request.preface and can_preface():
            preface = held.make_memory(request.preface, least=FIRST_FREE_FD)
            environment = {**environment, **PREFACED}
        start = Start(request.argv, request.cwd, environment, streams, liveness_end, LIVENESS_FD, given, preface)
        mark, pipes = marker.encode(), (liveness, stdout, stderr)
        self.tree = Tree(UNBORN.pid, mark, pipes, UNBORN.started, UNBORN.order)
        pid, began, order = start_counted(partial(spawn_process, start, self._born))
        self.tree = Tree(pid, mark, pipes, began, order)
        held.close(stdin, stdout_end, stderr_end, liveness_end, preface, *given)
        try:
            self._pidfd = self._held.keep(os.pidfd_open(self.tree.pid))
        except ProcessLookupError:  # over, and reaped by the kernel or another thread
            self._has_exited = True
        else:
            self._poller.register(self._pidfd, select.POLLIN)

    def listen(self, stdin: bytes, captures: tuple[Capture, ...]) -> None:
        """Begin to feed it and to read what it writes."""
        self._feed, self._all_captures = Feed(stdin), captures
        self._captures = dict(zip(self.tree.pipes[1:], captures, strict=True))
        for fd in self._captures:
            self._poller.register(fd, select.POLLIN)
        if self._feed_fd >= 0:
            os.set_blocking(self._feed_fd, False)
            self._poller.register(self._feed_fd, select.POLLOUT)
            self._write()

    def attend(self, deadline: float, control: RunControl) -> Ending:
        """Feed, read and wait until the process ends or has to."""
        cancel, wakeup_fd = control.cancel, control.wakeup_fd
        if wakeup_fd is not None:
            self._poller.register(wakeup_fd, select.POLLIN)
        look = pid_order.look_seconds() or math.inf
        longest = look if cancel is None else min(look, CANCEL_LOOK_SECONDS)
        next_look = self.tree.started + look
        while not self._has_exited:
            now = time.monotonic()
            if now >= deadline:
                return Ending.TIMED_OUT
            if self._was_woken or (cancel is not None and cancel.is_set()):
                return Ending.CANCELLED
            if now >= next_look:
                next_look = now + look
                pid_order.losses()  # so that they are known: else every pid there is has to be looked at in the end
            self._turn(min(deadline - now, longest))
        return Ending.EXITED

    def settle(self, ending: Ending) -> Survivors:
        """End what is left of the tree, read what is left in the pipes, take the status."""
        if ending is Ending.EXITED:
            self._pump(LINGER_SECONDS)
        else:
            kill_group(self.tree)
            self._pump(DEATH_SECONDS, until_exit=True)
        survivors = end_survivors(self._open_tree(), group_was_killed=ending is not Ending.EXITED)
        self._pump(DRAIN_SECONDS)
        self._reap()
        return survivors

    def stop(self, on_stop: OnStop | None) -> None:
        """As `abandon`, and says how far it came; nothing of what was never started."""
        ending = Ending.EXITED if self._has_exited else Ending.CANCELLED
        survivors = self.abandon()
        if on_stop is not None and self._born[0]:
            duration = max(0.0, time.monotonic() - self.tree.started)
            on_stop(exit_of(self._all_captures, self.status, duration, ending, survivors))

    def abandon(self) -> Survivors:
        """Kill and reap, unless everything was settled or nothing was started."""
        if self._is_reaped or not self._born[0]:
            if len(_idle_buffers) < IDLE_BUFFERS:
                _idle_buffers.append(self._buffer)
            return NOBODY
        self.tree = self.tree._replace(pid=self._born[0])
        kill_group(self.tree)
        survivors = end_survivors(self._open_tree(), group_was_killed=True)
        if self._pidfd >= 0:
            self._captures.clear()
            self._poller = select.poll()
            self._poller.register(self._pidfd, select.POLLIN)
            self._pump(DEATH_SECONDS, until_exit=True)
        self._reap()
        return survivors

    def _open_tree(self) -> Tree:
        """The tree with those pipes that have not ended yet: the others are closed."""
        return self.tree._replace(pipes=(self.tree.pipes[0], *self._captures))

    def _pump(self, seconds: float, *, until_exit: bool = False) -> None:
        """Read on for at most `seconds`, until all output has ended or the process has."""
        until = time.monotonic() + seconds
        while not self._has_exited if until_exit else self._captures:
            wait = until - time.monotonic()
            if wait <= 0:
                return
            self._turn(wait)

    def _turn(self, seconds: float) -> None:
        """Wait for one thing to happen, and move what can be moved."""
        for fd, events in self._poller.poll(seconds * 1000):
            if fd in self._captures:
                # A hang-up without data is the end: no need to read once more to be told so.
                if not events & select.POLLIN or not self._captures[fd].read(fd, self._buffer):
                    self._poller.unregister(fd)
                    self._held.close(fd)
                    del self._captures[fd]
            elif fd == self._feed_fd:
                self._write()
            else:
                self._has_exited = self._has_exited or fd == self._pidfd
                self._was_woken = self._was_woken or fd != self._pidfd
                self._poller.unregister(fd)

    def _write(self) -> None:
        if not self._feed.write(self._feed_fd):
            self._poller.unregister(self._feed_fd)
            self._held.close(self._feed_fd)
            self._feed_fd = -1

    def _reap(self) -> None:
        release(self.tree.pid)
        self._is_reaped = True
        try:
            has_no_end_yet = self._pidfd >= 0 and not self._has_exited
            pid, status = os.waitpid(self.tree.pid, os.WNOHANG if has_no_end_yet else 0)
        except ChildProcessError:
            self.status = taken_status(self._pidfd)
        else:
            # Where the kernel cannot end it yet, SIGKILL is what it will have died of.
            self.status = os.waitstatus_to_exitcode(status) if pid else KILLED_STATUS


class Ahead:
    """A process that was started before anybody asked for its run; it is taken over once, or ended."""

    def __init__(self, request: ProcessRequest) -> None:
        self.held = Descriptors()
        self._run = Run(self.held)
        self._is_taken = False
        try:
            self._run.start(request)
        except BaseException:
            self.end()
            raise
        idle.add(self.pid)

    @property
    def pid(self) -> int:
        return self._run.tree.pid

    @property
    def streams(self) -> tuple[int, ...]:
        """What it may have written to already."""
        return self._run.tree.pipes[1:]

    def taken_over(self, stdin: bytes, captures: tuple[Capture, ...]) -> Run:
        """Its time begins now; whom it leaves behind is not older either."""
        self._is_taken = True
        idle.discard(self.pid)
        newest, order = pid_order.newest()
        self._run.tree = self._run.tree._replace(started=time.monotonic(), order=order, since=newest)
        self._run.listen(stdin, captures)
        return self._run

    def kill(self) -> None:
        kill_group(self._run.tree)

    def stop(self, on_stop: OnStop) -> None:
        """Its run has begun, and nobody waits for it any more: it is ended, and how is told."""
        with self.held:
            self.taken_over(b"", (Capture("stdout", 0, None), Capture("stderr", 0, None))).stop(on_stop)

    def end(self) -> None:
        """Nothing where it was taken over: who did that ends it."""
        if not self._is_taken:
            self._is_taken = True
            idle.discard(self.pid)
            self._run.abandon()
            self.held.close_all()
