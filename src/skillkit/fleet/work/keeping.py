"""Runs that this worker holds -> held as long as they go on, and stopped when they are not ours or not wanted any more.

One thread with a connection of its own, so that nothing that runs here can keep it waiting. Every five seconds it
renews what is held. While the database is away nothing can be renewed, and each run fences itself (`holding.Hold`).
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from skillkit.core.exceptions import SkillKitError
from skillkit.core.store.shared.postgres import connect
from skillkit.fleet.rows import Rows
from skillkit.fleet.watch import LOOK_SECONDS, listen
from skillkit.fleet.work.holding import LEASE_SECONDS, RENEW_SECONDS, Hold

__all__ = ["Keeper"]

STATEMENT_SECONDS = 5

fleet_log = logging.getLogger("skillkit.fleet")


class Keeper:
    """The thread beside the runs of one worker."""

    def __init__(self, rows: Rows, worker: str, told: Mapping[str, Any], on_news: Callable[[], None]) -> None:
        """`on_news` is called when something happened to a run of the world."""
        self._rows, self._worker, self._on_news = rows, worker, on_news
        self._told = ""
        self.tell(told)
        self._lock = threading.Lock()
        self._held: dict[str, Hold] = {}
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self.renewals = self.losses = self.outages = 0
        """How often, for who watches."""
        self.is_stopping = False
        self.on_drain: Callable[[], None] = lambda: None
        """Called once when a person lets this worker end."""

    def tell(self, told: Mapping[str, Any]) -> None:
        """What others see of this worker, with its next look."""
        self._told = json.dumps(dict(told), default=str)
        self._renew_at = 0.0

    def start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="skillkit-keeper", daemon=True)
                self._thread.start()

    def add(self, held: Hold) -> None:
        with self._lock:
            self._held[held.run] = held
        self.start()

    def remove(self, held: Hold) -> None:
        with self._lock:
            self._held.pop(held.run, None)

    @property
    def running(self) -> int:
        return len(self._held)

    @property
    def is_working(self) -> bool:
        """Whether it looks after what runs; true while the database is away too."""
        return self._thread is not None and self._thread.is_alive()

    def close(self) -> None:
        self.is_stopping = True
        self._over.set()
        if self._thread is not None:
            self._thread.join(2 * STATEMENT_SECONDS)

    def _work(self) -> None:
        import psycopg

        while not self._over.is_set():
            try:
                with connect(self._rows.store.address) as connection:
                    connection.execute(f"set statement_timeout = '{STATEMENT_SECONDS}s'")
                    listen(connection, self._rows.store.address, to="_work")
                    self._renew_at = 0.0  # after an outage it is due
                    while not self._over.is_set():
                        self._keep(connection)
                    connection.execute("select forget_worker(%s)", (self._worker,))
            except (psycopg.Error, SkillKitError, OSError) as error:
                self.outages += 1
                fleet_log.warning("The shared world cannot be reached: %s", str(error).strip().partition("\n")[0])
                self._over.wait(LOOK_SECONDS)

    def _keep(self, connection: Any) -> None:  # noqa: ANN401 - psycopg's
        if time.monotonic() >= self._renew_at:
            self._renew_at = time.monotonic() + RENEW_SECONDS
            self._renew(connection)
        has_news = False
        for _ in connection.notifies(timeout=LOOK_SECONDS, stop_after=1):
            has_news = True
        if has_news:
            self._on_news()
        if self._held:
            self._stop_cancelled(connection)

    def _holds(self) -> dict[str, Hold]:
        with self._lock:
            return dict(self._held)

    def _renew(self, connection: Any) -> None:  # noqa: ANN401
        held, asked_at = self._holds(), time.monotonic()
        if held:
            found = connection.execute(
                "select run::text, is_stopped from renew_runs(%s, %s, %s)",
                ([UUID(run) for run in held], self._worker, LEASE_SECONDS),
            )
            still = {run for run, _ in found.fetchall()}
            for run, each in held.items():
                if run in still:
                    each.renew(asked_at)
                else:
                    each.set()  # not ours any more, or over
            self.renewals += len(still)
            self.losses += len(held) - len(still)
        noted = connection.execute("select note_worker(%s, %s, %s)", (self._worker, self._told, len(held)))
        if noted.fetchone()[0] and not self.is_stopping:
            self.is_stopping = True
            self.on_drain()

    def _stop_cancelled(self, connection: Any) -> None:  # noqa: ANN401
        held = self._holds()
        ids = [UUID(run) for run in held]
        found = connection.execute("select id::text from runs where id = any(%s) and is_cancelled", (ids,))
        for (run,) in found.fetchall():
            held[run].cancel()
