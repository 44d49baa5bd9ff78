"""`skillkit list`: what is installed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Unpack

import click

from skillkit.cli.options import Places, json_option, manager_for, roots_options
from skillkit.cli.output import (
    PassingLine,
    diagnostic_structure,
    echo_json,
    path_text,
    screen_width,
    skill_structure,
)
from skillkit.core.manager import SkillManager
from skillkit.core.models import SkillMetadata
from skillkit.core.values.skills import Diagnostic
from skillkit.core.values.text import grouped, plural, visible
from skillkit.present.terminal import columns, width_of

__all__ = ["list_command"]

MANY_FOLDERS = 2_000
HOW_TO_GET_ONE = (
    "hint: 'skillkit add OWNER/REPO' gets some, 'skillkit new NAME' makes one, 'skillkit demo --copy skills' copies "
    "examples; --skills FOLDER looks elsewhere."
)


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
    with PassingLine() as line:
        manager.discover(partial(_show_many, line))
    found = manager.skill_places(include_shadowed=include_shadowed)
    diagnostics = manager.diagnostics
    if as_json:
        echo_json(
            skills=[{**skill_structure(places[0]), **_place_structure(name, places)} for name, places in found.items()],
            diagnostics=[diagnostic_structure(item) for item in diagnostics],
        )
        return
    _show_skills(found, manager)
    _show_problems(diagnostics, in_full=with_problems)


def _show_many(line: PassingLine, folders: int) -> None:
    if folders >= MANY_FOLDERS:
        line.show(f"Looking for skills: {grouped(folders)} folders")


def _place_structure(name: str, places: Sequence[SkillMetadata]) -> dict[str, Any]:
    """The name that opens it, and every folder that has it."""
    listed = [{"path": path_text(each.skill_path), "source": each.source, "host": each.host or None} for each in places]
    return {"opens_as": name, "places": listed}


def _show_skills(found: Mapping[str, Sequence[SkillMetadata]], manager: SkillManager) -> None:
    if not found:
        looked_in = (
            ", ".join(str(root.path) for root in manager.roots) or "./skills, ./.agents/skills, ~/.claude/skills ..."
        )
        click.echo(f"No skills found. Looked in: {visible(looked_in)}")
        click.echo(HOW_TO_GET_ONE, err=True)
        return
    rows = [("SKILL", "FROM", "HOST", "DESCRIPTION")]
    for name, places in found.items():
        origins, hosts = _each_once(each.source for each in places), _each_once(each.host for each in places)
        rows.append((visible(name), origins, hosts, places[0].description))
    has_hosts = any(hosts for _, _, hosts, _ in rows[1:])
    _show_table(rows if has_hosts else [(name, origin, text) for name, origin, _, text in rows])
    click.echo(f"\n{plural(len(found), 'skill')}")


def _show_table(rows: Sequence[Sequence[str]]) -> None:
    """No name is cut, because it opens the skill: a long one has a line of its own above the rest of its row."""
    width = screen_width()
    long = {number for number, row in enumerate(rows) if width_of(row[0]) > width // 3}
    cells = [("", *row[1:]) if number in long else row for number, row in enumerate(rows)]
    for number, line in enumerate(columns(cells, width, whole=[0])):
        if number in long:
            click.echo(f"  {rows[number][0]}")
        click.secho(line, bold=True if number == 0 else None)


def _each_once(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(text for text in texts if text))


def _show_problems(diagnostics: list[Diagnostic], *, in_full: bool) -> None:
    if in_full:
        for item in diagnostics:
            click.echo(visible(str(item)), err=True)
        return
    skipped = sum(item.severity == "error" for item in diagnostics)
    noted = len(diagnostics) - skipped
    counts = [f"{grouped(skipped)} skipped"] * (skipped > 0) + [f"{grouped(noted)} with remarks"] * (noted > 0)
    if counts:
        click.echo(f"{', '.join(counts)}; '--problems' says why.", err=True)
