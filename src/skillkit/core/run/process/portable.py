"""A started process -> its end, where the kernel has no pidfd: other systems, old kernels, strict containers.

Plain threads and a look every few milliseconds. It kills the process group, so what left the group survives; on
Windows the job object, which nothing leaves. Cancelling by descriptor needs `select.poll`, which Windows lacks:
there only the event cancels. Exercised on Linux only; macOS and Windows are untested.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from contextlib import nullcontext, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from typing import IO, Any, Self

    from skillkit.core.run.process.pipes import Capture
    from skillkit.core.values.policy import Limits

__all__ = ["Job", "attend", "extended_limits", "job_for"]

LOOK_SECONDS = 0.005
DRAIN_SECONDS = 0.25
CHUNK = 65_536  # bytes

# Of job objects.
EXTENDED_LIMITS = 9
ACTIVE_PROCESSES, PROCESS_MEMORY, KILL_ON_CLOSE = 0x8, 0x100, 0x2000
MEGABYTE = 1 << 20


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


class BasicLimits(ctypes.Structure):
    _fields_ = [
        ("process_time", ctypes.c_int64),
        ("job_time", ctypes.c_int64),
        ("flags", ctypes.c_uint32),
        ("least_working_set", ctypes.c_size_t),
        ("most_working_set", ctypes.c_size_t),
        ("processes", ctypes.c_uint32),
        ("affinity", ctypes.c_size_t),
        ("priority", ctypes.c_uint32),
        ("scheduling", ctypes.c_uint32),
    ]


class ExtendedLimits(ctypes.Structure):
    _fields_ = [
        ("basic", BasicLimits),
        ("counters", ctypes.c_uint64 * 6),
        ("process_memory", ctypes.c_size_t),
        ("job_memory", ctypes.c_size_t),
        ("most_process_memory", ctypes.c_size_t),
        ("most_job_memory", ctypes.c_size_t),
    ]


def extended_limits(limits: Limits | None) -> ExtendedLimits:
    """Without limits the job only ends everything in it."""
    wanted = ExtendedLimits()
    wanted.basic.flags = KILL_ON_CLOSE
    if limits is not None:
        wanted.basic.flags |= ACTIVE_PROCESSES | PROCESS_MEMORY
        wanted.basic.processes = limits.processes
        wanted.process_memory = limits.data_megabytes * MEGABYTE
    return wanted


class Job:
    """A Windows job object: whatever a script starts is in it, and ends when it is left.

    Written from the documentation. The structures and the order of calls are tested; on Windows itself it is untested.
    """

    def __init__(self, limits: Limits | None, kernel: Any = None, native: Any = None) -> None:  # noqa: ANN401 - libraries
        self._kernel = _library("kernel32") if kernel is None else kernel
        self._native = _library("ntdll") if native is None else native
        self._kernel.CreateJobObjectW.restype = ctypes.c_void_p
        self._handle = ctypes.c_void_p(self._checked("CreateJobObjectW", None, None))
        wanted = extended_limits(limits)
        try:
            self._checked(
                "SetInformationJobObject", self._handle, EXTENDED_LIMITS, ctypes.byref(wanted), ctypes.sizeof(wanted)
            )
        except OSError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begin(self, process: int) -> None:
        """Put a suspended process inside and let it go; what cannot be put inside never begins."""
        self._checked("AssignProcessToJobObject", self._handle, ctypes.c_void_p(process))
        if self._native.NtResumeProcess(ctypes.c_void_p(process)) != 0:
            raise OSError("NtResumeProcess: the process could not be let go")

    def end(self) -> None:
        """End everything inside, whoever started it."""
        self._kernel.TerminateJobObject(self._handle, 1)

    def close(self) -> None:
        self._kernel.CloseHandle(self._handle)

    def _checked(self, name: str, *arguments: object) -> int:
        answer: int | None = getattr(self._kernel, name)(*arguments)
        if not answer:
            raise OSError(f"{name} failed: {_last_error()}")
        return answer


def _library(name: str) -> Any:  # noqa: ANN401 - a library of the system
    return ctypes.WinDLL(name, use_last_error=True)  # type: ignore[attr-defined]  # only Windows has it


def _last_error() -> int:
    return int(getattr(ctypes, "get_last_error", ctypes.get_errno)())
