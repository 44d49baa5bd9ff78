"""A broker's address -> a Celery app, and a run's id sent through it: the message carries that and nothing else."""

from __future__ import annotations

import logging
import os
from typing import Any

from skillkit.core.exceptions import ConfigurationError

__all__ = ["BROKER_VARIABLE", "TASK", "app_for", "broker_from", "queue_name", "send"]

TASK = "skillkit.run"
BROKER_VARIABLE = "SKILLKIT_BROKER"
SETTINGS = {
    "task_serializer": "json",
    "accept_content": ["json"],
    "task_ignore_result": True,
    "task_acks_late": False,
    "worker_prefetch_multiplier": 1,
    "broker_connection_retry_on_startup": True,
    "broker_connection_max_retries": None,
    "worker_hijack_root_logger": False,
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    "task_create_missing_queues": True,
}

fleet_log = logging.getLogger("skillkit.fleet")
fleet_log.addHandler(logging.NullHandler())


def broker_from(given: str | None) -> str:
    chosen = given or os.environ.get(BROKER_VARIABLE, "")
    if not chosen:
        raise ConfigurationError(f"No broker is named. Add --broker redis://HOST/0, or set {BROKER_VARIABLE}.")
    return chosen


def app_for(broker: str) -> Any:  # noqa: ANN401 - a Celery app
    """A Celery app of our own; who has one already uses that, with `add_task`."""
    try:
        from celery import Celery
    except ImportError as error:
        raise ConfigurationError(
            "Runs on workers need the extra 'fleet': pip install 'skillkit-runtime[fleet]'."
        ) from error
    app = Celery("skillkit", broker=broker)
    app.conf.update(SETTINGS)
    return app


def queue_name(world: str, interpreter: str, tier: str, label: str = "") -> str:
    """For runs of this interpreter that were shown within these walls."""
    return f"{world}.{interpreter}.{tier}" + (f".{label}" if label else "")


def send(app: Any, run: str, queue: str) -> bool:  # noqa: ANN401 - a Celery app
    """Whether the broker took it."""
    from kombu.exceptions import OperationalError

    try:
        app.send_task(
            TASK,
            args=[run],
            queue=queue,
            ignore_result=True,
            serializer="json",
            retry=True,
            retry_policy={"max_retries": 1, "interval_start": 0.1, "interval_max": 0.1},
        )
    except (OperationalError, OSError) as error:
        fleet_log.warning("The broker cannot be reached; the run %s is sent later: %s", run, error)
        return False
    return True
