"""`skillkit new` and `skillkit validate`: a skill is begun that runs, and kept to the open standard."""

from __future__ import annotations

import json
import re
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

import click

from skillkit.cli.options import json_option
from skillkit.cli.output import diagnostic_structure, echo_json
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.find.validation import NAME, NAME_LIMIT, skill_files_and_problems, validate_skill_file
from skillkit.core.paths.files import Folder
from skillkit.core.paths.trees import NewFile, write_tree
from skillkit.core.values.skills import Diagnostic
from skillkit.core.values.text import grouped, plural, visible

__all__ = ["new_command", "validate_command"]


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


SCAFFOLDS = Path(__file__).with_name("scaffolds")
SCRIPT = "checklist"
GAP = re.compile("@([a-z]+)@")
USUAL_FOLDER = Path("skills")
DESCRIPTION = (
    "Turns a list of items into a Markdown checklist. Use when the user asks for a checklist, a to-do list or the "
    "steps of a plan to tick off."
)


@dataclass(frozen=True, slots=True)
class _Language:
    """What differs between the scaffolds beside the text of script and test."""

    program: str
    script: str
    test: str
    needs: str


LANGUAGES = {
    "python": _Language("python3", "checklist.py", "test_checklist.py", "Needs python3 3.9 or later, nothing else."),
    "bash": _Language("bash", "checklist.sh", "test_checklist.sh", "Needs bash, and python3 to read JSON."),
    "node": _Language("node", "checklist.mjs", "test_checklist.mjs", "Needs node 20 or later, no packages."),
    "ruby": _Language("ruby", "checklist.rb", "test_checklist.rb", "Needs ruby 2.7 or later, no gems."),
    "perl": _Language("perl", "checklist.pl", "test_checklist.t", "Needs perl 5.14 or later, no modules."),
}


def _check_name(_: click.Context, __: click.Parameter, name: str) -> str:
    """The open standard's rule, which also keeps the folder where it was asked for."""
    if NAME.fullmatch(name) and len(name) <= NAME_LIMIT:
        return name
    words = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in name.lower()).split()
    near = "-".join(words)[:NAME_LIMIT].strip("-")
    advice = f" Try {near!r}." if near else ""
    rule = f"a skill's name has a-z, 0-9 and single hyphens between them, at most {NAME_LIMIT} characters"
    raise click.BadParameter(f"{name!r} is no name for a skill: {rule}.{advice}")


@click.command("new", short_help="Make a skill to start from, with a script and a test.")
@click.argument("name", metavar="NAME", callback=_check_name)
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=USUAL_FOLDER,
    show_default=True,
    help="Make NAME in this folder.",
)
@click.option("--language", type=click.Choice(list(LANGUAGES)), default="python", show_default=True)
@click.option("--description", default=DESCRIPTION, metavar="TEXT", help="What it does and when to use it.")
@json_option
def new_command(name: str, folder: Path, language: str, description: str, as_json: bool) -> None:
    """Make a skill to start from: SKILL.md, a script, and a test of the script.

    It is valid and runs as it is. Nothing that exists is overwritten.

    \b
    Examples:
      skillkit new tea-list
      skillkit new tea-list --language node --dir ~/.claude/skills
      skillkit new tea-list --description 'Plans tea. Use when the user is thirsty.'
    """
    files = _files_of(name, LANGUAGES[language], language, description)
    made = _write_skill(folder, name, files)
    steps = _next_steps(made, LANGUAGES[language])
    if as_json:
        echo_json(skill=name, language=language, folder=made.absolute(), files=sorted(files), next=steps)
        return
    click.echo(f"Made {visible(str(made))}")
    for relative in sorted(files):
        click.echo(f"  {relative}")
    click.secho("\nNext", bold=True)
    for purpose, command in steps.items():
        click.echo(f"  {purpose:<9} {visible(command)}")


def _files_of(name: str, language: _Language, scaffold: str, description: str) -> dict[str, str]:
    """By relative path."""
    script = f"scripts/{language.script}"
    values = {
        "name": name,
        # A JSON text is a YAML text too, whatever stands in it.
        "description": json.dumps(" ".join(description.split()), ensure_ascii=False),
        "compatibility": language.needs,
        "title": name.replace("-", " ").capitalize(),
        "command": f"{language.program} {script}",
    }
    return {
        "SKILL.md": GAP.sub(lambda gap: values[gap[1]], _scaffold_text("SKILL.md.txt")),
        script: _scaffold_text(f"{scaffold}/script.txt"),
        f"tests/{language.test}": _scaffold_text(f"{scaffold}/test.txt"),
    }


def _scaffold_text(relative: str) -> str:
    return (SCAFFOLDS / relative).read_text(encoding="utf-8")


def _write_skill(folder: Path, name: str, files: dict[str, str]) -> Path:
    """All of it or nothing, checked before it is made."""
    target = folder.expanduser() / name
    made = [
        NewFile(tuple(relative.split("/")), text.encode(), 0o644 if relative == "SKILL.md" else 0o755)
        for relative, text in files.items()
    ]
    try:
        with tempfile.TemporaryDirectory(prefix="skillkit-new-") as draft, Folder.of(draft) as around:
            write_tree(around, name, made)
            _require_valid(Path(draft, name, "SKILL.md"))
        with Folder.named(target.parent, make=True) as around:
            write_tree(around, name, made)
    except FileExistsError as error:
        raise ConfigurationError(
            f"{target} already exists and is left as it is. Choose another name or --dir."
        ) from error
    except OSError as error:
        raise ConfigurationError(f"{target} cannot be made: {error.strerror}. Choose another --dir.") from error
    return target


def _require_valid(file: Path) -> None:
    """Only the description comes from outside, so only it can be at fault."""
    problems = [f"{problem.message} {problem.remedy}" for problem in validate_skill_file(file)]
    if problems:
        raise click.BadParameter(" ".join(problems), param_hint="'--description'")


def _next_steps(made: Path, language: _Language) -> dict[str, str]:
    """What its author does now, as typed in this folder."""
    skills = "" if made.parent == USUAL_FOLDER else f" --skills {shlex.quote(str(made.parent))}"
    where = shlex.quote(str(made))
    return {
        "edit": f"{where}/SKILL.md and {where}/scripts/{language.script}",
        "test": f"{language.program} {where}/tests/{language.test}",
        "validate": f"skillkit validate {where}",
        "run": f"skillkit run {made.name} {SCRIPT}{skills} -- 'buy tea' 'boil water'",
    }
