"""A started process -> its end, where the kernel has no pidfd: other systems, old kernels, strict containers.

Plain threads and a look every few milliseconds. It kills the process group, so what left the group survives; on
Windows the job object, which nothing leaves. Cancelling by descriptor needs `select.poll`, which Windows lacks:
there only the event cancels. Exercised on Linux only; macOS and Windows are untested.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import nullcontext, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from typing import IO

    from skillkit.core.policy import Limits
    from skillkit.core.run.capture import Capture
    from skillkit.core.run.job import Job

__all__ = ["attend", "job_for"]

LOOK_SECONDS = 0.005
DRAIN_SECONDS = 0.25
CHUNK = 65_536  # bytes


def attend(
    popen: subprocess.Popen[bytes],
    captures: tuple[Capture, ...],
    stdin: bytes,
    deadline: float,
    is_cancelled: Callable[[], bool],
    job: Job | None = None,
) -> str:
    """Move input and output until the process ends or has to; the reason, in one word."""
    _begin(popen, job)
    errors: list[BaseException] = []
    threads = [
        _thread(errors, _read, popen.stdout, captures[0]),
        _thread(errors, _read, popen.stderr, captures[1]),
    ]
    if popen.stdin is not None:
        threads.append(_thread(errors, _write, popen.stdin, stdin))
    try:
        why = _reason(popen, deadline, is_cancelled, errors)
    finally:
        _kill(popen, job)
        popen.wait()
        until = time.monotonic() + DRAIN_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
    if errors:
        raise errors[0]
    return why


def _reason(
    popen: subprocess.Popen[bytes],
    deadline: float,
    is_cancelled: Callable[[], bool],
    errors: list[BaseException],
) -> str:
    while popen.poll() is None:
        if time.monotonic() >= deadline:
            return "TIMED_OUT"
        if errors or is_cancelled():
            return "CANCELLED"
        time.sleep(LOOK_SECONDS)
    return "EXITED"


def _thread(errors: list[BaseException], work: Callable[..., None], *arguments: object) -> threading.Thread:
    def guarded() -> None:
        try:
            work(*arguments)
        except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
            errors.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    return thread


def _read(stream: IO[bytes], capture: Capture) -> None:
    with stream:
        while chunk := stream.read(CHUNK):
            capture.add(memoryview(chunk))


def _write(stream: IO[bytes], content: bytes) -> None:
    with suppress(OSError), stream:  # nobody has to read its input
        rest = memoryview(content)
        while rest:
            rest = rest[stream.write(rest) :]


def job_for(limits: Limits | None) -> Job | nullcontext[None]:
    """On Windows, what holds a process and all that it starts."""
    if os.name != "nt":
        return nullcontext()
    from skillkit.core.run.job import Job

    return Job(limits)


def _begin(popen: subprocess.Popen[bytes], job: Job | None) -> None:
    """A process that cannot be put into its job never begins."""
    if job is None:
        return
    try:
        job.begin(int(popen._handle))  # type: ignore[attr-defined]  # noqa: SLF001 - Windows only, and no other way
    except OSError:
        popen.kill()
        popen.wait()
        raise


def _kill(popen: subprocess.Popen[bytes], job: Job | None) -> None:
    if job is not None:
        job.end()
    if hasattr(os, "killpg"):
        # The group may outlive its leader: that is who this is for.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(popen.pid, signal.SIGKILL)
    popen.kill()
