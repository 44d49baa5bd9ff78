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
from skillkit.core.store.postgres import ROLES, SharedStore, WorldAddress, make_world
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
@state_option
@json_option
def init_command(state_dir: Path | None, as_json: bool) -> None:  # noqa: ARG001 - beside --state
    """Make the schema and the roles of a world, or bring an older one up to date.

    Needs a login that may create schemas and roles. What each role may not do, the database refuses, whatever program
    asks for it.

    \b
    Examples:
      skillkit fleet init --state 'postgresql://db.example.com/skills?world=acme'
    """
    address = _address()
    before = make_world(address)
    grants = {address.role(role): WHAT_FOR[role] for role in ROLES}
    if as_json:
        echo_json(world=address.world, place=address.shown, was_new=before == 0, roles=grants)
        return
    click.echo(f"The world {address.world} is {'made' if before == 0 else 'up to date'}: {address.shown}")
    click.echo("Give each login the roles that it needs, and no more:")
    for role, what in grants.items():
        click.echo(f"  grant {role} to LOGIN;  -- {what}")


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
    from skillkit.core.store.copying import copy_world

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
