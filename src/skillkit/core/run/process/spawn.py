"""Words, a folder, an environment and descriptors -> a started process. This is the one file that starts processes.

Each start keeps vfork, so that it costs nothing by the size of the caller: no `preexec_fn`, `user` or `group`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from skillkit.core.run.sandbox.base import DescriptorPlace, descriptor

if sys.platform == "linux":
    import resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ctypes

__all__ = [
    "DEVNULL",
    "FIRST_FREE_FD",
    "PIPE",
    "PREFACE_FD",
    "Start",
    "can_preface",
    "move",
    "popen",
    "spawn",
    "start_beside",
]

DEVNULL, PIPE = subprocess.DEVNULL, subprocess.PIPE
FIRST_FREE_FD = 64  # sources at or above it are clear of the numbers that a start hands out one after the other
FIRST_FD = 3
PREFACE_FD = 199
# In the background of a shell that ends at once.
BESIDE = 'exec 3<&0; "$@" <&3 & '
CREATION_FLAGS = 0x4 if os.name == "nt" else 0  # CREATE_SUSPENDED: it begins once it is in its job
FILE_NAMES = sys.getfilesystemencoding()
# From spawn.h.
SETSIGDEF = 0x04
SETSID = 0x80
STRUCT_BYTES = 512  # more than any libc needs for its attributes, file actions or signal sets
RESTORED_SIGNALS = ("SIGPIPE", "SIGXFSZ")  # Python ignores them, and an ignored signal stays so in a child


class Start(NamedTuple):
    """What a process is started with; it gets these descriptors and no others."""

    argv: Sequence[str]
    cwd: str
    environment: Mapping[str, str]
    streams: tuple[int, int, int]
    kept: int
    kept_number: int
    """What `kept` is called in the process, if so many descriptors are allowed."""
    others: Sequence[int] = ()
    """Each `FIRST_FREE_FD` or above; its number replaces `descriptor(n)` in argv."""
    preface: int = -1
    """Likewise; it is called `PREFACE_FD` in the process, clear of the numbers of the others. Only if `can_preface`."""


def can_preface() -> bool:
    """Whether a descriptor can have its number whatever this program has open."""
    return _LIBRARY is not None and resource.getrlimit(resource.RLIMIT_NOFILE)[0] > PREFACE_FD


def spawn(start: Start, born: array[int]) -> int:
    """The pid of a process in a session of its own.

    The kernel's answer goes straight to `born`, one number that is 0 before: an interrupt cannot come between.
    """
    return _popen_pid(start, born) if _LIBRARY is None else _LIBRARY.spawn(start, born)


def popen(
    argv: Sequence[str],
    cwd: str,
    environment: Mapping[str, str],
    streams: tuple[int, int, int],
    others: Sequence[int] = (),
    *kept: int,
) -> subprocess.Popen[bytes]:
    """The same as a Popen, for systems without pidfds and C libraries without the calls."""
    return subprocess.Popen(  # noqa: S603 - no shell, and every part was decided before
        _fill_in(argv, others),
        bufsize=0,
        stdin=streams[0],
        stdout=streams[1],
        stderr=streams[2],
        cwd=cwd,
        env=environment,
        start_new_session=True,
        pass_fds=(*others, *kept),
        creationflags=CREATION_FLAGS,
    )


def start_beside(program: Sequence[str], talk: int, way: str = BESIDE) -> None:
    """A helper of ours that has `talk` as its input and ends with it; it is nobody's child who waits for any."""
    words = ("/bin/sh", "-c", way, "skillkit-helper", *program)
    born = array("i", (0,))
    try:
        spawn(Start(words, "/", {}, (talk, DEVNULL, DEVNULL), talk, FIRST_FD), born)
        _wait_for(born[0])
    except BaseException:
        _wait_for(born[0])  # the shell ends at once, whatever interrupted us
        raise


def _wait_for(pid: int) -> None:
    with suppress(ChildProcessError):  # one that somebody else waited for
        if pid:
            os.waitpid(pid, 0)


class _Library:
    """posix_spawn of the C library. Unlike Popen it lets other threads run while the child comes to its exec."""

    def __init__(self) -> None:
        import ctypes

        self._ctypes = ctypes
        # Those that only note something down keep the interpreter's lock: letting go of it costs more.
        quick, slow = ctypes.PyDLL(None), ctypes.CDLL(None)
        self._spawn = slow.posix_spawn
        self._begin = quick.posix_spawn_file_actions_init
        self._end = quick.posix_spawn_file_actions_destroy
        self._dup = quick.posix_spawn_file_actions_adddup2
        self._close = quick.posix_spawn_file_actions_addclose
        self._close_from = quick.posix_spawn_file_actions_addclosefrom_np
        self._open = quick.posix_spawn_file_actions_addopen
        self._chdir = quick.posix_spawn_file_actions_addchdir_np
        self._attributes = self._own_session(quick)

    def _own_session(self, quick: ctypes.PyDLL) -> ctypes.Array[ctypes.c_char]:
        attributes = self._ctypes.create_string_buffer(STRUCT_BYTES)
        signals = self._ctypes.create_string_buffer(STRUCT_BYTES)
        quick.sigemptyset(signals)
        for name in RESTORED_SIGNALS:
            quick.sigaddset(signals, int(getattr(signal, name)))
        quick.posix_spawnattr_init(attributes)
        quick.posix_spawnattr_setsigdefault(attributes, signals)
        quick.posix_spawnattr_setflags(attributes, self._ctypes.c_short(SETSIGDEF | SETSID))
        return attributes

    def spawn(self, start: Start, born: array[int]) -> int:
        if "\0" in start.cwd or "=" in "".join(start.environment):
            raise ValueError("a name in the environment holds '=', or the working directory a NUL")
        words = self._texts(_fill_in(start.argv, range(FIRST_FD, FIRST_FD + len(start.others))))
        variables = self._texts(list(map("=".join, start.environment.items())))
        actions = self._ctypes.create_string_buffer(STRUCT_BYTES)
        pid = self._ctypes.c_int.from_buffer(born)
        self._begin(actions)
        try:
            self._arrange(actions, start)
            self._chdir(actions, os.fsencode(start.cwd))
            failure = self._spawn(self._ctypes.byref(pid), words[0], actions, self._attributes, words, variables)
        finally:
            self._end(actions)
        if failure:
            raise OSError(failure, os.strerror(failure), start.argv[0])
        return born[0]

    def _texts(self, texts: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
        # As one text, which costs less than one by one; where it falls into more pieces, a text held a NUL.
        encoded = "\0".join(texts).encode(FILE_NAMES, "surrogateescape").split(b"\0") if texts else []
        if len(encoded) != len(texts):
            raise ValueError("embedded null byte")
        return (self._ctypes.c_char_p * (len(texts) + 1))(*encoded, None)

    def _arrange(self, actions: ctypes.Array[ctypes.c_char], start: Start) -> None:
        """In this order no descriptor is overwritten before it was copied; the kept one goes to its place last."""
        for number, fd in enumerate(start.streams):
            if fd == DEVNULL:
                self._open(actions, number, b"/dev/null", os.O_RDONLY, 0)
            else:
                self._dup(actions, fd, number)
        last = FIRST_FD + len(start.others)
        if start.preface >= 0:
            self._dup(actions, start.preface, last)
            last += 1
        self._dup(actions, start.kept, last)
        for number, fd in enumerate(start.others, FIRST_FD):
            self._dup(actions, fd, number)
        self._close_from(actions, last + 1)
        if start.preface >= 0:
            self._dup(actions, last - 1, PREFACE_FD)
            self._close(actions, last - 1)
        if start.kept_number != last and start.kept_number < resource.getrlimit(resource.RLIMIT_NOFILE)[0]:
            self._dup(actions, last, start.kept_number)
            self._close(actions, last)


def _library() -> _Library | None:
    """None where the C library cannot close what is not named: musl, and glibc before 2.34."""
    if sys.platform != "linux":
        return None
    try:
        return _Library()
    except (AttributeError, ImportError, OSError):
        return None


# Not at first use: a program that forks while a thread imports ctypes could not import it in the copy.
_LIBRARY = _library()


def _popen_pid(start: Start, born: array[int]) -> int:
    """Popen leaves descriptors their numbers, so the kept one is moved to its place first."""
    place = move(start.kept, start.kept_number)
    try:
        process = popen(start.argv, start.cwd, start.environment, start.streams, start.others, place)
        born[0] = process.pid
    finally:
        if place != start.kept:
            os.close(place)
    # The pid is the caller's to wait for; Popen would do it too when it is collected.
    process.returncode = 0
    return process.pid


def move(fd: int, least: int) -> int:
    """A copy with that number or above, which is not inherited."""
    import fcntl

    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, least)
    except OSError:  # where so many descriptors are not allowed, the number it has does
        return fd


def _fill_in(argv: Sequence[str], numbers: Sequence[int]) -> list[str]:
    """The places in `argv` that stand for a descriptor, filled in."""
    if not numbers:
        return list(argv)
    names = {descriptor(place): str(number) for place, number in enumerate(numbers)}
    return [names.get(word, word) if type(word) is DescriptorPlace else word for word in argv]
