"""Askers of this process who wait -> each woken when its request was answered, closed, cancelled or ran out of time."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass, field

from skillkit.core.decide.deadlines import moment_now, steady_seconds
from skillkit.core.decide.request_rows import LEASE_SECONDS, Ticket, no_longer_pending, renew
from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.questions import Cancel
from skillkit.core.state import StateStore

__all__ = ["Waiter", "Watcher"]

LOOK_SECONDS = 0.1
RENEW_SECONDS = 2.0


@dataclass(slots=True, eq=False)
class Waiter:
    """One asker's sleep."""

    ticket: Ticket
    ends: float
    """By the steady clock."""
    cancel: Cancel | None
    woken: threading.Event = field(default_factory=threading.Event)
    problem: Exception | None = None

    @property
    def is_done(self) -> bool:
        return self.is_cancelled or steady_seconds() >= self.ends

    @property
    def is_cancelled(self) -> bool:
        return self.cancel is not None and self.cancel.is_set()

    def wake(self, problem: Exception | None = None) -> None:
        self.problem = self.problem or problem
        self.woken.set()

    def wake_if_done(self) -> None:
        """A caller's `cancel` may fail; that must not end the looking for all the others."""
        try:
            if self.is_done:
                self.wake()
        except Exception as problem:  # noqa: BLE001 - raised again where the asker sleeps
            self.wake(problem)


class Watcher:
    """One thread that looks at the file for all askers of a process, while there are any.

    SQLite counts the commits of others; a look that finds the old count costs no read of any table.
    """

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._lock = threading.Condition()
        self._waiters: set[Waiter] = set()
        self._is_running = False
        self._is_stale = True
        self._connection: sqlite3.Connection | None = None
        self._version = -1
        self._renewed = steady_seconds()
        self._reached = self._renewed

    def sleep(self, waiter: Waiter) -> None:
        """Until there is something to do for this asker."""
        try:
            with self._lock:
                self._waiters.add(waiter)
                self._is_stale = True
                if not self._is_running:
                    self._reached = steady_seconds()
                    threading.Thread(target=self._watch, name="skillkit-watch", daemon=True).start()
                    self._is_running = True
            waiter.woken.wait(max(0.0, waiter.ends - steady_seconds()))
        finally:
            with self._lock:
                self._waiters.discard(waiter)
                if not self._waiters:
                    self._lock.notify()
        if waiter.problem is not None:
            raise waiter.problem

    def look_now(self) -> None:
        """Something was answered through this process's own connection, which its count leaves out."""
        with self._lock:
            self._is_stale = True
            self._lock.notify()

    def _watch(self) -> None:
        while True:
            with self._lock:
                if not self._waiters:
                    self._is_running = False
                    return
                if not self._is_stale:
                    self._lock.wait(LOOK_SECONDS)
                waiters, is_stale, self._is_stale = tuple(self._waiters), self._is_stale, False
            try:
                self._look(waiters, is_stale=is_stale)
                self._reached = steady_seconds()
            except (StateUnavailableError, sqlite3.Error) as error:
                self._give_up_on(waiters, error)

    def _look(self, waiters: tuple[Waiter, ...], *, is_stale: bool) -> None:
        for waiter in waiters:
            waiter.wake_if_done()
        with self._store.connection() as connection:
            if self._has_changed(connection) or is_stale:
                over = no_longer_pending(connection, [waiter.ticket.seq for waiter in waiters])
                for waiter in waiters:
                    if waiter.ticket.seq in over:
                        waiter.wake()
            if steady_seconds() - self._renewed >= RENEW_SECONDS:
                connection.execute("begin immediate")
                renew(connection, [waiter.ticket for waiter in waiters], moment_now())
                connection.execute("commit")
                self._renewed = steady_seconds()

    def _has_changed(self, connection: sqlite3.Connection) -> bool:
        version = connection.execute("pragma data_version").fetchone()[0]
        # Counts of two connections cannot be compared, so the connection is part of what is remembered.
        has_changed = connection is not self._connection or version != self._version
        self._connection, self._version = connection, version
        return has_changed

    def _give_up_on(self, waiters: tuple[Waiter, ...], error: Exception) -> None:
        """A lock passes; what lasts as long as a lease has lost these askers their place anyway."""
        with self._lock:
            self._is_stale = True
            if steady_seconds() - self._reached < LEASE_SECONDS:
                self._lock.wait(LOOK_SECONDS)
                return
            self._waiters.difference_update(waiters)
        for waiter in waiters:
            waiter.wake(error)
