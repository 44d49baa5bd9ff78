"""What a world's store offers, whichever database stands behind it: one SQLite file, or PostgreSQL for many machines.

Statements are written once, in the dialect that both understand, with `?` for each value.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from skillkit.core.store.processes import Mark, is_running, own_mark

__all__ = [
    "ChangeMark",
    "Connection",
    "Cursor",
    "Head",
    "Hearing",
    "Moment",
    "Row",
    "Store",
    "boot_id",
    "moment_now",
    "steady_seconds",
]

BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"
_HOST = "@"
"""Between a process's mark and the machine that it is of, where there are several."""

ChangeMark: TypeAlias = tuple[int | str, ...]
Row: TypeAlias = tuple[int, str, str, str, str, str]
"""seq, timestamp, kind, fields as canonical JSON, previous, hash: a record as it is stored."""


class Head(NamedTuple):
    """Where the log of a world ends: the number and hash of its last record; 0 and None before the first."""

    world: str
    seq: int
    hash: str | None
    login: str = ""
    """Who writes, where the store knows one writer from another."""


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time by both clocks; what has run out stays run out, whatever is done to the wall clock."""

    boot: str
    """Which start of the machine `steady` counts from; empty where the system does not say."""
    steady: float
    wall: float
    host: str = ""
    """This machine among those that share the store; empty where there is no other."""

    def after(self, seconds: float) -> Moment:
        return Moment(self.boot, self.steady + seconds, self.wall + seconds, self.host)

    def here(self, seconds: float) -> float:
        """So much later, by the steady clock of this machine: what sleeps here is woken by it."""
        return (steady_seconds() if self.host else self.steady) + seconds

    def mark(self, process: Mark | None = None) -> Mark:
        """Of a process of this machine, as all who share the store can tell it; our own unless another is named."""
        mark = own_mark() if process is None else process
        return f"{mark}{_HOST}{self.host}" if mark and self.host and _HOST not in mark else mark

    def is_running(self, mark: Mark) -> bool:
        """Processes of other machines cannot be looked up: their leases and deadlines alone count."""
        process, _, host = mark.partition(_HOST)
        return host != self.host or is_running(process)


def moment_now() -> Moment:
    return Moment(boot_id(), steady_seconds(), time.time())


def steady_seconds() -> float:
    """Since the machine started; time asleep counts where the system can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@cache
def boot_id() -> str:
    try:
        with open(BOOT_ID_FILE, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


class Cursor(Protocol):
    """What a statement found or did."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...  # noqa: ANN401 - a row has what was asked for
    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """One thread's way to the database; nothing is committed but by `begin` and `commit`, or statement by statement."""

    @property
    def in_transaction(self) -> bool: ...
    @property
    def total_changes(self) -> int: ...
    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...
    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Cursor: ...


class Hearing(Protocol):
    """Whoever listens to a store."""

    @property
    def is_heard(self) -> bool:
        """Whether what is told reaches us now; if not, who waits has to look."""

    def close(self) -> None: ...


class Store(Protocol):
    """A world's state. What cannot be reached, read or written is a StateUnavailableError."""

    folder: Path
    """Of this machine: copies of skills, homes, packages, and where there is no other database the state itself."""

    @property
    def is_shared(self) -> bool:
        """Whether other machines use it too; a skill is then known by its name and content, not by its folder."""

    @property
    def place(self) -> str:
        """What people know it by; holds no password."""

    @property
    def local(self) -> Store:
        """What concerns this machine's folders alone."""

    @property
    def connected_world(self) -> str:
        """The world's id, for who has the connection."""

    def exists(self) -> bool:
        """Whether there is anything to look at; looking makes nothing."""

    def world(self) -> str:
        """The random id this world was given when it was made."""

    def connection(self) -> AbstractContextManager[Connection]:
        """For this thread alone; what is not committed at the end is rolled back."""

    def transaction(self, *, durable: bool = ...) -> AbstractContextManager[Connection]:
        """The same with all other writers waiting; committed at the end, unless something was raised."""

    def now(self) -> Moment:
        """By the clock that all who share the store go by."""

    def change_mark(self) -> ChangeMark:
        """Another value after every commit, whoever made it; reads no table."""

    def append(self, next_row: Callable[[Head], Row]) -> Row:
        """Writes the record that follows whatever is last."""

    def hear(self, wake: Callable[[], None]) -> Hearing | None:
        """Calls as soon as the store tells of an answer, until it is closed; None for one that tells nothing."""

    def scrub(self) -> None:
        """Leaves nothing on disk of what was removed, as far as the database lets us."""

    def close(self) -> None:
        """Lets go; the next use connects again."""
