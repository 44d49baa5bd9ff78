"""`skillkit list`: what is installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Unpack

import click

from skillkit.cli.options import Places, json_option, manager_for, roots_options
from skillkit.cli.output import diagnostic_structure, echo_json, screen_width, skill_structure
from skillkit.core.manager import SkillManager
from skillkit.core.models import SkillMetadata
from skillkit.core.values.skills import Diagnostic
from skillkit.core.values.text import plural, visible
from skillkit.present.terminal import columns

__all__ = ["list_command"]

MANY_FOLDERS = 2_000


@click.command("list")
@roots_options
@click.option("--problems", "with_problems", is_flag=True, help="Show every problem in full.")
@click.option("--all", "include_shadowed", is_flag=True, help="Also skills whose name another one has.")
@json_option
def list_command(
    with_problems: bool,
    include_shadowed: bool,
    as_json: bool,
    **places: Unpack[Places],
) -> None:
    """List the skills that are installed here.

    \b
    Examples:
      skillkit list
      skillkit list --skills ./skills --problems
      skillkit list --json | jq -r '.skills[].name'
    """
    manager = manager_for(places)
    with _folder_progress() as on_progress:
        manager.discover(on_progress)
    found = manager.list_skills(include_shadowed=include_shadowed)
    diagnostics = manager.diagnostics
    if as_json:
        echo_json(
            skills=[skill_structure(skill) for skill in found],
            diagnostics=[diagnostic_structure(item) for item in diagnostics],
        )
        return
    _show_skills(found, manager)
    _show_problems(diagnostics, in_full=with_problems)


@contextmanager
def _folder_progress() -> Iterator[Callable[[int], None] | None]:
    """Takes the number of folders seen so far and shows it once they are many, on a line that vanishes at the end.

    None when nobody would see it.
    """
    if not sys.stderr.isatty():
        yield None
        return
    line = ""

    def report(folders: int) -> None:
        nonlocal line
        if folders >= MANY_FOLDERS:
            line = f"Looking for skills: {folders:,} folders"
            click.echo(f"\r{line}", nl=False, err=True)

    try:
        yield report
    finally:
        if line:
            click.echo(f"\r{' ' * len(line)}\r", nl=False, err=True)


def _show_skills(found: list[SkillMetadata], manager: SkillManager) -> None:
    if not found:
        places = (
            ", ".join(str(root.path) for root in manager.roots) or "./skills, ./.claude/skills, ~/.claude/skills ..."
        )
        click.echo(f"No skills found. Looked in: {visible(places)}")
        click.echo("hint: 'skillkit new NAME' makes one; --skills FOLDER looks elsewhere.", err=True)
        return
    seen = set[str]()
    rows = []
    for skill in found:
        rows.append((skill.qualified_name if skill.name in seen else skill.name, skill.source, skill.description))
        seen.add(skill.name)
    header, *lines = columns([("SKILL", "FROM", "DESCRIPTION"), *rows], screen_width())
    click.secho(header, bold=True)
    click.echo("\n".join(lines))
    click.echo(f"\n{plural(len(found), 'skill')}")


def _show_problems(diagnostics: list[Diagnostic], *, in_full: bool) -> None:
    if in_full:
        for item in diagnostics:
            click.echo(visible(str(item)), err=True)
        return
    skipped = sum(item.severity == "error" for item in diagnostics)
    noted = len(diagnostics) - skipped
    counts = [f"{skipped} skipped"] * (skipped > 0) + [f"{noted} with remarks"] * (noted > 0)
    if counts:
        click.echo(f"{', '.join(counts)}; '--problems' says why.", err=True)
