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

import errno
import time
from functools import partial

from skillkit.core.exceptions import ScriptPermissionError
from skillkit.core.run.process import portable
from skillkit.core.run.process.kernel import pidfds_work
from skillkit.core.run.process.orphans import start_keeper
from skillkit.core.run.process.pipes import Capture, Descriptors, Watchdog
from skillkit.core.run.process.running import KILLED_STATUS, Ahead, Ending, ProcessRequest, Run, exit_of, marked
from skillkit.core.run.process.spawn import DEVNULL, FIRST_FREE_FD, PIPE, can_preface, popen
from skillkit.core.run.process.survivors import NOBODY, has_other_runs, kill_group, new_marker
from skillkit.core.values.runs import NO_CONTROL, ProcessExit, RunControl, ScriptCommand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from skillkit.core.run.sandbox.base import Confined

    OnStop = Callable[[ProcessExit], None]

__all__ = ["Ahead", "ProcessRequest", "can_preface", "launch", "run_confined", "run_process", "start_ahead"]

SHORTAGE_LOOK_SECONDS = 0.02
ALONE_SECONDS = 0.5


def run_process(
    request: ProcessRequest,
    control: RunControl = NO_CONTROL,
    on_stop: OnStop | None = None,
    ahead: Ahead | None = None,
) -> ProcessExit:
    """Run a command to its end, its timeout or its cancellation, and leave nothing of it behind.

    The caller's `on_output` gets the bytes that are kept, as they come; what it raises kills the run and comes out
    here, and so does an interrupt; `on_stop` is told before how the process ended.
    A command cancelled beforehand does not start. A command that cannot start raises OSError; where only the
    descriptors are short, and other runs have them, it waits. `ahead` is its process where it was started before.
    """
    start_keeper()
    limit, on_output = request.output_limit, control.on_output
    captures = Capture("stdout", limit, on_output), Capture("stderr", limit, on_output)
    if not pidfds_work():
        return _run_portably(request, captures, control, on_stop)
    with ahead.held if ahead else Descriptors() as held:
        run = ahead.taken_over(request.stdin, captures) if ahead else _start(request, captures, held, control, on_stop)
        if run is None:
            return exit_of(captures, KILLED_STATUS, 0.0, Ending.CANCELLED, NOBODY)
        try:
            deadline = run.tree.started + request.timeout
            if on_output is None:
                ending = run.attend(deadline, control)
            else:
                with Watchdog(deadline, partial(kill_group, run.tree)) as watchdog:
                    ending = run.attend(deadline, control)
                ending = Ending.TIMED_OUT if watchdog.has_bitten else ending
            duration = time.monotonic() - run.tree.started
            survivors = run.settle(ending)
        except BaseException:
            run.stop(on_stop)
            raise
        run.abandon()
    return exit_of(captures, run.status, duration, ending, survivors)


def run_confined(
    confined: Confined,
    stdin: bytes,
    timeout: float,
    output_limit: int,
    control: RunControl = NO_CONTROL,
    on_stop: OnStop | None = None,
    ahead: Ahead | None = None,
) -> ProcessExit:
    """As `run_process`, for a command that its walls have put together."""
    return run_process(_request(confined, stdin, timeout, output_limit), control, on_stop, ahead)


def launch(
    command: ScriptCommand,
    confined: Confined,
    control: RunControl,
    on_end: Callable[[ProcessExit], None],
    ahead: Ahead | None = None,
) -> ProcessExit:
    """Run a command inside its walls; what the system refuses to start is an error that says what was too much.

    How the process ended is told to `on_end`, also where something is raised afterwards. `ahead` has begun already.
    """
    raised: list[BaseException] = []

    def listen(stream: str, data: bytes) -> None:
        try:
            control.on_output(stream, data)  # type: ignore[misc]  # only passed on where there is one
        except BaseException as error:
            raised.append(error)
            raise

    heard = control._replace(on_output=listen) if control.on_output else control
    try:
        ended = run_confined(confined, command.stdin, command.timeout, command.output_limit, heard, on_end, ahead)
    except (OSError, ValueError) as error:
        if error in raised:  # the caller's own: it passes through as it is
            raise
        raise ScriptPermissionError(
            f"{command.script_name!r} of {command.skill_name!r} could not be started: "
            f"{getattr(error, 'strerror', None) or error}. "
            "Check its interpreter, the working directory, and the size of arguments and environment."
        ) from error
    on_end(ended)
    return ended


def start_ahead(confined: Confined, *, has_input: bool) -> Ahead:
    """A process that waits inside its walls for somebody to hand a run over; `has_input` says that it will be fed."""
    start_keeper()
    return Ahead(_request(confined, b"\n" if has_input else b"", 0, 0))


def _request(confined: Confined, stdin: bytes, timeout: float, output_limit: int) -> ProcessRequest:
    return ProcessRequest(
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
        preface=confined.preface,
    )


def _start(
    request: ProcessRequest,
    captures: tuple[Capture, ...],
    held: Descriptors,
    control: RunControl,
    on_stop: OnStop | None,
) -> Run | None:
    """The run, started; it waits while other runs have the descriptors it needs, or begin and may have them."""
    until = time.monotonic() + ALONE_SECONDS
    while not control.is_set():
        run = Run(held, captures)
        try:
            run.start(request)
            run.listen(request.stdin, captures)
        except BaseException as error:
            run.stop(on_stop)
            held.close_all()
            if has_other_runs():
                until = time.monotonic() + ALONE_SECONDS
            if getattr(error, "errno", 0) != errno.EMFILE or time.monotonic() > until:
                raise
        else:
            return run
        time.sleep(SHORTAGE_LOOK_SECONDS)
    return None


def _run_portably(
    request: ProcessRequest,
    captures: tuple[Capture, ...],
    control: RunControl,
    on_stop: OnStop | None,
) -> ProcessExit:
    if control.is_set():
        return exit_of(captures, KILLED_STATUS, 0.0, Ending.CANCELLED, NOBODY)
    started = time.monotonic()
    streams = (PIPE if request.stdin else DEVNULL, PIPE, PIPE)
    environment = marked(request, new_marker())
    with portable.job_for(request.job_limits) as job, Descriptors() as held:
        given = held.open_all(request.contents, request.places, least=FIRST_FREE_FD)
        process = popen(request.argv, request.cwd, environment, streams, given)
        held.close_all()
        try:
            why = portable.attend(process, captures, request.stdin, started + request.timeout, control.is_set, job)
        except BaseException:
            if on_stop is not None:
                status = KILLED_STATUS if process.returncode is None else process.returncode
                on_stop(exit_of(captures, status, time.monotonic() - started, Ending.CANCELLED, NOBODY))
            raise
    duration = time.monotonic() - started
    return exit_of(captures, process.returncode, duration, Ending[why], NOBODY)
