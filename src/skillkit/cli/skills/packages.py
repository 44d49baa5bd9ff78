"""`skillkit packages`: environments of prepared packages: which there are, whose they are, and what can go."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Unpack

import click

from skillkit.cli.options import SKILL, MissingError, Places, any_state_option, json_option, manager_for, roots_options
from skillkit.cli.output import echo_json, table
from skillkit.core.store.environments import Environment, Environments
from skillkit.core.store.locks import ApprovedLocks
from skillkit.core.store.state import state_folder
from skillkit.core.values.text import plural, visible

__all__ = ["packages"]

DAY = 86_400
KEY_CHARACTERS = 12
MEGABYTE = 1_000_000


@click.group("packages")
def packages() -> None:
    """See and remove packages that were prepared for skills.

    \b
    Examples:
      skillkit packages list
      skillkit packages remove pdf-tools
      skillkit packages prune
    """


@packages.command("list")
@any_state_option
@json_option
def list_packages(state_dir: Path | None, as_json: bool) -> None:
    """List every environment with its size, its age and the skills that use it.

    \b
    Examples:
      skillkit packages list
      skillkit packages list --json
    """
    store = Environments(state_folder(state_dir))
    users = _users(store)
    built = store.all_built()
    if as_json:
        echo_json(environments=[_structure(each, users.get(each.mark.key, [])) for each in built])
        return
    if not built:
        click.echo("No packages are prepared.")
        return
    rows = [
        (
            each.mark.key[:KEY_CHARACTERS],
            each.mark.kind,
            f"{each.mark.size / MEGABYTE:,.1f} MB",
            plural(int((time.time() - each.mark.built_at) / DAY), "day"),
            visible(", ".join(users.get(each.mark.key, [])) or "-"),
            visible(", ".join(each.mark.packages)),
        )
        for each in built
    ]
    click.echo(table(("KEY", "FOR", "SIZE", "AGE", "SKILLS", "PACKAGES"), rows, whole="SKILLS", spare="KEY"))


@packages.command("remove")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@roots_options
@json_option
def remove_packages(skill_name: str, as_json: bool, **places: Unpack[Places]) -> None:
    """Forget what was prepared for a skill; an environment that no other skill uses goes.

    In a shared world what was approved for all machines is taken back too.

    \b
    Examples:
      skillkit packages remove pdf-tools
    """
    with manager_for(places) as manager:
        skill = manager.load_skill(skill_name)
        store, world = Environments(manager.state_dir), manager.flow.store
        gone = _taken_back(ApprovedLocks(world), skill.metadata.name) if world.is_shared else 0
    approved = store.approved(skill.metadata.name, skill.base_directory)
    if approved is None and not gone:
        raise MissingError(f"No packages are prepared for {visible(skill_name)}.")
    store.forget(skill.metadata.name, skill.base_directory)
    removed = store.prune()
    if as_json:
        echo_json(forgot=skill.metadata.name, **_removal(removed))
    else:
        click.echo(f"Forgot the packages of {visible(skill_name)}. {_removed(removed)}")


@packages.command("prune")
@any_state_option
@json_option
def prune_packages(state_dir: Path | None, as_json: bool) -> None:
    """Remove environments that no skill uses any more, that somebody altered, or that were never finished.

    \b
    Examples:
      skillkit packages prune
      skillkit packages prune --json
    """
    store = Environments(state_folder(state_dir))
    if os.path.isdir(store.folder):
        from skillkit.packages.workshop import remove_leftovers

        remove_leftovers(store)
    removed = store.prune(with_gone_skills=True)
    if as_json:
        echo_json(**_removal(removed))
    else:
        click.echo(_removed(removed))


def _taken_back(locks: ApprovedLocks, skill: str) -> int:
    if locks.may_keep():
        return locks.forget(skill)
    click.echo("hint: for other machines they stay approved; a login with the role approver takes that back", err=True)
    return 0


def _users(store: Environments) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for approved in store.all_approved():
        for share in approved.shares.values():
            users.setdefault(share.key, []).append(approved.skill)
    return users


def _removed(gone: Mapping[str, int]) -> str:
    return f"Removed {plural(len(gone), 'environment')}, {sum(gone.values()) / MEGABYTE:,.1f} MB."


def _removal(gone: Mapping[str, int]) -> dict[str, object]:
    return {"removed": [{"key": key, "bytes": size} for key, size in gone.items()]}


def _structure(each: Environment, skills: list[str]) -> dict[str, object]:
    mark = each.mark
    return {
        "key": mark.key,
        "kind": mark.kind,
        "bytes": mark.size,
        "built_at": mark.built_at,
        "interpreter": mark.interpreter,
        "packages": list(mark.packages),
        "skills": skills,
    }
