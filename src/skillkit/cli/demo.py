"""`skillkit demo`: the product's main job on the skills that ship with it."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import click

import skillkit
from skillkit.cli.main import exit_code_of
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.policy import STANDARD, ScriptPolicy
from skillkit.core.run import machine_tiers
from skillkit.present.terminal import visible

__all__ = ["demo_command"]

REFUSED = 126


@click.command("demo")
def demo_command() -> None:
    """Show skillkit at work on the example skills; asks nothing, changes nothing."""
    examples = str(example_skills())
    with TemporaryDirectory(prefix="skillkit-demo-") as state:
        there = ["--skills", examples, "--state-dir", state]
        # The usual policy needs walls; where a machine has none, the demo says that it does without.
        has_walls = any(attempt.sandbox for attempt in machine_tiers())
        walls = [] if has_walls else ["--policy", "standard"]
        approved = [*walls, *(["--yes"] * has_walls)]
        show_step("What is installed here?", ["list", *there])
        show_step("What does one of them offer?", ["show", "csv-report", *there])
        show_step("Do they keep to the open standard?", ["validate", examples])
        show_step("May a script of it run, and what could it reach?", ["check", "csv-report", "report", *walls, *there])
        sample = [*approved, *there, "--", "--sample"]
        show_step("Run a Python script.", ["run", "csv-report", "report", *sample])
        show_step("Run a shell script.", ["run", "log-digest", "digest.sh", *sample], needs="bash")
        show_step("Run a JavaScript one.", ["run", "log-digest", "jsonl.mjs", *sample], needs="node")
        show_step(
            "A skill that lists only the tool Read may not run scripts.",
            ["run", "house-style", "check_words", *there],
            expected=REFUSED,
        )
        show_step("Trust a skill, as it is now.", ["trust", "add", "csv-report", "--yes", *there])
        policy = None if has_walls else STANDARD
        show_loading("What an agent gets that loads it: its commands have run.", "csv-report", examples, state, policy)
        show_loading("And of one that nobody approved: nothing has.", "log-digest", examples, state, policy)
        show_step("Everything is on record.", ["audit", "tail", "--state-dir", state])
        show_step("And the record is intact.", ["audit", "verify", "--state-dir", state])


def show_step(question: str, words: list[str], *, needs: str = "", expected: int = 0) -> None:
    """The command as a person would type it, and what it really prints."""
    click.secho(f"\n# {question}", fg="cyan")
    if needs and shutil.which(needs) is None:
        click.echo(f"(left out: {needs} is not installed)")
        return
    click.secho(f"$ skillkit {typed(words)}", bold=True)
    code = exit_code_of(words)
    if code != expected:
        raise click.exceptions.Exit(code or 1)


def show_loading(question: str, skill: str, examples: str, state: str, policy: ScriptPolicy | None) -> None:
    """What the tool returns, without the instructions in the middle."""
    from skillkit.integrations.functions import SkillFunctions

    click.secho(f"\n# {question}", fg="cyan")
    click.secho(f'>>> SkillFunctions(manager).call("load_skill", {{"skill_name": "{skill}"}})', bold=True)
    with skillkit.SkillManager(examples, "", [], [], policy=policy, state_dir=state) as manager:
        text = SkillFunctions(manager).call("load_skill", {"skill_name": skill}).content
    opening, _, rest = text.partition("\n")
    _, tag, resources = rest.partition("\n<active_resources>")
    click.echo(f"{opening}\n<instructions>...</instructions>{visible(tag + resources)}", nl=False)


def typed(words: list[str]) -> str:
    """Without the options that only keep the demo to itself."""
    shown, skip = list[str](), False
    for word in words:
        if skip or word in ("--skills", "--state-dir"):
            skip = not skip
        else:
            shown.append(word if not Path(word).is_absolute() else "skills/")
    return shlex.join(shown)


def example_skills() -> Path:
    """Inside the package when installed, beside it in a checkout."""
    package = Path(skillkit.__file__).parent
    for folder in (package / "examples", package.parents[1] / "examples" / "skills"):
        if folder.is_dir():
            return folder
    raise ConfigurationError(f"The example skills are missing from {package}. Install skillkit-runtime again.")
