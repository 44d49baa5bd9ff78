"""Askers of this process who wait -> each woken when its request was answered, closed, cancelled or ran out of time."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass, field

from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.store.base import steady_seconds
from skillkit.core.store.request_rows import LEASE_SECONDS, Ticket
from skillkit.core.values.questions import Cancel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.store.base import ChangeMark, Hearing, Store
    from skillkit.core.store.requests import Requests

__all__ = ["LOOK_SECONDS", "Subscriber", "Subscription"]

LOOK_SECONDS = 0.1
TOLD_LOOK_SECONDS = 1.0
"""Between looks at a store that tells of answers; what it tells may get lost."""
RENEW_SECONDS = 2.0


@dataclass(slots=True, eq=False)
class Subscriber:
    """One asker's sleep."""

    ticket: Ticket
    cancel: Cancel | None
    woken: threading.Event = field(default_factory=threading.Event)
    problem: Exception | None = None

    @property
    def is_done(self) -> bool:
        return self.is_cancelled or steady_seconds() >= self.ticket.ends

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


class Subscription:
    """One thread that looks at the store for all askers of a process, while there are any.

    A look at the store's mark that finds the old one costs no read of any table. A store that tells of answers is
    looked at when it does, and else seldom.
    """

    def __init__(self, store: Store, requests: Requests) -> None:
        self._store = store
        self._requests = requests
        self._lock = threading.Condition()
        self._subscribers: set[Subscriber] = set()
        self._is_running = False
        self._is_stale = True
        self._mark: ChangeMark | None = None
        self._renewed = self._reached = steady_seconds()
        self._hearing: Hearing | None = None

    def sleep(self, subscriber: Subscriber) -> None:
        """Until there is something to do for this asker."""
        try:
            with self._lock:
                self._subscribers.add(subscriber)
                self._is_stale = True
                if not self._is_running:
                    self._reached = steady_seconds()
                    threading.Thread(target=self._watch, name="skillkit-watch", daemon=True).start()
                    self._is_running = True
            subscriber.woken.wait(max(0.0, subscriber.ticket.ends - steady_seconds()))
        finally:
            with self._lock:
                self._subscribers.discard(subscriber)
                if not self._subscribers:
                    self._lock.notify()
        if subscriber.problem is not None:
            raise subscriber.problem

    def look_now(self) -> None:
        """Something was answered here; nobody need wait for the next look."""
        with self._lock:
            self._is_stale = True
            self._lock.notify()

    def _watch(self) -> None:
        hearing = self._hearing = self._store.hear(self.look_now)
        try:
            self._watch_while_any()
        finally:
            if hearing is not None:
                hearing.close()

    def _watch_while_any(self) -> None:
        while True:
            with self._lock:
                if not self._subscribers:
                    self._is_running = False
                    return
                if not self._is_stale:
                    self._lock.wait(LOOK_SECONDS)
                subscribers, is_stale, self._is_stale = tuple(self._subscribers), self._is_stale, False
            for subscriber in subscribers:
                subscriber.wake_if_done()
            if not is_stale and self._is_told and steady_seconds() - self._reached < TOLD_LOOK_SECONDS:
                continue
            try:
                self._look(subscribers, is_stale=is_stale)
                self._reached = steady_seconds()
            except (StateUnavailableError, sqlite3.Error) as error:
                self._give_up_on(subscribers, error)

    @property
    def _is_told(self) -> bool:
        return self._hearing is not None and self._hearing.is_heard

    def _look(self, subscribers: tuple[Subscriber, ...], *, is_stale: bool) -> None:
        before, self._mark = self._mark, self._store.change_mark()
        if self._mark != before or is_stale:
            over = self._requests.seqs_over(subscriber.ticket.seq for subscriber in subscribers)
            for subscriber in subscribers:
                if subscriber.ticket.seq in over:
                    subscriber.wake()
        if steady_seconds() - self._renewed >= RENEW_SECONDS:
            self._requests.renew(subscriber.ticket for subscriber in subscribers)
            self._renewed = steady_seconds()

    def _give_up_on(self, subscribers: tuple[Subscriber, ...], error: Exception) -> None:
        """A lock passes; what lasts as long as a lease has lost these askers their place anyway."""
        with self._lock:
            self._is_stale = True
            if steady_seconds() - self._reached < LEASE_SECONDS:
                self._lock.wait(LOOK_SECONDS)
                return
            self._subscribers.difference_update(subscribers)
        for subscriber in subscribers:
            subscriber.wake(error)
