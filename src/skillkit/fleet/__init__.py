"""Runs on many machines: a manager orders them, Celery carries their ids, workers run them; PostgreSQL holds the truth.

Theory of operation. One machine needs none of this. Who outgrows it names a shared world and a broker:

    from skillkit import SkillManager
    from skillkit.fleet import CeleryRunner
    manager = SkillManager(state="postgresql://host/db?world=acme", runner=CeleryRunner("redis://host/0"))

and starts workers with `skillkit worker --state ... --broker ...`, or gives an app of their own the task (`add_task`).

    front.py     a prepared run -> its order (orders.py), the skill's bytes (packing.py), a row (rows.py), a message
    waiting.py   the row -> output, result or error for who ordered it (FleetRun); watch.py wakes who waits
    tasks.py     a Celery app with the task
    showing.py   a question about an order -> whether it shows what would run (claims.py); shown.py: what people see
    work/worker.py   an id -> the run: claim, decide again (worker_flow), run, end; with fetching, streaming, results
    work/holding.py  the lease of one run, by which it fences itself; keeping renews it, spool keeps an end for later
    work/reaping.py  runs that nobody holds: queued again, lost, expired, recorded, sent

A message that is forged, doubled, replayed or late does nothing that the row does not allow: only who turns a row from
queued to running has the run, until its lease ends. An order is a text whose digest is its id; a person's answer is to
that id. Started at most once, one end, both bound to the audit by the database's own functions (`postgres.sql`).

Public names: CeleryRunner (`order`, `find`), FleetRun (`id`, `state`, `result`, `aresult`, `cancel`), Worker, add_task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillkit.fleet.runner import CeleryRunner
    from skillkit.fleet.tasks import add_task
    from skillkit.fleet.waiting import FleetRun
    from skillkit.fleet.work.worker import Worker

__all__ = ["CeleryRunner", "FleetRun", "Worker", "add_task"]

_PLACES = {"CeleryRunner": "runner", "FleetRun": "waiting", "Worker": "work.worker", "add_task": "tasks"}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
