"""A process that waits -> the same process with the command line, environment and processor time of its run.

Theory of operation. Only a process itself may tell the kernel where its command line and environment are, and most
interpreters have no way to. So it is stopped while it waits in a system call, as a debugger would, makes three others
with our arguments (memory, the end of its heap, the new places), and is put back: it goes on to wait and cannot know.
It stays stopped until its run comes, which is when the last of them is made.
Loaded by the attacher, which has the rights; for processors whose registers are known here.
"""

import os
import sys
from _ctypes import Array, _SimpleCData

TYPE_CHECKING = False
if TYPE_CHECKING:
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
LARGEST_ERROR = 4096
ROOM, LAYOUT_BYTES = 1 << 16, 128
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


class Stopped:
    """A process in the middle of a system call; it goes on when it is let go, or with the end of this one."""

    def __init__(self, pid: int, folder: int) -> None:
        """`folder` is what /proc has about it; BlockingIOError where it does not wait just now."""
        self._pid, self._folder = pid, folder
        asked(SEIZE, pid)
        try:
            asked(INTERRUPT, pid)
            os.waitpid(pid, ALL_KINDS)
            self._before = _Registers()
            asked(GET_REGISTERS, pid, 0, self._before)
            self._registers = [*self._before]
            self._memory = os.open("mem", os.O_RDWR | os.O_CLOEXEC, dir_fd=folder)
            self._require_call()
            self._make_room()
        except BaseException:
            asked(DETACH, pid)
            raise

    def _require_call(self) -> None:
        if os.pread(self._memory, len(CALL), self._registers[NEXT] - len(CALL)) != CALL:
            os.close(self._memory)
            raise BlockingIOError(0, "the process does not wait")

    def _make_room(self) -> None:
        """What takes time and is the same whatever its names will be."""
        try:
            self._place = self._call(MMAP, 0, ROOM, READ_AND_WRITE, OF_ITS_OWN, NONE, 0)
            heap = self._call(BRK, 0)
        finally:
            asked(SET_REGISTERS, self._pid, 0, self._before)
        fields = fields_of(self._folder)
        *kept, stack = (int(fields[number - FIRST_FIELD]) for number in KEPT_FIELDS)
        self._layout = (*kept, heap, stack)
        ticks = sum(int(fields[number - FIRST_FIELD]) for number in TIME_FIELDS)
        self._used = ticks // os.sysconf("SC_CLK_TCK")

    def rename(self, words: bytes, variables: bytes) -> None:
        """Words and variables end with NUL each."""
        size = len(words) + len(variables)
        if size + LAYOUT_BYTES > ROOM:
            self._place = self._call(MMAP, 0, size + LAYOUT_BYTES, READ_AND_WRITE, OF_ITS_OWN, NONE, 0)
        middle, end = self._place + len(words), self._place + size
        numbers = (*self._layout, self._place, middle, middle, end)
        layout = b"".join(number.to_bytes(WORD, sys.byteorder) for number in numbers)
        layout += bytes(WORD + WORD // 2) + b"\xff" * (WORD // 2)  # the list of the loader and the program stay
        os.pwrite(self._memory, words + variables + layout, self._place)
        self._call(PRCTL, PR_SET_MM, PR_SET_MM_MAP, end, len(layout), 0)
        os.pwrite(self._memory, bytes(len(layout)), end)

    def limit(self, seconds: int) -> None:
        """Processor time counts from here on."""
        size = (seconds + self._used).to_bytes(WORD, sys.byteorder)
        mounter.checked(prlimit(self._pid, RLIMIT_CPU, size * 2, None), "processor time")

    def let_go(self) -> None:
        asked(SET_REGISTERS, self._pid, 0, self._before)
        asked(DETACH, self._pid)
        os.close(self._memory)

    def _call(self, number: int, *arguments: int) -> int:
        """What the kernel answers the process."""
        changed = _Registers(*self._registers)
        changed[RESULT], changed[BEFORE] = number, NONE
        changed[NEXT] = self._registers[NEXT] - len(CALL)
        for place, value in zip(ARGUMENTS, arguments, strict=False):
            changed[place] = value
        asked(SET_REGISTERS, self._pid, 0, changed)
        asked(STEP, self._pid)
        os.waitpid(self._pid, ALL_KINDS)
        asked(GET_REGISTERS, self._pid, 0, changed)
        answer: int = changed[RESULT]
        if answer > NONE - LARGEST_ERROR:
            raise OSError(NONE + 1 - answer, "the command line cannot be changed")
        return answer


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
