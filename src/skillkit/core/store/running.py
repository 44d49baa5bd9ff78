"""Runs that go on -> the hosts that they reached and were refused so far, for every process of the world to see.

Theory of operation. Only a run that used a host has a row, from half a second after that on, and a new one at most
twice a second: most runs write nothing here. The row goes with the run. One of a process that was killed stays behind;
nobody is shown it, and the next run that tells of itself removes it.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.store.base import Store
from skillkit.core.values.hosts import HostUse
from skillkit.core.values.masking import Masker
from skillkit.core.values.runs import ScriptCommand
from skillkit.core.values.text import storable

__all__ = ["RunningRun", "RunningRuns"]

_SELECT = "select run, process, skill, script, session, began_at, hosts from running order by run"
_KEEP = """insert into running (run, process, skill, script, session, began_at, hosts) values (?, ?, ?, ?, ?, ?, ?)
    on conflict (run) do update set hosts = excluded.hosts"""


class RunningRun(NamedTuple):
    """A run that goes on, by the number of the record of its start."""

    run: int
    skill: str
    script: str
    session: str
    began_at: float
    hosts: tuple[HostUse, ...]


class RunningRuns:
    """Of one world."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def all(self) -> list[RunningRun]:
        """The oldest first; looking makes no file."""
        if not self._store.exists():
            return []
        with self._store.connection() as connection:
            rows, now = connection.execute(_SELECT).fetchall(), self._store.now()
        return [
            RunningRun(run, skill, script, session, began, tuple(HostUse(*each) for each in json.loads(hosts)))
            for run, process, skill, script, session, began, hosts in rows
            if now.is_running(process)
        ]

    @contextmanager
    def telling(
        self, run: int, command: ScriptCommand, masker: Masker
    ) -> Iterator[Callable[[Sequence[HostUse]], None]]:
        """What keeps the row of one run, as long as this is open; that the store is away for a while ends no run."""
        lock, began, is_there, is_over = threading.Lock(), time.time(), False, False

        def tell(hosts: Sequence[HostUse]) -> None:
            nonlocal is_there
            names = map(storable, (command.skill_name, command.script_name, command.session_id or ""))
            row = (*names, began, json.dumps(masker.mask_all(hosts)))
            with lock, suppress(StateUnavailableError):
                if not is_over:
                    self._keep(run, row, is_first=not is_there)
                    is_there = True

        try:
            yield tell
        finally:
            with lock:
                is_over = True
            if is_there:
                with suppress(StateUnavailableError), self._store.transaction() as connection:
                    connection.execute("delete from running where run = ?", (run,))

    def _keep(self, run: int, row: tuple[object, ...], *, is_first: bool) -> None:
        """With the first row of a run, those go that processes left behind which were killed."""
        with self._store.transaction() as connection:
            now = self._store.now()
            if is_first:
                kept = connection.execute(_SELECT).fetchall()
                left = [(run,) for run, process, *_ in kept if not now.is_running(process)]
                connection.executemany("delete from running where run = ?", left)
            connection.execute(_KEEP, (run, now.mark(), *row))
