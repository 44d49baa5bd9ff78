"""What marks a run's processes -> those of them that are still alive, killed and counted (Linux).

Theory of operation. A script may leave processes behind, and a process may leave its group and session (`setsid`, a
double fork) so that killing the group misses it. Walls end them all with their PID namespace; without walls, and as a
second net, they are hunted here. Three marks tell a descendant of a run from everybody else's process:

- the session of the main process, which is not reaped until the hunt is over, so that its number means nobody else;
- a random marker in the environment, which every descendant inherits that does not clear it;
- the write ends of our pipes: when all have hung up, no descendant holds one.

To look at every process of the machine would cost milliseconds a run, so the hunt looks only at pids that were given
out since the main process was made: the kernel gives them out upwards (`kernel.PidOrder` notices when it starts over),
and the newest pid is one read away. Mostly there is none, and the hunt is over before it began. Hundreds of runs at
once would still look at each other's processes again and again, so a census remembers for all of them whose each is.

A pid says little: a process may be between fork and exec, when it shows its parent's environment or none; it may be
gone with a successor that nobody has seen. So a suspect is held by a pidfd before it is looked at, who cannot be told
yet is looked at again, and the hunt ends only after several looks in a row have found nobody. Who is struck is killed
by the pidfd, so that a number that changed hands hits nobody else. Time is bounded; what could not be finished is said
(`complete` is False, and the result's isolation says "incomplete").
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import NamedTuple

from skillkit.core.run.process.kernel import (
    SHORTAGES,
    PidOrder,
    all_pids,
    environment_of,
    has_hung_up,
    holds_inherited_end,
    is_over,
    is_unreaped,
    last_pid,
    parent_of,
    proc_shows_our_pids,
)
from skillkit.core.run.process.quiet import Quiet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "MARKER_NAME",
    "NOBODY",
    "Survivors",
    "Tree",
    "end_survivors",
    "has_other_runs",
    "has_processes",
    "idle",
    "kill_group",
    "new_marker",
    "own_mark",
    "pid_order",
    "release",
    "start_counted",
]

MARKER_NAME = "SKILLKIT_RUN"
MARK_BYTES = 8
GIVE_UP_SECONDS = 2.0  # without finding one more
HARD_LIMIT_SECONDS = 6.0
SHORT_SECONDS = 30.0  # while other runs have all descriptors: they end, and then it can be looked again
NEWEST = 4  # pids looked at first: in a storm, the others are mostly gone
EXEC_GLIMPSE_SECONDS = 0.0003  # how long to look away from a process that is in the middle of exec
EXEC_SECONDS = 0.25  # what takes longer is not an exec, but a process that will not be seen through
HELD_SECONDS = 0.1  # how long a pipe may stay open, at least, with nobody found who holds it
HELD_LOOKS = 5  # and how many looks there must have been
PROBE_LIMIT = 1_024  # pids; asking for more one by one costs more than listing /proc
PIDFD_LIMIT = 16  # descriptors held at a time to see the killed die
STARTS_AT_A_TIME = 8  # measured: fewer cost throughput, more cost every hunt
CENSUS_LIMIT = 4_096  # pids


class Tree(NamedTuple):
    """How the descendants of one main process are told from everybody else's."""

    pid: int  # of the main process: leader of its session and, until the hunt is over, not reaped
    marker: bytes  # stands in the environment of every descendant that did not clear it
    pipes: tuple[int, ...]  # our read ends; when all have hung up, no descendant holds a write end
    started: float  # time.monotonic() before the main process was made
    order: int  # of pids, as it was then
    since: int = 0  # the newest pid when a run began in a process made before it


class Survivors(NamedTuple):
    """What a hunt came to; incomplete when somebody out of reach still holds a pipe, or time ran out."""

    killed: int
    complete: bool


NOBODY = Survivors(killed=0, complete=True)
idle = set[int]()  # main processes that were started ahead, and in which nothing runs yet


class _Census:
    """What the runs of this program found out about pids, so that hundreds at a time look at each once."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.mark = os.urandom(MARK_BYTES).hex()
        self._lock = threading.Lock()
        self._turns: SimpleQueue[None] = SimpleQueue()  # a semaphore that costs next to nothing
        for _ in range(STARTS_AT_A_TIME):
            self._turns.put(None)
        self._mains: set[int] = set()
        idle.clear()
        self._seen: dict[int, tuple[float, bytes]] = {}

    def has_other_runs(self) -> bool:
        return len(self._mains) > len(idle)

    def has_processes(self) -> bool:
        """Of runs, or started ahead of any."""
        return bool(self._mains)

    def start(self, start: Callable[[], int]) -> tuple[int, float, int]:
        """A new main process, a stranger to every other run, and the time and the order of pids before it was made.

        A few are made at a time: otherwise, of hundreds of threads, most wait for their turn to enlist while the
        others wonder whose their processes are.
        """
        turns = self._turns
        try:
            turns.get()  # an interrupt while it waits gives back one too many, but none is ever lost
            began, order = time.monotonic(), pid_order.losses()
            pid = start()
            with self._lock:
                self._mains.add(pid)
            return pid, began, order
        finally:
            turns.put(None)

    def release(self, pid: int) -> None:
        with self._lock:
            self._mains.discard(pid)
            self._seen[pid] = (time.monotonic(), b"")
            # Who starts later believes only what is seen later: when the last run ends, nothing here is worth its room.
            if len(self._seen) > CENSUS_LIMIT or not self.has_other_runs():
                self._seen.clear()

    def note(self, pid: int, session: int, environment: bytes) -> None:
        """`pid` lives and has this environment; in a main's session it stays of interest without any."""
        mark = environment.partition(MARKER_NAME.encode())[2].partition(b"\0")[0]
        with self._lock:
            if session not in self._mains:
                self._seen[pid] = (time.monotonic(), mark)

    def suspects(self, tree: Tree, pids: Iterable[int]) -> list[int]:
        """Oldest first. What was seen before it started does not count: the number may have changed hands."""
        seen, unseen = self._seen, (0.0, b"")
        with self._lock:
            candidates = set(pids) - self._mains
            return sorted(
                pid
                for pid in candidates
                if (entry := seen.get(pid, unseen))[0] < tree.started or tree.marker in entry[1]
            )


pid_order = PidOrder()
_census = _Census()
start_counted = _census.start
release = _census.release
has_other_runs = _census.has_other_runs
has_processes = _census.has_processes
if hasattr(os, "register_at_fork"):
    # A fork copies the lock in whatever state it is, and children that are not the copy's own.
    os.register_at_fork(after_in_child=_census.forget)
    os.register_at_fork(after_in_child=pid_order.forget)


def own_mark() -> str:
    """With which the markers of all runs of this process begin."""
    return _census.mark


def new_marker() -> str:
    """For one run."""
    return _census.mark + os.urandom(MARK_BYTES).hex()


def end_survivors(tree: Tree, *, group_was_killed: bool) -> Survivors:
    """Kill every descendant that the marks of `tree` reach, and see it die; a killed group is not counted."""
    newest, order = pid_order.newest()
    # Who was killed is struck from its oldest process on: one whose child dies first would go on with its next line.
    begin = tree.pid if group_was_killed else tree.since or tree.pid
    since = begin if order == tree.order else 0
    if 0 < newest == since and has_hung_up(*tree.pipes):
        return NOBODY
    hunt = _Hunt(tree, since, newest, uncounted_group=tree.pid if group_was_killed else -1)
    if not (hunt.suspects or hunt.is_late) and has_hung_up(*tree.pipes):
        return NOBODY
    if not proc_shows_our_pids():
        kill_group(tree)
        return Survivors(killed=0, complete=False)
    try:
        complete = hunt.finish()
        return Survivors(killed=hunt.killed, complete=complete)
    finally:
        hunt.close()


def kill_group(tree: Tree) -> None:
    """Kill the main process and all that stayed in its group, in one step that no fork slips through."""
    with suppress(ProcessLookupError, PermissionError):
        if is_unreaped(tree.pid):
            os.killpg(tree.pid, signal.SIGKILL)


class _Hunt:
    """One pursuit: every suspect once, then the tip of the pids for as long as it brings up ours.

    The order is oldest first. A pid is given out before its process can be seen; but once its parent was
    killed, or found gone, the process is visible or will never be.
    """

    def __init__(self, tree: Tree, since: int, newest: int, *, uncounted_group: int) -> None:
        self.killed = 0
        self._struck: set[int] = set()
        self._tree = tree
        self._uncounted_group = uncounted_group
        self.is_late = self._is_short = False
        self._hard_limit = time.monotonic() + HARD_LIMIT_SECONDS
        self._give_up = time.monotonic() + GIVE_UP_SECONDS
        self._short_limit = time.monotonic() + SHORT_SECONDS
        self._dying: list[int] = []
        self._tip = since
        self.suspects = self._newcomers(newest)

    def finish(self) -> bool:
        """Whether nobody is left, as far as pids, marker and pipes can tell."""
        self._session = self._tree.pid if is_unreaped(self._tree.pid) else -1
        self._follow()
        looks, held_until = 0, time.monotonic() + HELD_SECONDS
        while not has_hung_up(*self._tree.pipes):
            struck, self._is_short = len(self._struck), False
            if looks > 0:  # first give way to children of other runs: until they exec, they hold copies
                self._strike_holders()
            self.suspects = self._newcomers(last_pid())
            self._follow()
            looks, now = looks + 1, time.monotonic()
            if len(self._struck) > struck:
                looks, held_until = 0, now + HELD_SECONDS
            elif self.is_late or (now > held_until and looks > HELD_LOOKS and not self._is_waiting(now)):
                return False
            time.sleep(0.001)
        return not self.is_late

    def _is_waiting(self, now: float) -> bool:
        """While other runs have all descriptors nobody can be looked at: who holds a pipe may be there all the same."""
        return self._is_short and now < self._short_limit

    def close(self) -> None:
        for pidfd in self._dying:
            os.close(pidfd)

    def _newcomers(self, newest: int) -> list[int]:
        """Pids made since the last call, as far as they may be ours; all there are when they started over."""
        since, self._tip = self._tip, newest
        self._has_doubts = False
        if 0 < since == self._tip:
            return []
        if 0 < since < self._tip <= since + PROBE_LIMIT:
            return _census.suspects(self._tree, range(since + 1, self._tip + 1))
        self._has_doubts = True  # a list of the living does not show who is gone
        if 0 < since < self._tip:
            return _census.suspects(self._tree, (pid for pid in self._listed() if pid > since))
        return sorted(self._listed())

    def _listed(self) -> set[int]:
        """All pids there are; waits while it is only descriptors that are short."""
        while not (pids := all_pids()) and proc_shows_our_pids() and time.monotonic() < self._short_limit:
            time.sleep(0.001)
        self.is_late = self.is_late or not pids
        return pids

    def _follow(self) -> None:
        """Strike all suspects, then those that came meanwhile, until there can be no more.

        With nobody of ours, and a stranger behind every pid, there is nobody who could have made more.
        """
        quiet = Quiet()
        while self.suspects and not quiet.is_enough():
            began, struck = time.monotonic(), len(self._struck)
            unsure = self._look()
            if len(self._struck) > struck:
                kill_group(self._tree)
                self._give_up = min(time.monotonic() + GIVE_UP_SECONDS, self._hard_limit)
                quiet = Quiet()
            elif unsure:
                time.sleep(EXEC_GLIMPSE_SECONDS)
                unsure = unsure if quiet.is_shorter_than(EXEC_SECONDS) or self._is_short else []
            elif self._has_doubts:
                quiet.add(began)
            else:
                break
            self.suspects = unsure + self._newcomers(last_pid())
            now = time.monotonic()
            if self.suspects and now > self._give_up and not self._is_waiting(now):
                self.is_late = True
                break
        for pidfd in self._dying:
            is_over(pidfd, within=max(0.0, self._give_up - time.monotonic()))

    def _look(self) -> list[int]:
        """Strike all suspects in order, in a crowd that goes on the newest first; who cannot be told yet."""
        self._is_short = False  # of descriptors
        is_storm = bool(self._struck) and len(self.suspects) > 2 * NEWEST
        newest = self.suspects[: -NEWEST - 1 : -1] if is_storm else []
        caught = {pid for pid in newest if self._strike(pid)}
        return [pid for pid in self.suspects if pid not in caught and self._strike(pid) is None]

    def _strike(self, pid: int) -> bool | None:
        """Kill `pid` if it is ours: whether it was; None when that cannot be told yet."""
        if pid in (self._tree.pid, os.getpid()):
            return False
        try:
            session = os.getsid(pid)
            # Opened before looking: should the number change hands meanwhile, nobody else gets the signal.
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            self._has_doubts = True
            return False
        except OSError as error:
            if error.errno in SHORTAGES:
                self._is_short = True
                return None
            _census.note(pid, 0, b"")  # the number of a thread, whose process has its own
            return False
        ours = self._is_ours(pid, session, pidfd)
        if ours:
            self._kill(pid, pidfd)
        else:
            os.close(pidfd)
        return ours

    def _is_ours(self, pid: int, session: int, pidfd: int) -> bool | None:
        if is_over(pidfd):
            if parent_of(pid) == os.getpid():  # a main process, or nobody's of any run
                _census.note(pid, 0, b"")
            else:
                self._has_doubts = True
            return False
        if session == self._session:
            return True
        # Session 0 is a kernel thread's, or one outside this PID namespace.
        try:
            environment = environment_of(pid) if session else b""
        except OSError:
            self._is_short = True
            return None
        if environment is None:
            return None
        _census.note(pid, session, environment)
        return self._tree.marker in environment

    def _strike_holders(self) -> None:
        """Kill those that cleared their environment but are given away by a pipe of ours."""
        pids = all_pids()
        self._is_short = self._is_short or not pids
        for pid in pids - {self._tree.pid, os.getpid()}:
            try:
                pidfd = os.pidfd_open(pid)
            except OSError as error:
                self._is_short = self._is_short or error.errno in SHORTAGES
                continue
            try:
                is_holder = holds_inherited_end(pid, self._tree.pipes)
            except OSError:
                self._is_short, is_holder = True, False
            if is_holder and not is_over(pidfd):
                self._kill(pid, pidfd)
            else:
                os.close(pidfd)

    def _kill(self, pid: int, pidfd: int) -> None:
        """Send SIGKILL and keep the pidfd, to see it die; one that takes its time to die counts once."""
        with suppress(OSError):
            is_counted = os.getpgid(pid) != self._uncounted_group
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            self.killed += is_counted and pid not in self._struck
        self._struck.add(pid)
        self._dying.append(pidfd)
        if len(self._dying) > PIDFD_LIMIT:
            os.close(self._dying.pop(0))
