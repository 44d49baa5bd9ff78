"""`skillkit validate`: whether skills keep to the open standard."""

from __future__ import annotations

from pathlib import Path

import click

from skillkit.cli.options import json_option
from skillkit.cli.output import diagnostic_structure, echo_json
from skillkit.core.find.validation import skill_files_and_problems, validate_skill_file
from skillkit.core.values.skills import Diagnostic
from skillkit.core.values.text import grouped, plural, visible

__all__ = ["validate_command"]


@click.command("validate", short_help="Check skills against the rules of agentskills.io.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@json_option
@click.pass_context
def validate_command(ctx: click.Context, paths: tuple[Path, ...], as_json: bool) -> None:
    """Check skills against the rules of agentskills.io, all problems at once.

    PATH is a skill's folder, a SKILL.md, or a folder of skills. Exit code 1 when there are errors;
    warnings alone give 0. Loading is more tolerant than this.

    \b
    Examples:
      skillkit validate ./my-skill
      skillkit validate skills/ --json
    """
    searches = [skill_files_and_problems(path) for path in paths]
    files = list(dict.fromkeys(file for found, _ in searches for file in found))
    problems = list(dict.fromkeys(problem for _, met in searches for problem in met))
    problems += [problem for file in files for problem in validate_skill_file(file)]
    errors = sum(problem.severity == "error" for problem in problems)
    if as_json:
        echo_json(
            checked=len(files),
            errors=errors,
            warnings=len(problems) - errors,
            problems=[diagnostic_structure(problem) for problem in problems],
        )
    else:
        _show(problems, len(files), errors)
    ctx.exit(1 if errors else 0)


def _show(problems: list[Diagnostic], checked: int, errors: int) -> None:
    for problem in problems:
        place, _, rest = str(problem).partition(f": {problem.severity}: ")
        colour = "red" if problem.severity == "error" else "yellow"
        click.echo(f"{visible(place)}: {click.style(problem.severity, fg=colour)}: {visible(rest)}")
    summary = f"{grouped(checked)} checked, {plural(errors, 'error')}, {plural(len(problems) - errors, 'warning')}"
    click.secho(summary, bold=True, fg="red" if errors else "green")
