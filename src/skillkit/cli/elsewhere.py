"""What commands are given about runs elsewhere, and what they make of it: the runner, with its broker and volumes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from skillkit.cli.options import set_while_it_runs

__all__ = ["fleet_options", "runner_here", "volumes_from"]

BROKER_VARIABLE = "SKILLKIT_BROKER"
HOMES_VARIABLE = "SKILLKIT_HOMES"
VOLUMES = "skillkit.volumes"
"""Where a command's context holds the volumes that were named."""

Decorated = TypeVar("Decorated", bound=Callable[..., object])


def _use_broker(ctx: click.Context, _: click.Parameter, address: str | None) -> None:
    if address is not None and not ctx.resilient_parsing:
        set_while_it_runs(ctx, BROKER_VARIABLE, address)


class _Volume(click.ParamType[str]):
    """NAME=FOLDER; in a variable several, separated as paths are."""

    name = "name=folder"
    envvar_list_splitter = os.pathsep


def volumes_from(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, Path]:
    """Folders by the names that all machines know them by."""
    found: dict[str, Path] = {}
    for each in given:
        name, separator, place = each.partition("=")
        if not name or not separator or "/" in name or not os.path.isdir(place):
            raise click.BadParameter(f"{each!r} is no volume. Write NAME=FOLDER, with a folder that is there.")
        if name in found:
            raise click.BadParameter(f"The volume {name!r} is named twice. Give each folder a name of its own.")
        found[name] = Path(place)
    return found


def _use_volumes(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> None:
    if given and not ctx.resilient_parsing:
        is_written = ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE
        ctx.meta[VOLUMES] = (volumes_from(ctx, param, given), is_written)


def fleet_options(function: Decorated) -> Decorated:
    """Where scripts run elsewhere: through which broker, and which folders are there too."""
    broker = click.option(
        "--broker",
        metavar="ADDRESS",
        expose_value=False,
        callback=_use_broker,
        help="Run scripts on workers, through this broker: redis://..., amqp://...",
    )
    volumes = click.option(
        "--volume",
        "volumes",
        multiple=True,
        type=_Volume(),
        metavar="NAME=FOLDER",
        envvar="SKILLKIT_VOLUMES",
        expose_value=False,
        callback=_use_volumes,
        help="A folder that each worker maps under this name: a workspace in it is there too (repeatable).",
    )
    return broker(volumes(function))


def runner_here(**sending: Any) -> Any:  # noqa: ANN401 - a CeleryRunner's own; heavy, and most have none
    """What sends runs to workers, where a broker is named; else None, and they happen here."""
    broker, ctx = os.environ.get(BROKER_VARIABLE), click.get_current_context(silent=True)
    volumes, is_written = ctx.meta.get(VOLUMES, ({}, False)) if ctx is not None else ({}, False)
    if not broker:
        if is_written:
            raise click.UsageError("--volume is for runs on workers. Name a --broker too, or leave it out.")
        return None
    from skillkit.fleet.runner import CeleryRunner

    return CeleryRunner(broker, homes=os.environ.get(HOMES_VARIABLE, ""), volumes=volumes, **sending)
