"""One sandbox that waits for one run: put up, told what to import, handed over or ended."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

from skillkit.core.run.hosts.way_out import told_of_inside
from skillkit.core.run.process import Ahead, start_ahead
from skillkit.core.run.sandbox.base import Confined
from skillkit.core.run.sandbox.waiting import Waiting
from skillkit.core.run.warm.attaching import enter, sender_of
from skillkit.core.values.runs import ProcessExit, ScriptCommand

__all__ = ["Ordering", "Request", "Spare", "Told", "Unready"]

START_SECONDS = 10.0
TAKE_SECONDS = 10.0
DEATH_SECONDS = 2.0
LOOK_SECONDS = 0.02
LENGTH_BYTES = 8
ANSWER_BYTES = 65_536
REPORT_BYTES = 4_000_000
STOP, ATTACH, BECOME = b"s", b"a", b"b"  # for the attacher
STANDS, DONE, READY, REFUSED, TAKEN = b"w", b".", b"r", b"x", b"k"
Stamp = tuple[int, int, int]


class Told(NamedTuple):
    """What differs from run to run."""

    words: tuple[str, ...]
    """All of the command line, in which the script's own are the last."""
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: str
    cpu_seconds: int
    has_mounts: bool = True
    compiled: tuple[bytes, ...] = ()
    """Of the skill's modules, for Python."""

    @property
    def names(self) -> bytes:
        """As the kernel shows them, for the attacher."""
        words = b"".join(os.fsencode(each) + b"\0" for each in self.words)
        variables = [*(f"{name}={value}" for name, value in self.environment.items()), f"PWD={self.folder}"]
        shown = b"".join(os.fsencode(each) + b"\0" for each in variables)
        return b"%d %d %s%s" % (self.cpu_seconds, len(words), words, shown)


Ordering = Callable[[Told, Mapping[str, str]], bytes | None]
"""What one run brings along, and the environment that the interpreter was started with."""


class Unready(Exception):  # noqa: N818 - no failure of a run: it starts without a spare
    """A spare that cannot be had; nothing of the skill was in it."""


class Request(NamedTuple):
    """What one run brings along."""

    attached: bytes
    """For the attacher: what goes where."""
    names: bytes
    """For the attacher: words and variables that the kernel shows, where they are set from outside."""
    order: bytes
    """For who waits inside, in its own language; nothing comes after it."""


class Spare:
    """Used by one thread at a time: who makes it, and then who took it."""

    def __init__(
        self,
        command: ScriptCommand,
        waiting: Waiting,
        request: Ordering,
        work: Path,
        made: ExitStack,
        counted: Confined,
        tidy: Callable[[], None],
    ) -> None:
        """`tidy` is called only where nobody takes it: the work folder is the run's then."""
        self.command = command
        """For which it was made, without what differs from call to call."""
        self.waiting = waiting
        self.order = request
        """What a run brings along -> how the interpreter is told; None where it cannot be."""
        self.work = work
        self.made_at = time.monotonic()
        self.done = 0
        """So many modules are imported."""
        self.is_ready = self.is_spoiled = self.is_taken = self.has_printed = self.has_ended = False
        self._wall_time = time.time_ns()
        self._is_attached = self._is_named = False
        self._made = made
        self._counted = counted
        self._tidy = tidy
        self._answers = b""
        self._stamps: dict[str, Stamp] = {}
        self._process: Ahead | None = None
        self._attacher = 0
        self._inside: dict[str, int] = {}

    def start(self, order: bytes, *, has_input: bool) -> None:
        """Walls up, nothing of the user's in them, the interpreter on its way."""
        with ExitStack() as given:
            told, info = _pipe(self._made, given)
            may_go, go = _pipe(given, self._made)
            self.answers, answer = _pipe(self._made, given)
            orders, writer = os.pipe()
            given.callback(os.close, orders)
            self._orders = self._made.enter_context(os.fdopen(writer, "wb", buffering=0))
            handed = (info, may_go, answer, orders) if self.waiting.is_put_together else (answer, orders)
            self._process = start_ahead(self._counted._replace(handed=handed), has_input=has_input)
            self._made.callback(self._process.end)
        if self.waiting.is_put_together:
            self._enter(told)
            os.write(go, b"go\n")
        _send(self._orders.fileno(), order)

    def _enter(self, told: int) -> None:
        """Have somebody inside who takes off what is staged."""
        inside = told_of_inside(told)
        _expect(self.answers, STANDS)
        mounts = os.open(f"/proc/{inside['child-pid']}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if os.fstat(mounts).st_ino != inside.get("mnt-namespace"):
                raise Unready("the process is not inside the walls")
            self._inside = self._held(inside)
            renamed = int(inside["child-pid"]) if self.waiting.hook.is_renamed else 0
            self._talk = enter(mounts, self.waiting, renamed)
        finally:
            os.close(mounts)
        self._made.callback(self._talk.close)
        self._attacher = sender_of(self._talk)
        _expect(self._talk.fileno(), DONE)

    def _held(self, inside: dict[str, int]) -> dict[str, int]:
        """The same, while its network is kept open, so that the number of that stands for no other."""
        network = os.open(f"/proc/{inside['child-pid']}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self._made.callback(os.close, network)
        if os.fstat(network).st_ino != inside.get("net-namespace"):
            raise Unready("the process has no network of its own")
        return inside

    # While it waits.

    def look(self, seconds: float = 0) -> None:
        """Take in what it said; it is spoiled where it ended, wrote something, or imported what it must not."""
        if _is_readable(self.answers, seconds):
            said = os.read(self.answers, ANSWER_BYTES)
            self._answers += said
            self.has_ended = self.has_ended or not said
            self.is_spoiled = self.is_spoiled or not said or len(self._answers) > REPORT_BYTES
        before = self.done
        while self._answers and self._take_word():
            pass
        if self._has_written() and not self.has_printed:
            self.has_printed, self.done = True, before  # which of the last ones it was, nobody knows

    def _take_word(self) -> bool:
        """Whether one more was whole. What is inside may say anything: only the paths are used, to look at times."""
        word, rest = self._answers[:1], self._answers[1:]
        if word == READY:
            size = int.from_bytes(rest[:LENGTH_BYTES], "big")
            if len(rest) < LENGTH_BYTES + size:
                return False
            self._note(rest[LENGTH_BYTES:][:size].split(b"\0")[:-1])
            self.is_ready = True
            if self.waiting.hook.is_renamed:
                self._tell_attacher(STOP)
            rest = rest[LENGTH_BYTES + size :]
        self._answers = rest
        self.done += word == DONE
        self.is_taken = self.is_taken or word == TAKEN
        self.is_spoiled = self.is_spoiled or word == REFUSED
        return True

    def _tell_attacher(self, order: bytes) -> None:
        with suppress(OSError):  # it is gone; that is seen when it is asked for its answer
            self._talk.sendall(len(order).to_bytes(LENGTH_BYTES, "big") + order)

    def _has_written(self) -> bool:
        """A library that prints: where a run needs it, it prints there, and the next spare leaves it out."""
        return self._process is not None and any(_is_readable(each, 0) for each in self._process.streams)

    def _note(self, paths: list[bytes]) -> None:
        """What it imported, as it is now; what changed since it began, it may have imported before."""
        stamps = {path: stamp for path in map(os.fsdecode, paths) if (stamp := _stamp(path)) is not None}
        self.is_spoiled = self.is_spoiled or any(stamp[0] > self._wall_time for stamp in stamps.values())
        self._stamps = stamps

    @property
    def megabytes(self) -> float:
        """What its processes have of memory, what they share with others by its part."""
        own = _tree(self._process.pid if self._process else 0)
        return sum(_proportional(pid) for pid in (*own, self._attacher)) / 1024

    @property
    def helper_megabytes(self) -> float:
        """Of the one from whom its attacher comes, and all others."""
        return _proportional(_parent(self._attacher)) / 1024

    # A run is handed over.

    def fits(self, waiting: Waiting | None) -> bool:
        """Whether it is what would be started now, and what it has imported is still what would be imported."""
        return self.waiting == waiting and all(_stamp(path) == stamp for path, stamp in self._stamps.items())

    def attach(self, request: Request) -> None:
        """Begin to, without waiting: nothing runs by it. Who still imports libraries goes on without, until it must."""
        if self.is_ready and self.waiting.is_put_together:
            self._attach(request)

    def rename(self, names: bytes) -> None:
        """Likewise, as soon as the names are known."""
        if self.is_ready and self.waiting.hook.is_renamed:
            self._is_named = True
            self._tell_attacher(BECOME + names)

    def _attach(self, request: Request) -> None:
        if self.waiting.hook.is_renamed and not self._is_named:
            self._tell_attacher(BECOME + request.names)
        self._is_attached = True
        self._tell_attacher(ATTACH + request.attached)

    def hand_over(
        self,
        request: Request,
        is_stopped: Callable[[], bool],
        on_stop: Callable[[ProcessExit], None],
        open_way_out: Callable[[Mapping[str, int]], None] | None = None,
    ) -> Ahead | None:
        """The process that from now on is this run; None, and nothing of the skill has run, where that fails."""
        until = time.monotonic() + TAKE_SECONDS
        try:
            if self.waiting.hook.is_renamed:
                self._become_ready(until, is_stopped)
            if self.waiting.is_put_together:
                if not self._is_attached:
                    self._attach(request)
                _expect(self._talk.fileno(), DONE)
            if open_way_out is not None:
                open_way_out(self._inside)
            _send(self._orders.fileno(), request.order)
            self._orders.close()
            self._wait_for_begin(is_stopped)
        except (OSError, Unready):
            self.is_spoiled = True
        except BaseException:
            if self._began_at_last() and self._process is not None:
                self._process.stop(on_stop)
            raise
        if not self.is_taken and not self._began_at_last():
            self.end()
            return None
        return self._process

    def _become_ready(self, until: float, is_stopped: Callable[[], bool]) -> None:
        """Before, the process is another one: its names would go when the interpreter starts."""
        while not self.is_ready:
            self.look(LOOK_SECONDS)
            if self.is_spoiled or time.monotonic() > until or is_stopped():
                raise Unready("it was not ready in time")

    def _wait_for_begin(self, is_stopped: Callable[[], bool]) -> None:
        """Looks once more when time is over: a machine that let us wait is no reason to kill what has begun."""
        until, is_late = time.monotonic() + TAKE_SECONDS, False
        while not (self.is_taken or self.is_spoiled or is_late or is_stopped()):
            is_late = time.monotonic() > until
            self.look(LOOK_SECONDS)

    def _began_at_last(self) -> bool:
        """Whether the script began after nobody waited for it any more: then this was its run, and it is killed."""
        if self._process is not None:
            self._process.kill()
        until = time.monotonic() + DEATH_SECONDS
        while not self.has_ended and time.monotonic() < until:
            self.look(LOOK_SECONDS)
        return self.is_taken

    def end(self) -> None:
        """However far it came; once is enough."""
        self._made.close()

    def discard(self) -> None:
        """Nobody took it."""
        self.end()
        self._tidy()


def _pipe(reading: ExitStack, writing: ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe()
    reading.callback(os.close, reader)
    writing.callback(os.close, writer)
    return reader, writer


def _expect(number: int, word: bytes) -> None:
    said = os.read(number, ANSWER_BYTES) if _is_readable(number, START_SECONDS) else b"no answer"
    if said[:1] != word:
        raise Unready(said.decode("utf-8", "replace"))


def _send(number: int, order: bytes) -> None:
    rest = memoryview(order)
    while rest:
        rest = rest[os.write(number, rest) :]


def _is_readable(number: int, seconds: float) -> bool:
    poller = select.poll()
    poller.register(number, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


def _stamp(path: str) -> Stamp | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _tree(pid: int) -> Iterator[int]:
    if pid:
        yield pid
        with suppress(OSError):
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split():
                yield from _tree(int(child))


def _parent(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[1])
    return 0


def _proportional(pid: int) -> int:
    """In kB."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    return 0
