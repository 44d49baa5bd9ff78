"""A Celery app -> one that runs what is ordered: the task, its worker, and the settings that both need."""

from __future__ import annotations

import logging
import os
import threading
from typing import Any

from skillkit.fleet.broker import TASK
from skillkit.fleet.work.worker import Worker

__all__ = ["add_task"]

MESSAGE_CHARACTERS = 36

fleet_log = logging.getLogger("skillkit.fleet")


class _PerProcess:
    """The worker of each process: threads and connections do not come through a fork."""

    def __init__(self, app: Any, options: dict[str, Any]) -> None:  # noqa: ANN401
        self._app, self._options = app, options
        self._lock = threading.Lock()
        self._workers: dict[int, Worker] = {}

    def get(self) -> Worker:
        with self._lock:
            found = self._workers.get(os.getpid())
            if found is None:
                found = self._workers[os.getpid()] = Worker(self._app, **self._options)
                found.start()
            return found

    def close(self, **_: Any) -> None:  # noqa: ANN401 - what a signal says
        with self._lock:
            worker = self._workers.pop(os.getpid(), None)
        if worker is not None:
            worker.close()

    def drain(self, **_: Any) -> None:  # noqa: ANN401
        worker = self._workers.get(os.getpid())
        if worker is not None:
            worker.drain()


def add_task(app: Any, **options: Any) -> Any:  # noqa: ANN401 - a Celery app, and the worker's own
    """Gives an app of your own the task that runs what is ordered; `options` are those of `Worker`.

    The message is a run's id. Anything else is ignored: what a run is stands in the shared world.
    """
    from celery import signals

    process = _PerProcess(app, options)

    def run(run_id: object = None, *_: object, **__: object) -> None:
        if not isinstance(run_id, str) or len(run_id) > MESSAGE_CHARACTERS:
            fleet_log.warning("A message that names no run is ignored")
            return
        fleet_log.debug("The run %s: %s", run_id, process.get().run(run_id))

    task = app.task(name=TASK, ignore_result=True, acks_late=False, shared=False)(run)
    task.skillkit = process
    # Kept by the app, for signals hold their receivers weakly.
    app.skillkit_process = process
    signals.worker_shutting_down.connect(process.drain)
    signals.worker_shutdown.connect(process.close)
    signals.worker_process_shutdown.connect(process.close)
    return task
