"""`skillkit home` and `skillkit secret`: what is kept for a skill between its runs: its folder, and its keys unseen."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Unpack

import click

from skillkit.cli.deciding import require_person
from skillkit.cli.options import SKILL, MissingError, Places, json_option, manager_for, roots_options
from skillkit.cli.output import echo_json, label_rows, path_text, screen_width, table
from skillkit.core.manager import SkillManager
from skillkit.core.paths import real_path
from skillkit.core.store.homes import Homes, HomeSize
from skillkit.core.store.secrets import Secrets
from skillkit.core.values.names import grant_command
from skillkit.core.values.text import plural, visible
from skillkit.present.terminal import columns

__all__ = ["home_command", "secret"]


@click.command("home")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@click.option("--open", "opened", is_flag=True, help="Show it in the desktop's file manager.")
@click.option("--clear", "cleared", is_flag=True, help="Remove all that the skill's scripts kept.")
@click.option(
    "--homes",
    "volume",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder of the volume in which workers of a shared world keep homes.",
)
@roots_options
@json_option
def home_command(
    skill_name: str, opened: bool, cleared: bool, volume: Path | None, as_json: bool, **places: Unpack[Places]
) -> None:
    """Show what a skill keeps in its home.

    Inside the walls a skill's scripts have a home folder of their own. It stays between runs, and no other skill
    reaches it. A skill that changed starts with an empty one where you are asked about it.

    \b
    Examples:
      skillkit home grocery-list
      skillkit home grocery-list --open
      skillkit home grocery-list --clear
    """
    if opened and cleared:
        raise click.UsageError("--open and --clear exclude each other.")
    with manager_for(places) as manager:
        limit = manager.flow.policy.limits.home_megabytes
        homes, owner = _homes_in(volume, skill_name, manager) if volume else _homes_here(skill_name, manager)
    name = owner[0]
    home = homes.find(*owner)
    size = homes.measure(home.path) if home else HomeSize(0, 0)
    others = homes.others(*owner)
    if cleared:
        homes.clear(*owner)
    if as_json:
        echo_json(
            skill=name,
            path=path_text(home.path) if home else None,
            files=size.files,
            bytes=size.bytes,
            is_above_limit=size.is_above(limit),
            limit_megabytes=limit,
            others=[{"path": path_text(path), **homes.measure(path)._asdict()} for path in others],
            cleared=cleared,
        )
    elif cleared:
        click.echo(f"Cleared the home of {visible(name)}: {_amount(size)} gone.")
    elif home is None:
        click.echo(f"{visible(name)} has no home yet; its first run inside walls makes one.")
    else:
        _show(home.path, size, limit, others)
    if opened and home is not None:
        _open(home.path)


def _homes_here(skill_name: str, manager: SkillManager) -> tuple[Homes, tuple[str, Path]]:
    skill = manager.load_skill(skill_name)
    return Homes(manager.state_dir), (skill.metadata.name, Path(real_path(skill.base_directory)))


def _homes_in(volume: Path, skill_name: str, manager: SkillManager) -> tuple[Homes, tuple[str, Path]]:
    """In a shared world a skill is known by its name: it need not be on this machine."""
    from skillkit.core.store.shared.postgres import SharedStore

    store = manager.flow.store
    if not isinstance(store, SharedStore):
        raise click.UsageError("--homes is about the workers of a shared world. Name it with --state.")
    return Homes.in_volume(volume.resolve(), store.address.world), (skill_name, Path())


def _show(path: Path, size: HomeSize, limit: int, others: tuple[Path, ...]) -> None:
    held = f"{_amount(size)} of {limit:,} MB"
    if size.is_above(limit):
        held += "; too much, so that its next run is refused until you make room"
    rows = [("folder", path_text(path)), ("holds", held)]
    beside = [f"{path_text(each)}  {_amount(Homes.measure(each))}" for each in others]
    rows += label_rows("set aside", beside)
    click.echo(visible("\n".join(columns(rows, screen_width(), indent=""))))


def _amount(size: HomeSize) -> str:
    return f"{plural(size.files, 'file')}, {size.megabytes:,.1f} MB"


def _open(path: Path) -> None:
    from skillkit.web.desktop import open_browser

    if not open_browser(path.as_uri()):
        click.echo("skillkit: nothing here can show a folder; it is named above.", err=True)


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
    require_person(None, "secret set")
    if sys.stdin.isatty():
        value = click.prompt(f"Value of {visible(name)}", hide_input=True, err=True)
    else:
        value = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    place = Secrets().keep(skill_name, name, value)
    if as_json:
        echo_json(kept={"skill": skill_name, "name": name, "place": place})
    else:
        click.echo(f"Kept {visible(name)} for {visible(skill_name)} in the {place}.")
        click.echo(f"hint: {grant_command(visible(skill_name))} --secret {visible(name)}", err=True)


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
