"""A process that is to wait before its script -> the promise that it cannot open the script before it waits.

Theory of operation. Where walls have no mounts, the script is there from the beginning, and Python goes on to it when
what makes it wait could not be loaded, for whatever reason. So the keeper looks at each system call between the start
of the interpreter and its first word to whoever it waits for: one that opens the script, or starts another process,
is its end. Then it is left alone. That costs some milliseconds, while nobody waits.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

from . import layers

__all__ = ["be_watched", "watch"]

TRACE_ME, SYSCALL, DETACH, SET_OPTIONS, SYSCALL_INFO = 0, 24, 17, 0x4200, 0x420E
GOOD_STOPS, END_WITH_US = 1, 1 << 20
ALL_KINDS = 0x40000000
CALL_STOP = signal.SIGTRAP | 0x80
INFO_BYTES, ENTRY, FIRST_WORD, WORD = 88, 1, 24, 8
# By machine (on others nobody waits): what opens a file, with the place of its path; what starts others; what writes.
OPENING = {"x86_64": {2: 0, 85: 0, 257: 1, 437: 1}, "aarch64": {56: 1, 437: 1}}
STARTING = {"x86_64": (56, 57, 58, 435, 425), "aarch64": (220, 435, 425)}
WRITING = {"x86_64": 1, "aarch64": 64}
PATH_BYTES = 4096
FAILED_EXIT_CODE = 125

ptrace = layers.libc.ptrace
ptrace.restype = ctypes.c_long


def be_watched() -> None:
    """By the parent, from the next program on."""
    _ask(TRACE_ME, 0)


def watch(pid: int, script: bytes, answers: int) -> None:
    """Until it says its first word by `answers`, or has ended."""
    machine = os.uname().machine
    _, status = os.waitpid(pid, ALL_KINDS)
    if not os.WIFSTOPPED(status):
        os._exit(FAILED_EXIT_CODE)
    _ask(SET_OPTIONS, pid, 0, GOOD_STOPS | END_WITH_US)
    number = 0
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        while True:
            _ask(SYSCALL, pid, 0, number)
            _, status = os.waitpid(pid, ALL_KINDS)
            if not os.WIFSTOPPED(status):
                os._exit(FAILED_EXIT_CODE)
            number = os.WSTOPSIG(status)
            if number == CALL_STOP:
                number = 0
                words = _entry(pid)
                if words and words[0] == WRITING[machine] and words[1] == answers:
                    break
                if words and _is_too_early(machine, words, memory.fileno(), script):
                    os.kill(pid, signal.SIGKILL)
    _ask(DETACH, pid)


def _is_too_early(machine: str, words: list[int], memory: int, script: bytes) -> bool:
    place = OPENING[machine].get(words[0])
    if place is None:
        return words[0] in STARTING[machine]
    return os.pread(memory, PATH_BYTES, words[1 + place])[: len(script) + 1] == script + b"\0"


def _entry(pid: int) -> list[int]:
    """The number of the call that it is about to make and its six arguments; nothing at its return."""
    info = ctypes.create_string_buffer(INFO_BYTES)
    _ask(SYSCALL_INFO, pid, INFO_BYTES, info)
    if info.raw[0] != ENTRY:
        return []
    return [
        int.from_bytes(info.raw[at:][:WORD], sys.byteorder) for at in range(FIRST_WORD, FIRST_WORD + 7 * WORD, WORD)
    ]


def _ask(request: int, pid: int, address: int = 0, data: object = 0) -> None:
    value = ctypes.c_void_p(data) if isinstance(data, int) else data
    layers.check(ptrace(ctypes.c_long(request), ctypes.c_long(pid), ctypes.c_void_p(address), value))
