"""A shared world -> who works for it, what waits in its queues, and what became of its runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import NamedTuple

from skillkit.core.store.shared.postgres import SharedStore

__all__ = ["Queue", "SeenWorker", "Status", "status_of"]

GONE_SECONDS = 60.0


class SeenWorker(NamedTuple):
    """A worker as it told of itself last."""

    name: str
    login: str
    running: int
    concurrency: int
    tier: str
    """Its walls."""
    queues: tuple[str, ...]
    version: str
    seen_seconds: float
    is_draining: bool

    @property
    def doing(self) -> str:
        ends = ", ends" if self.is_draining else ""
        return f"{self.running} of {self.concurrency or '?'}{ends}"

    @property
    def age(self) -> str:
        return f"{self.seen_seconds:.0f} s ago"


class Queue(NamedTuple):
    """What waits in one."""

    name: str
    waiting: int
    oldest: float
    """Seconds."""


@dataclass(frozen=True, slots=True)
class Status:
    """A world at one moment."""

    workers: tuple[SeenWorker, ...]
    queues: tuple[Queue, ...]
    runs: dict[str, int]
    """How many are in each state; those that are over for more than a day are forgotten."""


def status_of(store: SharedStore) -> Status:
    with store.connection() as connection:
        workers = connection.execute(
            "select name, login, told, running, is_draining, seconds_now() - seen_at from workers "
            "where seen_at > seconds_now() - ? order by name",
            (GONE_SECONDS,),
        ).fetchall()
        queues = connection.execute(
            "select queue, count(*), max(seconds_now() - created_at) from runs where state = 'queued' "
            "group by queue order by queue"
        ).fetchall()
        runs = connection.execute("select state, count(*) from runs group by state order by state").fetchall()
    return Status(tuple(_worker(*each) for each in workers), tuple(Queue(*each) for each in queues), dict(runs))


def _worker(name: str, login: str, told: str, running: int, is_draining: bool, seconds: float) -> SeenWorker:
    said = json.loads(told)
    queues = tuple(map(str, said.get("queues", ())))
    version = str(said.get("version", ""))
    concurrency, tier = int(said.get("concurrency", 0)), str(said.get("tier", ""))
    return SeenWorker(name, login, running, concurrency, tier, queues, version, seconds, is_draining)
