"""A command -> what its process did: its status, the first bytes of its output, and nothing left running.

Theory of operation. One thread starts a process and attends to it: it sleeps in one `poll` on both output pipes, the
input pipe, the process's pidfd and the caller's wakeup descriptor, and moves what can be moved. No thread is made for a
pipe and nothing is read ahead, so that hundreds of runs cost little more than their scripts; output beyond the limit
is read and only counted, so that no script waits for us and memory stays bounded.

A run has three parts. `start` makes pipes, marks the environment and spawns; the pid is known the moment there is one,
because an interrupt may strike anywhere. `attend` waits for the exit, the deadline or a cancellation. `settle` ends
what is left: it reads on for a moment (a helper may still write the last lines), kills the group if the run was cut
short, hunts down descendants that left the group (`survivors`), drains the pipes and takes the exit status. Whatever is
raised in between, `stop` and `abandon` do the same in a hurry.

A fourth pipe, which nobody reads, is held by every descendant that does not close it: while it is open, somebody of
the run is alive. Where the kernel has no pidfds, `portable` does all this with plain threads, less thoroughly.
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
from skillkit.core.run import portable
from skillkit.core.run.kernel import UNKNOWN_STATUS, pidfds_work, taken_status
from skillkit.core.run.orphans import start_keeper
from skillkit.core.run.pipes import READ_SIZE, Capture, Descriptors, Feed, Watchdog
from skillkit.core.run.spawn import DEVNULL, FIRST_FREE_FD, PIPE, Start, popen, spawn
from skillkit.core.run.survivors import (
    MARKER_NAME,
    NOBODY,
    Survivors,
    Tree,
    end_survivors,
    has_other_runs,
    kill_group,
    new_marker,
    pid_order,
    release,
    start_counted,
)
from skillkit.core.values.policy import Limits
from skillkit.core.values.runs import NO_CONTROL, ProcessExit, RunControl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from skillkit.core.run.sandbox.base import Confined

    OnStop = Callable[[ProcessExit], None]

__all__ = ["ProcessRequest", "run_confined", "run_process"]

CANCEL_LOOK_SECONDS = 0.02
SHORTAGE_LOOK_SECONDS = 0.02
LINGER_SECONDS = 0.1  # for `> >(tee log)`: the script is over, its helper still writes the last lines
DRAIN_SECONDS = 0.25  # for pipes that somebody out of reach keeps open
DEATH_SECONDS = 2.0  # for a killed process that the kernel cannot end yet
KILLED_STATUS = -9  # by SIGKILL, a name that Windows does not have
IDLE_BUFFERS = 16
OUTER_MARK = os.environ.get(MARKER_NAME)  # this process has had it, or not, from its start
ENDS_WITH_US = "--die-with-parent"  # bubblewrap's word: the kernel ends the walls when this program is killed
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


# Of such a tree, interrupted before it was known, every pid is looked at, whatever others know about it.
UNBORN = Tree(pid=0, marker=b"", pipes=(), started=math.inf, order=-1)
_idle_buffers: list[memoryview] = []  # a new one must be cleared, which takes its time and the caches


class _Ending(enum.Enum):
    EXITED = enum.auto()
    TIMED_OUT = enum.auto()
    CANCELLED = enum.auto()


def run_process(
    request: ProcessRequest, control: RunControl = NO_CONTROL, on_stop: OnStop | None = None
) -> ProcessExit:
    """Run a command to its end, its timeout or its cancellation, and leave nothing of it behind.

    The caller's `on_output` gets the bytes that are kept, as they come; what it raises kills the run and comes out
    here, and so does an interrupt; `on_stop` is told before how the process ended.
    A command cancelled beforehand does not start. A command that cannot start raises OSError; where only the
    descriptors are short, and other runs have them, it waits.
    """
    limit, on_output = request.output_limit, control.on_output
    captures = Capture("stdout", limit, on_output), Capture("stderr", limit, on_output)
    if not pidfds_work():
        return _run_portably(request, captures, control, on_stop)
    with Descriptors() as held:
        run = _start(request, captures, held, control, on_stop)
        if run is None:
            return _exit(captures, KILLED_STATUS, 0.0, _Ending.CANCELLED, NOBODY)
        try:
            deadline = run.tree.started + request.timeout
            if on_output is None:
                ending = run.attend(deadline, control)
            else:
                with Watchdog(deadline, partial(kill_group, run.tree)) as watchdog:
                    ending = run.attend(deadline, control)
                ending = _Ending.TIMED_OUT if watchdog.has_bitten else ending
            duration = time.monotonic() - run.tree.started
            survivors = run.settle(ending)
        except BaseException:
            run.stop(on_stop)
            raise
        run.abandon()
    return _exit(captures, run.status, duration, ending, survivors)


def run_confined(
    confined: Confined,
    stdin: bytes,
    timeout: float,
    output_limit: int,
    control: RunControl = NO_CONTROL,
    on_stop: OnStop | None = None,
) -> ProcessExit:
    """As `run_process`, for a command that its walls have put together."""
    if ENDS_WITH_US not in confined.argv:  # then a keeper sees to it
        start_keeper()
    request = ProcessRequest(
        confined.argv,
        confined.cwd,
        confined.environment,
        stdin,
        timeout,
        output_limit,
        contents=confined.contents,
        job_limits=confined.job_limits,
        places=confined.places,
        handed=confined.handed,
    )
    return run_process(request, control, on_stop)


def _start(
    request: ProcessRequest,
    captures: tuple[Capture, ...],
    held: Descriptors,
    control: RunControl,
    on_stop: OnStop | None,
) -> _Run | None:
    """The run, started; it waits while it is other runs that have the descriptors it needs."""
    while not control.is_set():
        run = _Run(request.stdin, captures, held)
        try:
            run.start(request)
        except BaseException as error:
            run.stop(on_stop)
            held.close_all()
            if getattr(error, "errno", 0) != errno.EMFILE or not has_other_runs():
                raise
        else:
            return run
        time.sleep(SHORTAGE_LOOK_SECONDS)
    return None


def _exit(
    captures: tuple[Capture, ...], status: int, duration: float, ending: _Ending, survivors: Survivors
) -> ProcessExit:
    stdout, stderr = captures
    return ProcessExit(
        status=status,
        stdout=stdout.kept(),
        stderr=stderr.kept(),
        stdout_bytes=stdout.count,
        stderr_bytes=stderr.count,
        duration_ms=duration * 1000,
        timed_out=ending is _Ending.TIMED_OUT,
        cancelled=ending is _Ending.CANCELLED,
        leftovers_killed=survivors.killed,
        kill="best-effort" if survivors.complete else "incomplete",
    )


def _marked(request: ProcessRequest, marker: str) -> Mapping[str, str]:
    """A run inside a run carries both marks, so that the outer one finds it too."""
    return {**request.environment, MARKER_NAME: f"{OUTER_MARK}.{marker}" if OUTER_MARK else marker}


class _Run:
    """A process, once it is started, and the pipes that tie it to us."""

    def __init__(self, stdin: bytes, captures: tuple[Capture, ...], held: Descriptors) -> None:
        self.status = UNKNOWN_STATUS
        self._held = held
        self._pidfd = self._feed_fd = -1
        self._has_exited = self._was_woken = self._is_reaped = False
        self._feed = Feed(stdin)
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
        environment = _marked(request, marker)
        streams = (stdin, stdout_end, stderr_end)
        start = Start(request.argv, request.cwd, environment, streams, liveness_end, LIVENESS_FD, given)
        mark, pipes = marker.encode(), (liveness, stdout, stderr)
        self.tree = Tree(UNBORN.pid, mark, pipes, UNBORN.started, UNBORN.order)
        self._captures = dict(zip((stdout, stderr), self._all_captures, strict=True))
        pid, began, order = start_counted(partial(spawn, start, self._born))
        self.tree = Tree(pid, mark, pipes, began, order)
        held.close(stdin, stdout_end, stderr_end, liveness_end, *given)
        self._watch()

    def _watch(self) -> None:
        for fd in self._captures:
            self._poller.register(fd, select.POLLIN)
        try:
            self._pidfd = self._held.keep(os.pidfd_open(self.tree.pid))
        except ProcessLookupError:  # over, and reaped by the kernel or another thread
            self._has_exited = True
        else:
            self._poller.register(self._pidfd, select.POLLIN)
        if self._feed_fd >= 0:
            os.set_blocking(self._feed_fd, False)
            self._poller.register(self._feed_fd, select.POLLOUT)
            self._write()

    def attend(self, deadline: float, control: RunControl) -> _Ending:
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
                return _Ending.TIMED_OUT
            if self._was_woken or (cancel is not None and cancel.is_set()):
                return _Ending.CANCELLED
            if now >= next_look:
                next_look = now + look
                pid_order.losses()  # so that they are known: else every pid there is has to be looked at in the end
            self._turn(min(deadline - now, longest))
        return _Ending.EXITED

    def settle(self, ending: _Ending) -> Survivors:
        """End what is left of the tree, read what is left in the pipes, take the status."""
        if ending is _Ending.EXITED:
            self._pump(LINGER_SECONDS)
        else:
            kill_group(self.tree)
            self._pump(DEATH_SECONDS, until_exit=True)
        survivors = end_survivors(self._open_tree(), group_was_killed=ending is not _Ending.EXITED)
        self._pump(DRAIN_SECONDS)
        self._reap()
        return survivors

    def stop(self, on_stop: OnStop | None) -> None:
        """As `abandon`, and says how far it came; nothing of what was never started."""
        ending = _Ending.EXITED if self._has_exited else _Ending.CANCELLED
        survivors = self.abandon()
        if on_stop is not None and self._born[0]:
            duration = max(0.0, time.monotonic() - self.tree.started)
            on_stop(_exit(self._all_captures, self.status, duration, ending, survivors))

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
        pid, marker, pipes, started, order = self.tree
        return Tree(pid, marker, (pipes[0], *self._captures), started, order)

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


def _run_portably(
    request: ProcessRequest,
    captures: tuple[Capture, ...],
    control: RunControl,
    on_stop: OnStop | None,
) -> ProcessExit:
    if control.is_set():
        return _exit(captures, KILLED_STATUS, 0.0, _Ending.CANCELLED, NOBODY)
    started = time.monotonic()
    streams = (PIPE if request.stdin else DEVNULL, PIPE, PIPE)
    environment = _marked(request, new_marker())
    with portable.job_for(request.job_limits) as job, Descriptors() as held:
        given = held.open_all(request.contents, request.places, least=FIRST_FREE_FD)
        process = popen(request.argv, request.cwd, environment, streams, given)
        held.close_all()
        try:
            why = portable.attend(process, captures, request.stdin, started + request.timeout, control.is_set, job)
        except BaseException:
            if on_stop is not None:
                status = KILLED_STATUS if process.returncode is None else process.returncode
                on_stop(_exit(captures, status, time.monotonic() - started, _Ending.CANCELLED, NOBODY))
            raise
    duration = time.monotonic() - started
    return _exit(captures, process.returncode, duration, _Ending[why], NOBODY)
