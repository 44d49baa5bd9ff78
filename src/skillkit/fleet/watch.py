"""Runs that somebody here waits for -> a wake-up for each when something happened to it: one thread, one connection.

The database tells by LISTEN and NOTIFY. Where that does not reach us, as behind a pooler that shares connections among
transactions, the thread looks itself, twice a second; while the database is away it tries again.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import UUID, uuid4

from skillkit.core.store.shared.postgres import SharedStore, WorldAddress, connect

__all__ = ["LOOK_SECONDS", "Watch", "watch_of"]

LOOK_SECONDS = 0.5
IDLE_SECONDS = 10.0


class _Waiting:
    """One that waits; `state` is what was seen last."""

    def __init__(self, *, is_streamed: bool) -> None:
        self.woken = threading.Event()
        self.is_streamed = is_streamed
        self.state = ""


class Watch:
    """For one world in one process; its thread ends when nobody waits for a while."""

    def __init__(self, address: WorldAddress) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._waiting: dict[str, _Waiting] = {}
        self._thread: threading.Thread | None = None
        self._idle_since = 0.0

    @contextmanager
    def expecting(self, *, streams: bool) -> Iterator[str]:
        """The id of a run that is about to be ordered: nothing that happens to it is missed."""
        run = str(uuid4())
        with self.of(run, is_streamed=streams):
            yield run

    @contextmanager
    def of(self, run: str, *, is_streamed: bool) -> Iterator[threading.Event]:
        """Set when the run should be looked at; who waits clears it before it looks."""
        with self._lock:
            known = self._waiting.get(run)
        if known is not None:
            yield known.woken
            return
        waiting = _Waiting(is_streamed=is_streamed)
        with self._lock:
            self._waiting[run] = waiting
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="skillkit-watch", daemon=True)
                self._thread.start()
        try:
            yield waiting.woken
        finally:
            with self._lock:
                self._waiting.pop(run, None)
                self._idle_since = time.monotonic()

    def _is_idle(self) -> bool:
        """Whether to end; whoever comes afterwards starts another thread."""
        with self._lock:
            if self._waiting or time.monotonic() - self._idle_since < IDLE_SECONDS:
                return False
            self._thread = None
            return True

    def _work(self) -> None:
        import psycopg

        while not self._is_idle():
            with suppress(psycopg.Error), connect(self._address) as connection:
                listen(connection, self._address)
                while not self._is_idle():
                    for notice in connection.notifies(timeout=LOOK_SECONDS, stop_after=1):
                        self._wake(notice.payload)
                    self._look(connection)
                return
            self._wake_all()
            time.sleep(LOOK_SECONDS)

    def _wake(self, run: str) -> None:
        with self._lock:
            waiting = self._waiting.get(run)
        if waiting is not None:
            waiting.woken.set()

    def _wake_all(self) -> None:
        with self._lock:
            for each in self._waiting.values():
                each.woken.set()

    _looked_at = 0.0

    def _look(self, connection: Any) -> None:  # noqa: ANN401 - psycopg's
        """What no notice told; all runs in one question."""
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = time.monotonic()
        with self._lock:
            waiting = dict(self._waiting)
        if not waiting:
            return
        found = connection.execute("select id::text, state from runs where id = any(%s)", ([*map(UUID, waiting)],))
        for run, state in found.fetchall():
            each = waiting[run]
            if each.is_streamed or state != each.state:
                each.state = state
                each.woken.set()


def listen(connection: Any, address: WorldAddress, *, to: str = "") -> None:  # noqa: ANN401 - psycopg's
    """To output and ends of runs, or `to="_work"`: to what workers have to do."""
    from psycopg import sql

    connection.execute(sql.SQL("listen {}").format(sql.Identifier(f"skillkit_{address.world}{to}")))


_watches: weakref.WeakValueDictionary[tuple[int, WorldAddress], Watch] = weakref.WeakValueDictionary()
_lock = threading.Lock()


def watch_of(store: SharedStore) -> Watch:
    """One for all who use the same world in this process; threads do not come through a fork."""
    key = (os.getpid(), store.address)
    with _lock:
        found = _watches.get(key)
        if found is None:
            found = _watches[key] = Watch(store.address)
        return found


Look = Callable[[], None]
