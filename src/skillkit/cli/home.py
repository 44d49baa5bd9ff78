"""`skillkit home`: the private folder that a skill's scripts keep between their runs."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from skillkit.cli.options import SKILL, Places, json_option, manager_for, roots_options
from skillkit.cli.output import echo_json, label_rows, path_text, screen_width
from skillkit.core.paths import real_path
from skillkit.core.store.homes import Homes, HomeSize
from skillkit.core.values.text import plural, visible
from skillkit.present.terminal import columns

__all__ = ["home_command"]


@click.command("home")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@click.option("--open", "opened", is_flag=True, help="Show it in the desktop's file manager.")
@click.option("--clear", "cleared", is_flag=True, help="Remove all that the skill's scripts kept.")
@roots_options
@json_option
def home_command(skill_name: str, opened: bool, cleared: bool, as_json: bool, **places: Unpack[Places]) -> None:
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
        skill = manager.load_skill(skill_name)
        homes, limit = Homes(manager.state_dir), manager.flow.policy.limits.home_megabytes
    owner = (skill.metadata.name, Path(real_path(skill.base_directory)))
    home = homes.find(*owner)
    size = homes.measure(home.path) if home else HomeSize(0, 0)
    others = homes.others(*owner)
    if cleared:
        homes.clear(*owner)
    if as_json:
        echo_json(
            skill=skill.metadata.name,
            path=path_text(home.path) if home else None,
            files=size.files,
            bytes=size.bytes,
            is_above_limit=size.is_above(limit),
            limit_megabytes=limit,
            others=[{"path": path_text(path), **homes.measure(path)._asdict()} for path in others],
            cleared=cleared,
        )
    elif cleared:
        click.echo(f"Cleared the home of {visible(skill.metadata.name)}: {_amount(size)} gone.")
    elif home is None:
        click.echo(f"{visible(skill.metadata.name)} has no home yet; its first run inside walls makes one.")
    else:
        _show(home.path, size, limit, others)
    if opened and home is not None:
        _open(home.path)


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
