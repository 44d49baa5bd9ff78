"""A process that waits -> the same process with the command line, environment and processor time of its run.

Theory of operation. Only a process itself may tell the kernel where its command line and environment are, and most
interpreters have no way to. So it is stopped while it waits in a system call, as a debugger would, makes three others
with our arguments (memory, the end of its heap, the new places), and is put back: it goes on to wait and cannot know.
Loaded by the attacher, which has the rights; for processors whose registers are known here.
"""

import os
import sys
from _ctypes import Array, _SimpleCData

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from . import mounter
else:
    import mounter

SEIZE, INTERRUPT, GET_REGISTERS, SET_REGISTERS, STEP, DETACH = 0x4206, 0x4207, 12, 13, 9, 17
ALL_KINDS = 0x40000000  # of children: __WALL
# Of x86-64, by their places in the kernel's list; the instruction that calls the kernel has two bytes.
COUNT, RESULT, BEFORE, NEXT, ARGUMENTS = 27, 10, 15, 16, (14, 13, 12, 7, 9, 8)
CALL = b"\x0f\x05"
MMAP, BRK, PRCTL = 9, 12, 157
PR_SET_MM, PR_SET_MM_MAP = 35, 14
RLIMIT_CPU = 0
READ_AND_WRITE, OF_ITS_OWN = 3, 0x22
WORD, NONE = 8, (1 << 64) - 1
# Of /proc/PID/stat, counted from 1: where code, data, heap and stack begin and end; processor time in ticks.
KEPT_FIELDS, TIME_FIELDS, FIRST_FIELD = (26, 27, 45, 46, 47, 28), (14, 15), 3


class _Long(_SimpleCData):  # type: ignore[type-arg]  # an address needs more than an int
    _type_ = "l"


class _Register(_SimpleCData):  # type: ignore[type-arg]
    _type_ = "L"


class _Registers(Array):  # type: ignore[type-arg]
    _length_ = COUNT
    _type_ = _Register


ptrace, prlimit = mounter.function("ptrace"), mounter.function("prlimit")


def is_known() -> bool:
    return os.uname().machine == "x86_64" and sys.maxsize > 1 << 32


def rename(pid: int, folder: int, words: bytes, variables: bytes) -> bool:
    """Whether it waited; `folder` is what /proc has about it, words and variables end with NUL each."""
    asked(SEIZE, pid)
    try:
        asked(INTERRUPT, pid)
        os.waitpid(pid, ALL_KINDS)
        before = _Registers()
        asked(GET_REGISTERS, pid, 0, before)
        try:
            return _move(pid, folder, words, variables, [*before])
        finally:
            asked(SET_REGISTERS, pid, 0, before)
    finally:
        asked(DETACH, pid)


def _move(pid: int, folder: int, words: bytes, variables: bytes, registers: "Sequence[int]") -> bool:
    file = os.open("mem", os.O_RDWR | os.O_CLOEXEC, dir_fd=folder)
    try:
        if os.pread(file, len(CALL), registers[NEXT] - len(CALL)) != CALL:
            return False
        _tell(pid, folder, file, words, variables, registers)
        return True
    finally:
        os.close(file)


def _tell(pid: int, folder: int, file: int, words: bytes, variables: bytes, registers: "Sequence[int]") -> None:
    """Words, variables and then what the kernel has to know of them, in memory of its own."""
    size = len(words) + len(variables)
    memory = _call(pid, registers, MMAP, 0, size + 16 * WORD, READ_AND_WRITE, OF_ITS_OWN, NONE, 0)
    heap = _call(pid, registers, BRK, 0)
    fields = fields_of(folder)
    *kept, stack = (int(fields[number - FIRST_FIELD]) for number in KEPT_FIELDS)
    middle, end = memory + len(words), memory + size
    numbers = (*kept, heap, stack, memory, middle, middle, end)
    layout = b"".join(number.to_bytes(WORD, sys.byteorder) for number in numbers)
    layout += bytes(WORD + WORD // 2) + b"\xff" * (WORD // 2)  # the list of the loader and the program stay
    os.pwrite(file, words + variables + layout, memory)
    _call(pid, registers, PRCTL, PR_SET_MM, PR_SET_MM_MAP, end, len(layout), 0)
    os.pwrite(file, bytes(len(layout)), end)


def _call(pid: int, registers: "Sequence[int]", number: int, *arguments: int) -> int:
    """What the kernel answers the process."""
    changed = _Registers(*registers)
    changed[RESULT], changed[BEFORE] = number, NONE
    changed[NEXT] = registers[NEXT] - len(CALL)
    for place, value in zip(ARGUMENTS, arguments, strict=False):
        changed[place] = value
    asked(SET_REGISTERS, pid, 0, changed)
    asked(STEP, pid)
    os.waitpid(pid, ALL_KINDS)
    asked(GET_REGISTERS, pid, 0, changed)
    answer: int = changed[RESULT]
    if answer > NONE - 4096:
        raise OSError(NONE + 1 - answer, "the command line cannot be changed")
    return answer


def limit(pid: int, folder: int, seconds: int) -> None:
    """Processor time counts from here on."""
    fields = fields_of(folder)
    used = sum(int(fields[number - FIRST_FIELD]) for number in TIME_FIELDS) // os.sysconf("SC_CLK_TCK")
    size = (seconds + used).to_bytes(WORD, sys.byteorder)
    mounter.checked(prlimit(pid, RLIMIT_CPU, size * 2, None), "processor time")


def fields_of(folder: int) -> "list[bytes]":
    return read(folder, "stat").rpartition(b")")[2].split()


def read(folder: int, name: str) -> bytes:
    number = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        content = b""
        while part := os.read(number, 1 << 16):
            content += part
        return content
    finally:
        os.close(number)


def asked(request: int, pid: int, address: int = 0, data: object = None) -> None:
    mounter.checked(ptrace(request, pid, _Long(address), data), "the process cannot be stopped")
