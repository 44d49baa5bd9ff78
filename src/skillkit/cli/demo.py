"""`skillkit demo`: the product's main job on the skills that ship with it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import click

import skillkit
from skillkit.cli.main import exit_code_of
from skillkit.core.exceptions import ConfigurationError

__all__ = ["demo_command"]


@click.command("demo")
def demo_command() -> None:
    """Show skillkit at work on the example skills; asks nothing, changes nothing."""
    examples = str(example_skills())
    with TemporaryDirectory(prefix="skillkit-demo-") as state:
        there = ["--skills", examples, "--state-dir", state]
        show_step("What is installed here?", ["list"], there)
        show_step("What does one of them offer?", ["show", "csv-report"], there)
        show_step("Do they keep to the open standard?", ["validate"], [examples])


def show_step(question: str, words: list[str], where: list[str]) -> None:
    """The command as a person would type it, and what it really prints."""
    click.secho(f"\n# {question}", fg="cyan")
    click.secho(f"$ skillkit {' '.join(words)}", bold=True)
    code = exit_code_of([*words, *where])
    if code:
        raise click.exceptions.Exit(code)


def example_skills() -> Path:
    """Inside the package when installed, beside it in a checkout."""
    package = Path(skillkit.__file__).parent
    for folder in (package / "examples", package.parents[1] / "examples" / "skills"):
        if folder.is_dir():
            return folder
    raise ConfigurationError(f"The example skills are missing from {package}. Install skillkit-runtime again.")
