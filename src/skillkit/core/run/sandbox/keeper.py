"""The program between the runner and a script where walls have no namespaces: `INSTRUCTIONS FILTER -- PROGRAM...`.

Theory of operation. Landlock limits files but ends nobody: a script could start a daemon that outlives it. So there are
three processes, each of which only waits for the next:

    first     the one that was started; waits for the keeper and ends as it does, so that the status comes out unchanged
    keeper    in a session of its own, without the run's mark in its environment: nobody who hunts for left-overs and no
              signal to the script's group ends it. As subreaper it becomes the parent of every orphan among the
              script's descendants. When the script ends, or the first process does, however that ends (the keeper holds
              the read end of a pipe, a tie, whose write end only the first has), it kills and reaps its children until
              none are left: whose parent was killed becomes a child here in turn
    script    puts one layer after the other around itself (`layers`): session, limits, no new privileges, no
              capabilities, Landlock, closed descriptors, the system call filter; then it becomes the program

A layer that cannot be applied ends everything before the program starts, with status 125 and one line that names it.
The first two arguments are numbers of readable descriptors. Of inherited pipes numbered 200 or more the script keeps
write ends, by which a runner tells its descendants; the hang-up of a read end kills everything.

Run without skillkit (`python -I -S`), because every module that is loaded here costs each run time.
"""

from __future__ import annotations

# The public modules behind the underscores build enumerations and patterns first: 15 ms for each run.
import _signal  # type: ignore[import-not-found]  # no stubs; the same functions as in signal
import ctypes
import errno
import os
import select
import stat
import sys
import time
from _json import make_scanner

from . import layers  # relative, because this folder is loaded without the rest of skillkit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn, TypeVar

    T = TypeVar("T")

__all__ = ["launch", "main"]

FAILED_EXIT_CODE = 125
FIRST_KEPT_DESCRIPTOR = 200
ROUND_SECONDS = 0.0005  # between two looks for descendants while killing
FIELDS_OF_ENVIRONMENT = slice(47, 49)  # of /proc/self/stat after the name: where it starts and ends in memory


def main() -> NoReturn:
    """Start the command named on the command line and end as it does."""
    separator = sys.argv.index("--")
    first, second, *hook = map(int, sys.argv[1:separator])
    instructions, program = (attempt("instructions", _content, number) for number in (first, second))
    # Read where the kernel keeps it: Python may have added to its own copy.
    entries = attempt("environment", _file, "/proc/self/environ").split(b"\0")
    environment = dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)
    if hook:
        environment[b"PYTHONPATH"] = b"/proc/self/fd/%d" % hook[0]
        environment[b"WARM_DESCRIPTORS"] = b",".join(b"%d" % each for each in hook)
    parsed = attempt("instructions", _parse, instructions.decode())
    launch(parsed, program, sys.argv[separator + 1 :], environment, hook)


def launch(
    instructions: layers.Instructions,
    program: bytes,
    argv: list[str],
    environment: dict[bytes, bytes],
    hook: list[int] | None = None,
) -> NoReturn:
    """Fork the keeper, which forks the script; one with a hook waits before it, and is watched until it does."""
    attempt("supervisor", prepare_to_wait)
    lifelines, marks = attempt("supervisor", kept_descriptors)
    tie, tie_end = attempt("supervisor", os.pipe)
    keeper = attempt("supervisor", os.fork)  # noqa: TID251 - this program is the process that was started
    if keeper == 0:
        os.close(tie_end)
        attempt("supervisor", os.setsid)
        attempt("supervisor", layers.become_subreaper)
        script = attempt("supervisor", os.fork)  # noqa: TID251 - as above
        if script == 0:
            start(instructions, program, argv, environment, marks, hook or [])
        if hook:
            watch_over(script, argv, hook)
        forget_environment()
        wait_for(script, [tie, *lifelines], kept=[])
    wait_for(keeper, lifelines, kept=[tie_end])


def prepare_to_wait() -> None:
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)  # when ignored, nobody's status could be taken
    layers.become_subreaper()
    children()


def wait_for(child: int, ties: list[int], *, kept: list[int]) -> NoReturn:
    """End as `child` did; all other descriptors are closed, so that the script alone decides when its output ends."""
    null = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    close_descriptors([0, 1, 2, *ties, *kept])
    end_like(attend(child, ties))


def start(
    instructions: layers.Instructions,
    program: bytes,
    argv: list[str],
    environment: dict[bytes, bytes],
    marks: list[int],
    hook: list[int],
) -> NoReturn:
    """Become the script; every layer must hold first."""
    attempt("session", begin_session)
    if hook:
        from . import gate  # most runs have no use for it

        attempt("gate", gate.be_watched)
    for layer, apply in layers.LAYERS.items():
        attempt(layer, apply, instructions)
    attempt("descriptors", close_descriptors, [0, 1, 2, *marks, *hook, *prefaced(environment)])
    attempt("seccomp", layers.set_filter, program)
    attempt("exec", os.execve, argv[0], argv, environment)  # noqa: TID251 - as above
    raise AssertionError(argv)  # a program that was started does not return


def watch_over(script: int, argv: list[str], hook: list[int]) -> None:
    from . import gate

    attempt("gate", gate.watch, script, os.fsencode(argv[1]), hook[1])


def begin_session() -> None:
    """A session of its own, and no signal ignored: neither Python's choices nor the caller's reach the script."""
    os.setsid()
    for number in _signal.valid_signals() - {_signal.SIGKILL, _signal.SIGSTOP}:
        _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def attempt(layer: str, step: Callable[..., T], *arguments: object) -> T:
    """The step's result, or the end of this process: nothing starts outside a layer."""
    try:
        return step(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, the layer does not stand
        number = getattr(error, "errno", None)
        name = errno.errorcode.get(number, str(number)) if number else type(error).__name__
        os.write(2, f"skillkit-walls: {layer}: {name}\n".encode())
        os._exit(FAILED_EXIT_CODE)


def attend(child: int, ties: list[int]) -> int:
    """The status of `child` when it has ended, or had to because of a signal or a hang-up, and all else is dead."""
    wake, wake_end = os.pipe()
    os.set_blocking(wake_end, False)
    _signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
    for number in (_signal.SIGCHLD, _signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP):
        _signal.signal(number, lambda *_: None)
    poller = select.poll()
    poller.register(wake, select.POLLIN)
    for tie in ties:
        poller.register(tie, 0)
    taken: dict[int, int] = {}
    while reap(taken) and child not in taken:
        events = dict(poller.poll())
        if events.keys() - {wake} or os.read(wake, 512).strip(bytes([_signal.SIGCHLD])):
            break
    end_children(taken)
    return taken[child]


def end_children(taken: dict[int, int]) -> None:
    """Kill and reap; whose parent was killed becomes a child here, so that in the end nobody is left."""
    while reap(taken):
        for pid in children():
            os.kill(pid, _signal.SIGKILL)
        time.sleep(ROUND_SECONDS)


def reap(taken: dict[int, int]) -> bool:
    """Whether children are left; `taken` gets the status of those that ended."""
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return True
            taken.setdefault(pid, status)  # a number may come back once the first of that number is reaped
    except ChildProcessError:
        return False


def children() -> list[int]:
    """Unreaped, so that each number means nobody else; one may be missing until the next call."""
    me = os.getpid()
    try:
        return [int(pid) for pid in _file(f"/proc/self/task/{me}/children").split()]
    except FileNotFoundError:  # a kernel without that list
        return [int(name) for name in os.listdir("/proc") if name.isdecimal() and _parent_of(name) == me]


def _parent_of(pid: str) -> int:
    try:
        return int(_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1])
    except OSError:
        return 0


def end_like(status: int) -> NoReturn:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        layers.refuse_dumps()  # the script's memory is worth a dump, this one is not
        if number != _signal.SIGKILL:
            _signal.signal(number, _signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))


def forget_environment() -> None:
    """Without the run's mark nobody who hunts for left-overs ends this process before its work is done."""
    fields = _file("/proc/self/stat").rpartition(b")")[2].split()
    first, last = (int(field) for field in fields[FIELDS_OF_ENVIRONMENT])
    ctypes.memset(first, 0, last - first)


def kept_descriptors() -> tuple[list[int], list[int]]:
    """Pipes numbered 200 or more: the read ends, whose hang-up kills, and the write ends, which the script keeps."""
    ends: tuple[list[int], list[int]] = ([], [])
    for name in os.listdir("/proc/self/fd"):
        link = f"/proc/self/fd/{name}"
        if int(name) >= FIRST_KEPT_DESCRIPTOR and stat.S_ISFIFO(os.stat(link).st_mode):
            mode = os.lstat(link).st_mode
            is_written = bool(mode & stat.S_IWUSR)
            if is_written != bool(mode & stat.S_IRUSR):
                ends[is_written].append(int(name))
    return ends


def prefaced(environment: dict[bytes, bytes]) -> list[int]:
    """What a Python takes modules from; nobody but the runner sets that variable."""
    folder, _, number = environment.get(b"PYTHONPATH", b"").rpartition(b"/")
    return [int(number)] if folder == b"/proc/self/fd" else []


def close_descriptors(kept: list[int]) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # the one that listed them
                continue


def _content(number: int) -> bytes:
    """All of it from the start, wherever the one who wrote it left the offset."""
    content = b""
    while part := os.pread(number, 65_536, len(content)):
        content += part
    return content


def _file(path: str) -> bytes:
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _content(number)
    finally:
        os.close(number)


class _Scanning:
    """What the decoder of JSON asks its owner for."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def _parse(text: str) -> layers.Instructions:
    instructions: layers.Instructions = make_scanner(_Scanning())(text, 0)[0]  # type: ignore[arg-type]  # any owner does
    return instructions
