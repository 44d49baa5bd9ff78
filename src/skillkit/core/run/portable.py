"""A started process -> its end, where the kernel has no pidfd: other systems, old kernels, strict containers.

Plain threads and a look every few milliseconds. It kills the process group (on Windows the process), so what
left the group survives. Cancelling by descriptor needs `select.poll`, which Windows lacks: there only the event
cancels. Exercised on Linux only; macOS and Windows are untested.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from typing import IO

    from skillkit.core.run.capture import Capture

__all__ = ["attend"]

LOOK_SECONDS = 0.005
DRAIN_SECONDS = 0.25
CHUNK = 65_536  # bytes


def attend(
    popen: subprocess.Popen[bytes],
    captures: tuple[Capture, ...],
    stdin: bytes,
    deadline: float,
    is_cancelled: Callable[[], bool],
) -> str:
    """Move input and output until the process ends or has to; the reason, in one word."""
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
        _kill(popen)
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


def _kill(popen: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        # The group may outlive its leader: that is who this is for.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(popen.pid, signal.SIGKILL)
    popen.kill()
