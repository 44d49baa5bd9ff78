"""Commands for a world that many machines share: make it, bring it up to date, move a folder's world into it."""

from __future__ import annotations

import os
from pathlib import Path

import click

from skillkit.cli.options import MissingError, json_option, state_option
from skillkit.cli.output import echo_json
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.record import AuditLog
from skillkit.core.store.opening import SHARED_VARIABLE
from skillkit.core.store.shared.postgres import ROLES, SharedStore, WorldAddress, make_world, set_limits
from skillkit.core.store.state import StateStore, state_folder

__all__ = ["fleet", "world"]

WHAT_FOR = {
    "worker": "runs scripts and records what ran",
    "front": "asks and takes answers: agents, MCP servers, chat",
    "approver": "answers, trusts and grants: people, the page",
}


def _address() -> WorldAddress:
    chosen = os.environ.get(SHARED_VARIABLE)
    if not chosen:
        raise ConfigurationError(
            f"No shared world is named. Add --state postgresql://host/db?world=NAME, or set {SHARED_VARIABLE}."
        )
    return WorldAddress.from_text(chosen)


@click.group()
def fleet() -> None:
    """Share one world among many machines.

    \b
    Examples:
      skillkit fleet init --state 'postgresql://db.example.com/skills?world=acme'
    """


@fleet.command("init")
@click.option("--most-running", type=click.IntRange(min=0), help="Runs of this world at once, on all workers; 0: any.")
@click.option("--most-queued", type=click.IntRange(min=1), help="Runs that may wait; more are refused.")
@state_option
@json_option
def init_command(
    most_running: int | None,
    most_queued: int | None,
    state_dir: Path | None,  # noqa: ARG001 - beside --state
    as_json: bool,
) -> None:
    """Make the schema and the roles of a world, or bring an older one up to date.

    Needs a login that may create schemas and roles. What each role may not do, the database refuses, whatever program
    asks for it.

    \b
    Examples:
      skillkit fleet init --state 'postgresql://db.example.com/skills?world=acme'
      skillkit fleet init --most-running 50 --most-queued 1000
    """
    address = _address()
    before = make_world(address)
    given = {"most_running": most_running, "most_queued": most_queued}
    set_limits(address, {name: number for name, number in given.items() if number is not None})
    grants = {address.role(role): WHAT_FOR[role] for role in ROLES}
    if as_json:
        echo_json(world=address.world, place=address.shown, was_new=before == 0, roles=grants)
        return
    click.echo(f"The world {address.world} is {'made' if before == 0 else 'up to date'}: {address.shown}")
    click.echo("Give each login the roles that it needs, and no more:")
    for role, what in grants.items():
        click.echo(f"  grant {role} to LOGIN;  -- {what}")


@fleet.command("status")
@state_option
@json_option
def status_command(state_dir: Path | None, as_json: bool) -> None:
    """Show the workers of a world and the runs that wait, go on, and ended.

    \b
    Examples:
      skillkit fleet status --state 'postgresql://db.example.com/skills?world=acme'
      skillkit fleet status --json
    """
    from skillkit.cli.output import table
    from skillkit.fleet.status import status_of

    store = SharedStore(_address(), state_folder(state_dir))
    try:
        status = status_of(store)
    finally:
        store.close()
    if as_json:
        workers, queues = ([each._asdict() for each in found] for found in (status.workers, status.queues))
        echo_json(place=store.place, workers=workers, queues=queues, runs=status.runs)
        return
    if status.workers:
        cells = [(each.name, each.doing, each.age, each.tier, ", ".join(each.queues)) for each in status.workers]
        click.echo(table(("WORKER", "RUNS", "SEEN", "WALLS", "QUEUES"), cells, whole="WORKER", spare="QUEUES"))
    else:
        click.echo("No worker of this world is there. Start one: skillkit worker.")
    if status.queues:
        rows = [(each.name, str(each.waiting), f"{each.oldest:.0f} s") for each in status.queues]
        click.echo(table(("QUEUE", "WAITING", "OLDEST"), rows, whole="QUEUE", spare="QUEUE"))
    told = ", ".join(f"{count} {state}" for state, count in status.runs.items())
    click.echo(f"Runs: {told or 'none'}")


@fleet.command("drain")
@click.argument("worker", required=False, default="")
@click.option("--all", "is_all", is_flag=True, help="Every worker of the world.")
@state_option
@json_option
def drain_command(worker: str, is_all: bool, state_dir: Path | None, as_json: bool) -> None:
    """Let a worker end: it takes no more runs, those that go on finish. Needs the role of approvers.

    \b
    Examples:
      skillkit fleet drain host-1234-ab12cd34
      skillkit fleet drain --all
    """
    if bool(worker) is is_all:
        raise click.UsageError("Name one worker, as 'skillkit fleet status' shows it, or add --all.")
    store = SharedStore(_address(), state_folder(state_dir))
    try:
        with store.connection() as connection:
            found = [name for (name,) in connection.execute("select drain_workers(?)", (worker,)).fetchall()]
    finally:
        store.close()
    if not found:
        raise MissingError(f"No worker {worker!r} of this world is there." if worker else "No worker is there.")
    if as_json:
        echo_json(draining=found)
        return
    for name in found:
        click.echo(f"{name} takes no more runs, and ends when those that go on have finished.")


@click.group()
def world() -> None:
    """Move a world to where many machines share it.

    \b
    Examples:
      skillkit world copy --state 'postgresql://db.example.com/skills?world=acme'
    """


@world.command("copy")
@state_option
@json_option
def copy_command(state_dir: Path | None, as_json: bool) -> None:
    """Copy the state folder's world into a shared one that is new: records, approvals, trust, grants and answers.

    The chain of records is checked before and after. The folder stays as it is; use the shared world from then on.

    \b
    Examples:
      skillkit fleet init --state 'postgresql://db.example.com/skills?world=acme'
      skillkit world copy --state 'postgresql://db.example.com/skills?world=acme'
    """
    from skillkit.core.store.shared.copying import copy_world

    source, target = StateStore(state_folder(state_dir)), SharedStore(_address(), state_folder(state_dir))
    try:
        if not source.exists():
            raise MissingError(f"There is no world in {source.folder}. Name the folder with --state-dir.")
        _require_whole(AuditLog(source), source.place)
        copied = copy_world(source, target)
        _require_whole(AuditLog(SharedStore(target.address, source.folder)), target.place)
    finally:
        source.close()
        target.close()
    if as_json:
        echo_json(place=target.place, copied=copied)
        return
    told = ", ".join(f"{count} {name}" for name, count in copied.items())
    click.echo(f"Copied to {target.place}: {told}. The chain of records holds.")
    click.echo(f"From now on: export {SHARED_VARIABLE}='{target.place}'")


def _require_whole(log: AuditLog, place: str) -> None:
    found = log.verify()
    if not found.ok:
        raise ConfigurationError(f"The audit of {place} does not hold: {found.problem} Nothing may be built on it.")
