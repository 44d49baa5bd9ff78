"""Limits -> a Windows job object: whatever a script starts is in it, and ends when it is closed.

Written from the documentation. The structures and the order of calls are tested; on Windows itself it is untested.
"""

from __future__ import annotations

import ctypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

    from skillkit.core.policy import Limits

__all__ = ["Job"]

EXTENDED_LIMITS = 9
ACTIVE_PROCESSES, PROCESS_MEMORY, KILL_ON_CLOSE = 0x8, 0x100, 0x2000
MEGABYTE = 1 << 20


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
    """One run's job object; leaving it ends whatever is still inside."""

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
