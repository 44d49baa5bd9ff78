"""`skillkit config`: every setting that holds here, with the line it stands on."""

from __future__ import annotations

import os
from pathlib import Path

import click

from skillkit.cli.options import json_option, settings_for
from skillkit.cli.output import echo_json
from skillkit.config import (
    Origin,
    Place,
    current_folder,
    project_file,
    searched_folders,
    user_file_place,
)
from skillkit.config.keys import toml_text
from skillkit.core.values.text import on_one_line, visible
from skillkit.present.terminal import width_of

__all__ = ["config"]

WIDEST_VALUE = 40


@click.group("config", short_help="Show the settings that hold here, and their origin.")
def config() -> None:
    """Show the settings that hold in this folder, and where they come from.

    \b
    Examples:
      skillkit config show              every setting, as TOML
      skillkit config path              the files that are read
    """


@config.command("show")
@json_option
def show_command(as_json: bool) -> None:
    """Print every setting with its value and its origin.

    The output is TOML that a file could hold.

    \b
    Examples:
      skillkit config show
      skillkit config show --json | jq '.settings."policy.approval"'
    """
    settings = settings_for({})
    if as_json:
        echo_json(
            profile=settings.profile,
            is_trusted_project=settings.is_trusted_project,
            settings={key: _origin_structure(origin) for key, origin in settings.origins.items()},
        )
    else:
        click.echo("\n".join(_aligned(settings.origins)))


@config.command("path")
@json_option
def path_command(as_json: bool) -> None:
    """Print the files that are read, also when they cannot be understood.

    \b
    Examples:
      skillkit config path
      skillkit config path --json
    """
    start = current_folder()
    user, _ = user_file_place(os.environ)
    project = project_file(start)
    searched = searched_folders(start)
    if as_json:
        echo_json(
            user={"file": user, "exists": user is not None and os.path.lexists(user)},
            project={"file": project, "searched": [str(folder) for folder in searched]},
        )
        return
    click.echo(f"user     {_described(user)}")
    if project:
        click.echo(f"project  {_described(project)}")
    else:
        places = ", ".join(map(str, searched)) or "nowhere: the search leaves out the home folder and what is above it"
        click.echo(f"project  none; looked in {on_one_line(places)}")


def _described(file: Path | None) -> str:
    if file is None:
        return "none; you have no home folder"
    return on_one_line(str(file)) + ("" if os.path.lexists(file) else " (not there)")


def _aligned(origins: dict[str, Origin]) -> list[str]:
    values = {key: visible(toml_text(origin.value)) for key, origin in origins.items()}
    key_width = max(map(len, values))
    value_width = min(WIDEST_VALUE, max(map(width_of, values.values())))
    return [
        f"{key:<{key_width}} = {value}{' ' * (value_width - width_of(value))}  # {on_one_line(str(origins[key]))}"
        for key, value in values.items()
    ]


def _origin_structure(origin: Origin) -> dict[str, object]:
    return {"value": origin.value, "from": [_place_structure(place) for place in origin.places]}


def _place_structure(place: Place) -> dict[str, object]:
    return {"kind": place.kind, "file": place.file and str(place.file), "line": place.line}
