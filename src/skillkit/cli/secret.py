"""`skillkit secret`: keys of skills, kept in the system's keyring or a folder of the user's; no value is ever shown."""

from __future__ import annotations

import sys

import click

from skillkit.cli.options import SKILL, MissingError, json_option
from skillkit.cli.output import echo_json, table
from skillkit.core.store.secrets import Secrets
from skillkit.core.values.text import visible

__all__ = ["secret"]

_HEADINGS = ("SKILL", "NAME", "KEPT IN")


@click.group("secret")
def secret() -> None:
    """Keep keys for skills; 'skillkit grant' gives one to a skill.

    A value is looked for in your environment, then as the file SKILL/NAME in the folder that SKILLKIT_SECRETS_DIR
    names, then in the system's keyring. Only a skill that was granted the name gets it.

    \b
    Examples:
      skillkit secret set weather WEATHER_API_KEY        type the value
      pass show weather | skillkit secret set weather WEATHER_API_KEY
      skillkit secret list
      skillkit secret remove weather WEATHER_API_KEY
    """


@secret.command("set")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@click.argument("name", metavar="NAME")
@json_option
def set_command(skill_name: str, name: str, as_json: bool) -> None:
    """Keep a key for a skill; its value is typed or piped, never an argument.

    \b
    Examples:
      skillkit secret set weather WEATHER_API_KEY
    """
    if sys.stdin.isatty():
        value = click.prompt(f"Value of {visible(name)}", hide_input=True, err=True)
    else:
        value = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    place = Secrets().keep(skill_name, name, value)
    if as_json:
        echo_json(kept={"skill": skill_name, "name": name, "place": place})
    else:
        click.echo(f"Kept {visible(name)} for {visible(skill_name)} in the {place}.")
        click.echo(f"hint: skillkit grant {visible(skill_name)} --secret {visible(name)}", err=True)


@secret.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the names of keys that are kept, never a value.

    \b
    Examples:
      skillkit secret list
      skillkit secret list --json
    """
    found = Secrets().names()
    if as_json:
        echo_json(secrets=[{"skill": skill, "name": name, "place": place} for skill, name, place in found])
    elif found:
        click.echo(table(_HEADINGS, found))
    else:
        click.echo("No key is kept for a skill.", err=True)
        click.echo("hint: skillkit secret set SKILL NAME", err=True)


@secret.command("remove")
@click.argument("skill_name", metavar="SKILL")
@click.argument("name", metavar="NAME")
@json_option
def remove_command(skill_name: str, name: str, as_json: bool) -> None:
    """Forget a key of a skill, wherever it is kept.

    \b
    Examples:
      skillkit secret remove weather WEATHER_API_KEY
    """
    gone = Secrets().remove(skill_name, name)
    if not gone:
        raise MissingError(f"No key {name!r} is kept for {skill_name!r}. 'skillkit secret list' shows which are.")
    if as_json:
        echo_json(removed={"skill": skill_name, "name": name, "places": gone})
    else:
        click.echo(f"Removed {visible(name)} of {visible(skill_name)} from the {' and the '.join(gone)}.")
