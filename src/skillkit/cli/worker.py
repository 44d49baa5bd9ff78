"""The command `worker`: runs what is ordered for a shared world, until it is told to end."""

from __future__ import annotations

import logging
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import click

from skillkit._version import __version__
from skillkit.cli.elsewhere import volumes_from
from skillkit.cli.options import Chosen, policy_options, require_person_to_loosen, settings_for, state_option
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.values.policy import ScriptPolicy

__all__ = ["worker_command"]

AT_ONCE = 4
LONGEST_SECONDS = 2_000.0


@click.command("worker", short_help="Run what is ordered for a shared world, in own walls.")
@click.option("--broker", metavar="ADDRESS", help="The broker, else $SKILLKIT_BROKER: redis://..., amqp://...")
@click.option("--queues", metavar="NAMES", help="Take from these queues, not from those of its interpreters and walls.")
@click.option("--label", "labels", multiple=True, help="Take runs for this label too (repeatable).")
@click.option("--concurrency", type=click.IntRange(1, 256), default=AT_ONCE, help="How many run at once.")
@click.option(
    "--volume", "volumes", multiple=True, callback=volumes_from, help="NAME=FOLDER that callers know by its name."
)
@click.option(
    "--homes", default="", metavar="NAME", help="The volume that holds the homes of skills, and nothing else."
)
@click.option(
    "--metrics-port", metavar="[HOST:]PORT", help="Serve metrics for Prometheus there; without a host to this machine."
)
@click.option("--log-level", type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]), default="INFO")
@policy_options
@state_option
def worker_command(
    broker: str | None,
    queues: str | None,
    labels: tuple[str, ...],
    concurrency: int,
    volumes: dict[str, Path],
    homes: str,
    metrics_port: str | None,
    log_level: str,
    state_dir: Path | None,
    **chosen: Any,  # noqa: ANN401 - policy options
) -> None:
    """Run what is ordered for a shared world.

    Runs happen inside this machine's own walls, and each is decided about again here: an order looser than this
    machine's own policy is refused, and so is one that no person approved. SIGTERM lets what runs finish.

    \b
    Examples:
      skillkit worker --state 'postgresql://worker@db/skills?world=acme' --broker redis://broker/0
      skillkit worker --queues acme.python3.bubblewrap,acme.node.bubblewrap --concurrency 8
    """
    from skillkit.fleet.broker import app_for, broker_from
    from skillkit.fleet.tasks import add_task

    logging.basicConfig(level=log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    named = cast("Chosen", {**chosen, "state_dir": state_dir})
    require_person_to_loosen(named, "worker", is_server=True)
    settings = settings_for(named)
    app = app_for(broker_from(broker))
    told = {"host": platform.node(), "process": os.getpid(), "version": __version__, "concurrency": concurrency}
    task = add_task(app, state_dir=state_dir, policy=settings.policy, volumes=volumes, homes=homes, told=told)
    worker = task.skillkit.get()
    names = queues.split(",") if queues else _queues(settings.policy, worker, labels)
    worker.keeper.tell({**told, "tier": worker.tier, "queues": names})
    click.echo(f"skillkit: worker {worker.name} of {worker.rows.store.place} takes {', '.join(names)}", err=True)
    with _metrics(metrics_port, worker, names):
        _serve(app, worker, names, concurrency, log_level)


@contextmanager
def _metrics(address: str | None, worker: Any, queues: list[str]) -> Iterator[None]:  # noqa: ANN401 - ours, imported late
    from skillkit.fleet.work.metrics import MetricsServer, metrics_text

    if address is None:
        yield
        return
    with closing(
        MetricsServer(address, lambda: metrics_text(worker, queues), lambda: bool(worker.keeper.is_working))
    ) as server:
        click.echo(f"skillkit: metrics at {server.address}", err=True)
        yield


def _queues(policy: ScriptPolicy, worker: Any, labels: tuple[str, ...]) -> list[str]:  # noqa: ANN401 - ours
    """Of each interpreter that is here, for the walls of this machine and for all that are wider."""
    from skillkit.core.values.bounds import tiers_within
    from skillkit.fleet.broker import queue_name

    here = [each for each in policy.allowed_interpreters if shutil.which(each)]
    if not here:
        raise ConfigurationError(
            "This machine has none of the interpreters that policy allows. Install one, or name --queues."
        )
    tiers = tiers_within(worker.tier)[::-1]
    return [queue_name(worker.world, each, tier, label) for each in here for label in ("", *labels) for tier in tiers]


def _serve(app: Any, worker: Any, queues: list[str], concurrency: int, log_level: str) -> None:  # noqa: ANN401 - Celery's
    """In this process, with threads: our own cancel and timeouts need nothing of Celery's."""
    import signal

    served = app.Worker(
        hostname=f"skillkit@{worker.name}",
        pool="threads",
        concurrency=concurrency,
        queues=queues,
        loglevel=log_level,
        optimization="fair",
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.keeper.on_drain = lambda: os.kill(os.getpid(), signal.SIGTERM)
    try:
        served.start()
    finally:
        worker.close()
    raise click.exceptions.Exit(served.exitcode or 0)
