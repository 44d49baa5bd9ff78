"""`skillkit grant`: what a person gives one skill beyond the policy, for exactly its present content."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack

import click

from skillkit.cli.deciding import require_person
from skillkit.cli.options import (
    SKILL,
    MissingError,
    json_option,
    manager_for,
    require_yes,
    roots_options,
    state_option,
)
from skillkit.cli.output import beside, echo_json, moment_text, table
from skillkit.core.exceptions import ConfigurationError, SkillKitError
from skillkit.core.flow.granting import warning_of
from skillkit.core.models.digest import manifest_of
from skillkit.core.resolve import require_grantable
from skillkit.core.store.opening import open_store
from skillkit.core.store.skills import KeptGrant, StandingGrants
from skillkit.core.store.state import state_folder
from skillkit.core.store.trust import ANYWHERE
from skillkit.core.values.grants import grant_label, named_grants
from skillkit.core.values.needs import Grant
from skillkit.core.values.text import visible

__all__ = ["grant"]

CHANNEL = "cli"
SHORT_DIGEST = 12

_HEADINGS = ("SKILL", "GRANT", "NOW", "SINCE (UTC)", "FOLDER")
Decorated = TypeVar("Decorated", bound=Callable[..., object])


class _GrantGroup(click.Group):
    """`skillkit grant SKILL ...` grants; a word that names a command is that command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_help = bool(args) and args[0] in ctx.help_option_names
        if args and args[0] not in self.commands and not is_help:
            args = ["add", *args]
        return super().parse_args(ctx, args)


class _Named(TypedDict):
    """What `grant_options` give."""

    hosts: tuple[str, ...]
    private: bool
    secrets: tuple[str, ...]
    variables: tuple[str, ...]
    read: tuple[str, ...]
    write: tuple[str, ...]
    working_directory: str | None
    interpreters: tuple[str, ...]


GIVING = (
    "Let it reach this host.",
    "The hosts may have private addresses.",
    "Pass it this key, masked wherever it shows.",
    "Pass it this variable, which is no key.",
    "Let it read this.",
    "Let it read and write this.",
    "Start it there.",
    "Run it with this: bun, deno, tsx, pwsh.",
)
TAKING = (
    "Let it reach this host no more.",
    "Of the hosts, those that may have private addresses.",
    "Pass it this key no more.",
    "Pass it this variable no more.",
    "Let it read this no more.",
    "Let it write this no more.",
    "Start it there no more.",
    "Run it with this no more.",
)


def grant_options(helps: Sequence[str]) -> Callable[[Decorated], Decorated]:
    """What is granted or taken back, one thing at a time."""
    many: dict[str, Any] = {"multiple": True}
    host, private, secret, variable, read, write, directory, interpreter = helps
    options = (
        click.option("--interpreter", "interpreters", help=interpreter, **many),
        click.option("--working-directory", type=click.Choice(["skill", "workspace", "auto"]), help=directory),
        click.option("--write", metavar="PATH", help=write, **many),
        click.option("--read", metavar="PATH", help=read, **many),
        click.option("--variable", "variables", metavar="NAME", help=variable, **many),
        click.option("--secret", "secrets", metavar="NAME", help=secret, **many),
        click.option("--private", is_flag=True, help=private),
        click.option("--host", "hosts", metavar="HOST", help=host, **many),
    )

    def decorated(function: Decorated) -> Decorated:
        for option in options:
            function = option(function)
        return function

    return decorated


@click.group("grant", cls=_GrantGroup, no_args_is_help=True)
def grant() -> None:
    """Give a skill what it needs beyond the policy, as it is now.

    A grant is for one skill, in one folder, with exactly its present content. Any change to any of its files ends
    it, and the next question shows what it had. What a grant opens is shown in every question.

    \b
    Examples:
      skillkit grant weather --host api.example.com       let it reach this host
      skillkit grant weather --secret WEATHER_API_KEY     pass it this key
      skillkit grant report --read ~/data --variable TEAM
      skillkit grant list                                 who has what
      skillkit grant remove weather                       take it all back
    """


@grant.command("add", short_help="Give a skill what it needs; 'add' may be left out.")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@grant_options(GIVING)
@click.option("--yes", "-y", "is_sure", is_flag=True, help="Do not ask.")
@roots_options
@json_option
def add_command(skill_name: str, is_sure: bool, as_json: bool, **given: Any) -> None:  # noqa: ANN401 - two kinds of options
    """Give a skill what it needs; the word 'add' may be left out.

    Keys, closed places such as ~/.ssh, and names that steer what a program loads can never be given as a path or a
    variable. A key's value comes from your environment, a secrets folder, or 'skillkit secret set'.

    \b
    Examples:
      skillkit grant weather --host api.example.com --secret WEATHER_API_KEY
      skillkit grant report --write ./out --yes
    """
    named: _Named = {key: given.pop(key) for key in _Named.__annotations__}  # type: ignore[assignment]
    require_person(given.get("state_dir"), "grant")
    with manager_for(given) as manager:  # type: ignore[arg-type]  # what is left are places
        wanted = [require_grantable(each, manager.state_dir) for each in _named_grants(named)]
        skill = manager.load_skill(skill_name)
        digest = manifest_of(skill.base_directory).digest
        _show_what(skill.name, skill.base_directory, digest, wanted)
        if not is_sure:
            require_yes("Grant this to it as it is now?", "Nothing is granted")
        if manifest_of(skill.base_directory).digest != digest:
            raise ConfigurationError(f"{skill.name!r} changed meanwhile, so nothing is granted. Look at it again.")
        kept = manager.flow.granting.give(skill, wanted, CHANNEL)
    if as_json:
        echo_json(granted=list(map(_structure, kept)))
    else:
        for each in kept:
            click.echo(f"Granted to {visible(each.skill)}: {visible(grant_label(each.grant))}.")


def _named_grants(named: _Named) -> tuple[Grant, ...]:
    if named["private"] and not named["hosts"]:
        raise click.UsageError("--private is for hosts; name one with --host.")
    grants = named_grants(**named)
    if not grants:
        raise click.UsageError("Say what is granted: --host, --secret, --variable, --read, --write, ...")
    return grants


def _show_what(name: str, folder: Path, digest: str, wanted: Sequence[Grant]) -> None:
    lines = [("skill", name), ("folder", str(folder)), ("digest", digest)]
    for each in wanted:
        lines.append(("grant", grant_label(each)))
        if told := warning_of(each):
            lines.append(("", told))
    click.echo("\n".join(beside(f"  {label:<8}", text) for label, text in lines), err=True)


@grant.command("list")
@state_option
@json_option
def list_command(state_dir: Path | None, as_json: bool) -> None:
    """List what skills were given, and whether it still holds.

    A grant to a skill that changed since does not hold; it is kept to show what the skill had.

    \b
    Examples:
      skillkit grant list
      skillkit grant list --json
    """
    store = open_store(state_folder(state_dir))
    found = StandingGrants(store).all()
    store.close()
    if as_json:
        echo_json(grants=[{**_structure(each), "now": _state_of(each)} for each in found])
    elif found:
        click.echo(table(_HEADINGS, map(_cells, found), whole="GRANT"))
    else:
        click.echo(f"Nothing is granted in {visible(store.place)}.", err=True)
        click.echo("hint: skillkit grant SKILL --secret NAME", err=True)


@grant.command("remove")
@click.argument("skill_name", metavar="SKILL")
@grant_options(TAKING)
@click.option("--folder", type=click.Path(), help="Only of the one from this folder.")
@state_option
@json_option
def remove_command(
    skill_name: str, folder: str | None, state_dir: Path | None, as_json: bool, **named: Unpack[_Named]
) -> None:
    """Take grants back, without any named all of them; the skill need not exist any more.

    \b
    Examples:
      skillkit grant remove weather
      skillkit grant remove weather --secret WEATHER_API_KEY
    """
    wanted = _as_kept(named_grants(**named)) or None
    store = open_store(state_folder(state_dir))
    place = None if folder is None else Path(folder).absolute()
    gone = StandingGrants(store).remove(skill_name, wanted, folder=place)
    store.close()
    if not gone:
        what = "has no such grant" if wanted else "has no grant"
        raise MissingError(f"{skill_name!r} {what} here. 'skillkit grant list' shows what there is.")
    if as_json:
        echo_json(removed=list(map(_structure, gone)))
    else:
        for each in gone:
            click.echo(f"No longer granted to {visible(each.skill)}: {visible(grant_label(each.grant))}.")


def _as_kept(grants: Sequence[Grant]) -> list[Grant]:
    """By the names that were typed, and as they are kept where that can be told; what cannot be given can be taken."""
    found = list(grants)
    for each in grants:
        if each.kind in ("read", "write"):
            found.append(Grant(each.kind, str(Path(each.name).expanduser().resolve())))
        elif each.kind == "host":
            found += [Grant("host", each.name.lower(), is_private) for is_private in (False, True)]
    return found


def _state_of(kept: KeptGrant) -> str:
    """The skill in the folder now, compared with what was granted to."""
    folder = Path(kept.folder)
    if kept.folder.startswith(ANYWHERE):
        return "holds"
    if not os.path.isdir(folder):
        return "gone"
    try:
        is_same = manifest_of(folder).digest == kept.digest
    except (OSError, SkillKitError):
        return "unreadable"
    if not is_same:
        return "changed"
    return "holds"


def _structure(kept: KeptGrant) -> dict[str, Any]:
    return {**asdict(kept), "grant": kept.grant.id, "kind": kept.grant.kind, "name": kept.grant.name}


def _cells(kept: KeptGrant) -> tuple[str, ...]:
    return kept.skill, kept.grant.id, _state_of(kept), moment_text(kept.granted_at), kept.folder
