"""`skillkit demo`: the product's main job on the skills that ship with it, told from the first look to the record."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import stat
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click

import skillkit
from skillkit.cli import REFUSED
from skillkit.cli.main import exit_code_of
from skillkit.cli.output import screen_width
from skillkit.core.exceptions import ApprovalUnavailableError, ConfigurationError, SkillKitError
from skillkit.core.paths.files import Folder
from skillkit.core.paths.trees import NewFile, write_tree
from skillkit.core.run.tiers import machine_tiers
from skillkit.core.values.policy import GUARDED, STANDARD, ScriptPolicy
from skillkit.core.values.questions import OptionRequest
from skillkit.core.values.runs import ScriptExecutionResult
from skillkit.core.values.text import plural, visible

__all__ = ["demo_command"]

WAIT_SECONDS = 60
LOOK_SECONDS = 0.1
SOURCE_ROWS = 6
# Each attempt would succeed without walls.
CURIOUS = """\
\"\"\"Tries what no script should do, and says how far it came.\"\"\"

import os
import socket


def attempt(what, act):
    try:
        act()
        print(f"{what}: done")
    except OSError as error:
        print(f"{what}: {error.strerror}")


attempt("read a file of yours", lambda: open(@file@).read())
attempt("change its own skill", lambda: open(__file__, "a").write("# changed"))
attempt("connect to a server", lambda: socket.create_connection(("127.0.0.1", @port@), 5))
attempt("write into its work folder", lambda: os.mkdir(os.environ["SKILL_WORK_DIR"] + "/made"))
"""


TABLE = """\
# /// script
# dependencies = ["tabulate"]
# ///
\"\"\"Prints what a tea needs.\"\"\"

from tabulate import tabulate

print(tabulate([["green", 80, 3], ["black", 95, 4]], headers=["tea", "degrees", "minutes"]))
"""
INDEX_SECONDS = 5.0
PREPARE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Stage:
    """Where the demo plays."""

    examples: str
    folder: Path
    has_walls: bool

    @property
    def state(self) -> str:
        return str(self.folder / "state")

    @property
    def there(self) -> list[str]:
        return ["--skills", self.examples, "--state-dir", self.state]

    @property
    def policy(self) -> list[str]:
        """The usual policy needs walls; where a machine has none, the demo says that it does without."""
        return [] if self.has_walls else ["--policy", "standard"]

    @property
    def approved(self) -> list[str]:
        return [*self.policy, *(["--yes"] * self.has_walls)]


@click.command("demo", short_help="Show skillkit at work on the example skills.")
@click.option(
    "--copy",
    "target",
    type=click.Path(file_okay=False, path_type=Path),
    help="Instead, copy the example skills into this folder.",
)
def demo_command(target: Path | None) -> None:
    """Show skillkit at work on the example skills; asks nothing, changes nothing.

    \b
    Examples:
      skillkit demo
      skillkit demo --copy skills       the example skills, to try things on
    """
    if target is None:
        _show_demo()
    else:
        _show_copies(target)


def _show_copies(target: Path) -> None:
    copied, left = _copy_examples(target)
    click.echo(f"Copied {plural(len(copied), 'example skill')} to {visible(str(target))}.")
    if left:
        click.echo(f"Already there, and left as they are: {', '.join(left)}.", err=True)


def _show_demo() -> None:
    with TemporaryDirectory(prefix="skillkit-demo-") as folder:
        has_walls = any(attempt.sandbox for attempt in machine_tiers())
        stage = _Stage(str(_example_skills()), Path(folder), has_walls)
        _show_skills(stage)
        _show_runs(stage)
        _show_packages(stage)
        _show_agent(stage)
        _show_step("Everything is on record.", ["audit", "tail", "--state-dir", stage.state])
        _show_step("And the record is intact.", ["audit", "verify", "--state-dir", stage.state])
    _heading("Now you: what this machine offers, these skills to try things on, a skill of your own.")
    for words in ("doctor", "demo --copy skills", "list", "new my-skill"):
        click.secho(f"$ {command_here()} {words}", bold=True)


def command_here() -> str:
    """As it can be typed: a checkout's own command is not on the PATH."""
    beside = Path(sys.executable).parent / "skillkit"
    if shutil.which("skillkit") or not os.path.isfile(beside):
        return "skillkit"
    here = Path.cwd()
    return shlex.quote(str(beside.relative_to(here) if beside.is_relative_to(here) else beside))


def _show_skills(stage: _Stage) -> None:
    _show_step("What is installed here?", ["list", *stage.there])
    _show_step("What does one of them offer?", ["show", "csv-report", *stage.there])
    _show_step("Do they keep to the open standard?", ["validate", stage.examples])
    words = ["check", "csv-report", "report", *stage.policy, *stage.there]
    _show_step("May a script of it run, and what could it reach?", words)


def _show_runs(stage: _Stage) -> None:
    _show_approval(stage)
    sample = [*stage.approved, *stage.there, "--", "--sample"]
    _show_step("You may also say yes beforehand. A shell script.", ["run", "log-digest", "digest.sh", *sample], "bash")
    _show_step("A JavaScript one.", ["run", "log-digest", "jsonl.mjs", *sample], "node")
    _show_walls(stage)
    words = ["run", "house-style", "check_words", *stage.there]
    _show_step("A skill that lists only the tool Read may not run scripts.", words, expected=REFUSED)


def _show_agent(stage: _Stage) -> None:
    _show_step("Trust a skill, as it is now.", ["trust", "add", "csv-report", "--yes", *stage.there])
    _show_loading("What an agent gets that loads it: its commands have run.", "csv-report", stage)
    _show_loading("And of one that nobody approved: nothing has.", "log-digest", stage)


def _show_approval(stage: _Stage) -> None:
    """A program asks and waits; the answer comes from another command, as it would from another window."""
    from skillkit.core.store.world import World
    from skillkit.present.request import prompt_text

    _heading("An agent's program runs a script. The first run of a skill is asked about; until then it waits.")
    click.secho('>>> manager.execute_skill_script("csv-report", "report", argv=["--sample"])', bold=True)
    with World(stage.state) as world, _waiting_run(stage, world) as run:
        request = _first_request(world, run)
        click.echo(prompt_text(request, screen_width(), color=True, source_rows=SOURCE_ROWS).rstrip())
        words = ["approvals", "answer", request.id, "yes_once", "--state-dir", stage.state]
        _show_step("You answer where you are: in the terminal, in another one, on a page.", words)
        _heading("Now it has run.")
        click.echo(run.result().stdout, nl=False)


@contextmanager
def _waiting_run(stage: _Stage, world: skillkit.World) -> Iterator[Future[ScriptExecutionResult]]:
    from skillkit.approvers.store import StoreApprover

    policy = GUARDED if stage.has_walls else replace(STANDARD, approval="first_run")
    approver = StoreApprover(world, expires_in=WAIT_SECONDS)
    places = skillkit.SkillManager(stage.examples, "", [], [], policy=policy, approver=approver, state_dir=stage.state)
    with places as manager, ThreadPoolExecutor(1) as pool:
        yield pool.submit(manager.execute_skill_script, "csv-report", "report", argv=["--sample"])


def _first_request(world: skillkit.World, run: Future[ScriptExecutionResult]) -> OptionRequest:
    """As soon as it is there; the run's own error if it ends before it asks."""
    mark, until = None, time.monotonic() + WAIT_SECONDS
    while time.monotonic() < until:
        if pending := world.pending():
            return pending[0]
        if run.done():
            run.result()
        mark = world.wait_for_change(mark, LOOK_SECONDS)
    raise ApprovalUnavailableError("The demo's question did not come. Look at 'skillkit doctor'.")


def _show_walls(stage: _Stage) -> None:
    """A script made here, because no skill that ships with skillkit tries such things."""
    question = "And a script that is too curious? It runs inside walls."
    if not stage.has_walls:
        _heading(question)
        click.echo("(left out: this machine has no walls; 'skillkit doctor' says how to get them)")
        return
    skill = stage.folder / "skills" / "curious"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: curious\ndescription: Looks around.\n---\n", encoding="utf-8")
    (stage.folder / "diary.txt").write_text("Dear diary", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as server:
        text = CURIOUS.replace("@file@", repr(str(stage.folder / "diary.txt")))
        text = text.replace("@port@", str(server.getsockname()[1]))
        (skill / "scripts" / "look.py").write_text(text, encoding="utf-8")
        _show_step(question, ["run", "curious", "look", "--yes", "--skills", str(skill.parent), *stage.there[2:]])


def _show_packages(stage: _Stage) -> None:
    """A script made here, because its package comes from the index that this machine uses, if it uses one."""
    _heading("A script may need a package. You see the list before anything is installed; runs need no network.")
    skill = stage.folder / "skills" / "table"
    (skill / "scripts").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: table\ndescription: Prints a table.\n---\n", encoding="utf-8")
    (skill / "scripts" / "table.py").write_text(TABLE, encoding="utf-8")
    there = ["--skills", str(skill.parent), "--state-dir", stage.state]
    reason = _why_no_packages(stage)
    if reason:
        click.echo(f"(left out: {visible(reason)})")
        return
    click.secho("$ skillkit prepare table --yes --young", bold=True)
    reason = _prepare_packages(skill.parent, stage)
    if reason:
        click.echo(f"(left out: {visible(reason)})")
        return
    _show_step(
        "It finds its package now, inside walls and without a network.", ["run", "table", "table", "--yes", *there]
    )


def _why_no_packages(stage: _Stage) -> str:
    """Empty where an index answers soon, and packages can be prepared."""
    from skillkit.packages import require_packages

    if not any(attempt.sandbox and attempt.sandbox.opens_hosts for attempt in machine_tiers()):
        return "packages are prepared inside walls of bubblewrap, which is not here"
    try:
        require_packages()
        from skillkit.packages.index import files_of_package, python_index

        empty = stage.folder / "empty"
        empty.mkdir()
        found = files_of_package("tabulate", python_index(empty).addresses, seconds=INDEX_SECONDS)
    except SkillKitError as error:
        return str(error)
    return "" if found else "the index that this machine uses does not have the package of the example"


def _prepare_packages(skills: Path, stage: _Stage) -> str:
    """As the command does, but for no longer than a demo may take; why not, where it came to nothing."""
    from skillkit.approvers.callback import FlagApprover
    from skillkit.packages.prepare import prepare_packages
    from skillkit.packages.question import package_line

    stop = threading.Event()
    timer = threading.Timer(PREPARE_SECONDS, stop.set)
    timer.start()
    try:
        with skillkit.SkillManager("", "", [], [skills], state_dir=stage.state) as manager:
            done = prepare_packages(
                manager, "table", approver=FlagApprover(), young=True, patience=INDEX_SECONDS, cancel=stop
            )
    except SkillKitError as error:
        return str(error)
    finally:
        timer.cancel()
    for plan in done.plans:
        click.echo("\n".join(f"  {package_line(each, time.time())}" for each in plan.packages))
    click.echo("table is prepared. Its runs find them; nothing else does.")
    return ""


def _heading(text: str) -> None:
    click.secho(f"\n# {text}", fg="cyan")


def _show_step(question: str, words: list[str], needs: str = "", *, expected: int = 0) -> None:
    """The command as a person would type it, and what it really prints."""
    _heading(question)
    if needs and shutil.which(needs) is None:
        click.echo(f"(left out: {needs} is not installed)")
        return
    click.secho(f"$ skillkit {_typed(words)}", bold=True)
    code = exit_code_of(words)
    if code != expected:
        raise click.exceptions.Exit(code or 1)


def _show_loading(question: str, skill: str, stage: _Stage) -> None:
    """What the tool returns, without the instructions in the middle."""
    from skillkit.integrations.functions import SkillFunctions

    _heading(question)
    click.secho(f'>>> SkillFunctions(manager).call("load_skill", {{"skill_name": "{skill}"}})', bold=True)
    policy: ScriptPolicy | None = None if stage.has_walls else STANDARD
    with skillkit.SkillManager(stage.examples, "", [], [], policy=policy, state_dir=stage.state) as manager:
        text = SkillFunctions(manager).call("load_skill", {"skill_name": skill}).content
    opening, _, rest = text.partition("\n")
    _, tag, resources = rest.rpartition("\n<active_resources>")
    click.echo(f"{opening}\n<instructions>...</instructions>{visible(tag + resources)}", nl=False)


def _typed(words: list[str]) -> str:
    """Without the options that only keep the demo to itself."""
    shown, skip = list[str](), False
    for word in words:
        if skip or word in ("--skills", "--state-dir"):
            skip = not skip
        else:
            shown.append(word if not Path(word).is_absolute() else "skills/")
    return shlex.join(shown)


def _example_skills() -> Path:
    """Inside the package when installed, beside it in a checkout."""
    package = Path(skillkit.__file__).parent
    for folder in (package / "examples", package.parents[1] / "examples" / "skills"):
        if os.path.isdir(folder):
            return folder
    raise ConfigurationError(f"The example skills are missing from {package}. Install skillkit-runtime again.")


def _copy_examples(target: Path) -> tuple[list[str], list[str]]:
    """The names of those that were copied, and of those that were there and are left as they are."""
    copied, left = list[str](), list[str]()
    try:
        with Folder.named(target, make=True) as folder:
            for skill in sorted(_example_skills().iterdir()):
                if folder.status(skill.name) is not None:
                    left.append(skill.name)
                elif os.path.isdir(skill):
                    write_tree(folder, skill.name, _files_of(skill))
                    copied.append(skill.name)
    except OSError as error:
        raise ConfigurationError(
            f"The example skills cannot be copied to {target}: {error.strerror or error}. Name another folder."
        ) from error
    return copied, left


def _files_of(skill: Path) -> Iterator[NewFile]:
    for path in sorted(skill.rglob("*")):
        names = path.relative_to(skill).parts
        if os.path.isfile(path) and "__pycache__" not in names:
            yield NewFile(names, path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
