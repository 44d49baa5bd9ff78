"""`skillkit doctor`: which walls, interpreters and channels this machine has, what is missing, how to get it."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import click

from skillkit.cli.channels import ChannelHealth, channels
from skillkit.cli.options import any_state_option, beside, echo_json, json_option
from skillkit.core.health import InterpreterHealth, TierHealth, interpreters, state_problem, tiers
from skillkit.core.state import state_folder
from skillkit.present.terminal import visible

__all__ = ["doctor_command"]

AS_ROOT = "You are root: the limit of processes does not hold. Better run skillkit as an ordinary user."


@click.command("doctor", short_help="Say what this machine can do, and what is missing.")
@any_state_option
@json_option
@click.pass_context
def doctor_command(ctx: click.Context, state_dir: Path | None, as_json: bool) -> None:
    """Say what this machine can do, what is missing and how to get it.

    Exit code 1 when scripts would run without walls, or their runs could not be recorded.

    \b
    Examples:
      skillkit doctor
      skillkit doctor --json
    """
    walls, programs, folder = tiers(), interpreters(), state_folder(state_dir)
    problem, asking = state_problem(folder), channels(folder)
    if as_json:
        echo_json(
            walls=[asdict(tier) for tier in walls],
            interpreters=[asdict(program) for program in programs],
            channels=[asdict(channel) for channel in asking],
            state={"folder": str(folder), "problem": problem},
            is_root=is_root(),
        )
    else:
        show_walls(walls)
        show_programs(programs)
        show_channels(asking)
        show_state(folder, problem)
    ctx.exit(0 if any(tier.works for tier in walls) and not problem else 1)


def show_walls(walls: list[TierHealth]) -> None:
    heading("Walls around scripts, strongest first")
    for tier in walls:
        click.echo(f"  {mark(ok=tier.works)} {tier.name}")
        for name, value in tier.layers:
            click.echo(beside(f"      {name:<10} ", value))
        for remark in tier.remarks:
            click.echo(beside("      note: ", remark))
    if not any(tier.works for tier in walls):
        click.echo("  None works here: a policy that requires walls refuses to run anything.")


def show_programs(programs: list[InterpreterHealth]) -> None:
    heading("Interpreters")
    for program in programs:
        label = f"  {mark(ok=bool(program.path))} {program.name:<8} "
        found = visible(f"{program.version:<10} {program.path}")
        click.echo(f"{label}{found}" if program.path else beside(label, program.remedy))


def show_channels(asking: list[ChannelHealth]) -> None:
    heading("Ways to ask you before a script runs")
    for channel in asking:
        click.echo(beside(f"  {mark(ok=channel.works)} {channel.name:<13} ", channel.remark))


def show_state(folder: Path, problem: str) -> None:
    heading("State")
    click.echo(f"  {mark(ok=not problem)} {visible(str(folder))}")
    if problem:
        click.echo(beside("      ", problem))
    if is_root():
        click.echo()
        click.echo(beside("", AS_ROOT))


def heading(title: str) -> None:
    click.secho(f"\n{title}", bold=True)


def mark(*, ok: bool) -> str:
    return click.style("+", fg="green") if ok else click.style("-", fg="red")


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
