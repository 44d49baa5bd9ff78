"""A claim -> a run that this worker holds: for how long, and what was recorded of it so far."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from skillkit.core.exceptions import AuditUnavailableError, ScriptRefusedError, StateUnavailableError
from skillkit.core.record import AuditLog, Record
from skillkit.core.values.records import JSON
from skillkit.fleet.rows import Rows, patiently

__all__ = ["LEASE_SECONDS", "Hold", "RunLedger"]

LEASE_SECONDS = 30.0
RENEW_SECONDS = 5.0
FENCE_SECONDS = 2.0
"""So long before its lease ends, a run that could not be renewed is killed: it is over before it is called lost."""


class Hold(threading.Event):
    """One run of this worker; set, it is stopped. Looked at every 20 ms by the run itself, so it fences itself."""

    def __init__(self, run: str, asked_at: float) -> None:
        """`asked_at` is when the claim was asked for: the lease the database counts ends no sooner than ours."""
        super().__init__()
        self.run = run
        self.deadline = asked_at + LEASE_SECONDS
        self.is_cancelled = False
        self.answered: int | None = None
        """The number of the person's answer that it runs under, where it needs one."""
        self.started: int | None = None
        self.end: tuple[str, dict[str, Any]] | None = None
        """What kind of record its end is, and the fields."""

    def renew(self, asked_at: float) -> None:
        self.deadline = asked_at + LEASE_SECONDS

    @property
    def is_fenced(self) -> bool:
        return time.monotonic() >= self.deadline - FENCE_SECONDS

    def is_set(self) -> bool:
        return super().is_set() or self.is_fenced

    def cancel(self) -> None:
        self.is_cancelled = True
        self.set()

    @property
    def left(self) -> float:
        """Seconds until it has to be over."""
        return max(0.0, self.deadline - FENCE_SECONDS - time.monotonic())


class RunLedger(AuditLog):
    """The audit as a flow writes to it, for the run that this thread holds: start and end are bound to its row.

    The end is kept until the result is there too, so that both are written in one transaction.
    """

    def __init__(self, rows: Rows, worker: str) -> None:
        super().__init__(rows.store)
        self._runs = rows
        self._worker = worker
        self._held = threading.local()

    def hold(self, held: Hold | None) -> None:
        self._held.run = held

    def append(self, kind: str, fields: Mapping[str, JSON]) -> Record:
        held: Hold = self._held.run
        told = {**fields, "run": held.run, "worker": self._worker}
        if kind != "started":
            held.end = kind, told
            return Record(0, "", kind, told, "", "")
        try:
            number = patiently(lambda: self._runs.start(held.run, self._worker, told, held.answered), held.left)
        except StateUnavailableError as error:
            raise AuditUnavailableError(f"The start cannot be recorded, so nothing runs. {error}") from error
        if number is None:
            raise ScriptRefusedError.because(
                "The run was cancelled, its lease is over, or its answer was used", "Run it again."
            )
        held.started = number
        return Record(number, "", kind, told, "", "")
