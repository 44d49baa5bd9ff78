"""Runs that nobody holds -> queued again, lost, expired, recorded, or sent: what any worker does for its world.

A lease that is over means queued again where nothing had started, and lost where something had: a run never starts
twice. What is queued and was not sent, or was sent a minute ago and not claimed, is sent: a second message does no
harm. What killed workers left on this machine goes too.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import Any
from uuid import UUID

from skillkit.core.exceptions import SkillKitError, StateUnavailableError
from skillkit.core.paths.temporary import clear_abandoned
from skillkit.fleet.broker import send
from skillkit.fleet.rows import Rows
from skillkit.fleet.sending import PUBLISH_AGAIN_SECONDS
from skillkit.fleet.work.holding import RENEW_SECONDS
from skillkit.fleet.work.spool import Spool

__all__ = ["Reaper"]

KEPT_SECONDS = 86_400.0
FORGET_SECONDS = 600.0
CLEAR_SECONDS = 60.0
UNRECORDED_SECONDS = 2.0
AT_ONCE = 100
TOLD = {"session": "session_id", "skill": "skill", "digest": "digest", "script": "script"}
"""What a record says of an order, and where that stands in it."""

fleet_log = logging.getLogger("skillkit.fleet")


class Reaper:
    """A thread of its own: neither a slow broker nor a slow question may keep what runs from being renewed."""

    def __init__(self, rows: Rows, app: Any, spool: Spool) -> None:  # noqa: ANN401 - a Celery app
        self._rows, self._app, self._spool = rows, app, spool
        self._news, self._over = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._forget_at = self._clear_at = 0.0

    def start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="skillkit-reaper", daemon=True)
            self._thread.start()

    def wake(self) -> None:
        self._news.set()

    def close(self) -> None:
        self._over.set()
        self._news.set()
        if self._thread is not None:
            self._thread.join(RENEW_SECONDS)

    def _work(self) -> None:
        reap_at = 0.0
        while not self._over.is_set():
            try:
                self._clear()
                if time.monotonic() >= reap_at:
                    reap_at = time.monotonic() + RENEW_SECONDS
                    self.reap()
                self._publish()
            except SkillKitError as error:
                fleet_log.warning("What nobody holds cannot be looked at: %s", error)
            except Exception:  # noqa: BLE001 - the thread goes on
                fleet_log.exception("A fault of ours in looking after runs")
            self._news.wait(max(0.0, reap_at - time.monotonic()))
            self._news.clear()

    def _clear(self) -> None:
        """Folders of runs whose process was killed; whether the database is there or not."""
        if time.monotonic() >= self._clear_at:
            self._clear_at = time.monotonic() + CLEAR_SECONDS
            clear_abandoned()

    def reap(self) -> None:
        self._do("select requeue_runs()")
        self._do("select expire_runs()")
        for step in (self._lose, self._record_ends, self._empty_spool):
            try:
                step()
            except SkillKitError:
                raise
            except Exception:  # noqa: BLE001 - one that cannot be done keeps nobody from the others
                fleet_log.exception("A fault of ours in looking after runs")
        if time.monotonic() >= self._forget_at:
            self._forget_at = time.monotonic() + FORGET_SECONDS
            self._do("select forget_runs(?)", KEPT_SECONDS)

    def _do(self, sql: str, *values: object) -> list[Any]:
        with self._rows.store.connection() as connection:
            return connection.execute(sql, values).fetchall()

    def _lose(self) -> None:
        found = self._do(
            "select id::text, content, started_seq, worker from runs "
            "where state = 'running' and started_seq is not null and is_lease_over(lease_until) limit ?",
            AT_ONCE,
        )
        for run, content, started, worker in found:
            fields = {**_told(content), "started": started, "run": run, "worker": worker, "error": "lost"}
            self._do("select lose_run(?, ?)", UUID(run), self._rows.record_text(fields))
            self._do("delete from running where run = ? returning run", started)  # the page shows it no more
            fleet_log.warning("The run %s is lost: its worker %s does not renew it", run, worker)

    def _record_ends(self) -> None:
        """Of runs that never started, and whose caller is gone."""
        found = self._do(
            "select id::text, content, state from runs where finished_seq is null and ended_at is not null "
            "and ended_at < seconds_now() - ? limit ?",
            UNRECORDED_SECONDS,
            AT_ONCE,
        )
        for run, content, state in found:
            fields = {**_told(content), "run": run, "error": state, "reasons": [f"The run is {state}."]}
            self._rows.record_end(run, fields)

    def _empty_spool(self) -> None:
        for kept in self._spool.all():
            try:
                self._rows.finish(kept.run, kept.worker, kept.state, kept.fields, kept.result)
            except StateUnavailableError as error:
                fleet_log.warning("The end of the run %s still cannot be written: %s", kept.run, error)
                return
            self._spool.drop(kept.run)

    def _publish(self) -> None:
        is_there = True
        for run, queue in self._rows.to_publish(None, PUBLISH_AGAIN_SECONDS, AT_ONCE):
            is_there = is_there and not self._over.is_set() and send(self._app, run, queue)
            if not is_there:
                self._rows.unpublish(run)


def _told(content: str) -> dict[str, Any]:
    """What can be said of an order that a front wrote, as it liked: what is no text is not told."""
    try:
        order = json.loads(content)
        told = {name: order.get(key) for name, key in TOLD.items()}
    except (ValueError, AttributeError, RecursionError):
        return {}
    return {name: value for name, value in told.items() if isinstance(value, str)}
