"""`skillkit run`: one script of a skill, its output as it comes, its exit code as ours."""

from __future__ import annotations

import json
import os
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Unpack

import click

from skillkit.cli.asking import approver_for, session_id
from skillkit.cli.exit_codes import SIGNAL_BASE
from skillkit.cli.options import (
    SCRIPT,
    SKILL,
    Chosen,
    counted,
    echo_json,
    json_option,
    manager_for,
    policy_options,
    roots_options,
)
from skillkit.cli.output import script_output
from skillkit.core.closed_places import closed_places
from skillkit.core.config import current_folder
from skillkit.core.exceptions import ArgumentSerializationError, ConfigurationError
from skillkit.core.paths import opened_path, real_path
from skillkit.core.policy import require_timeout
from skillkit.core.run.keeping import HARMLESS, Kept, KeptFolder
from skillkit.core.runs import ScriptExecutionResult
from skillkit.core.state import state_folder
from skillkit.core.values import Workspace
from skillkit.core.workspaces import named_workspace
from skillkit.present.result import result_structure, written
from skillkit.present.terminal import visible
from skillkit.present.tool_result import run_status

__all__ = ["run_command"]


def checked_timeout(_: click.Context, __: click.Parameter, seconds: float | None) -> float | None:
    """A timeout out of range is wrong usage, as any other bad option is."""
    try:
        if seconds is not None:
            require_timeout(seconds)
    except ConfigurationError as error:
        raise click.BadParameter(str(error)) from error
    return seconds


@click.command("run")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@click.argument("script_name", metavar="SCRIPT", type=SCRIPT)
@click.argument("argv", metavar="[-- ARGS...]", nargs=-1, type=click.UNPROCESSED)
@click.option("--input", "given", metavar="JSON|@FILE|-", help="JSON for the script's stdin; @FILE or - reads it.")
@click.option("--timeout", type=float, callback=checked_timeout, help="Seconds, 1 to 600.")
@policy_options
@click.option("--yes", "-y", is_flag=True, help="Approve this one run, without being asked.")
@click.option("--wait", is_flag=True, help="Where no terminal can be asked, wait for 'skillkit approvals answer'.")
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="Save what the script leaves here.")
@roots_options
@json_option
@click.pass_context
def run_command(
    ctx: click.Context,
    skill_name: str,
    script_name: str,
    argv: tuple[str, ...],
    given: str | None,
    timeout: float | None,
    yes: bool,
    wait: bool,
    keep: Path | None,
    as_json: bool,
    **chosen: Unpack[Chosen],
) -> None:
    """Run one script of a skill.

    You are asked before a skill's first run, and again once it changed. Its exit code is passed on; 124 means
    timeout, 126 refused or not approved, 127 not found, 128+N ended by signal N.

    \b
    Examples:
      skillkit run csv-report report --yes -- --sample
      skillkit run text-stats stats --input '{"text": "Hello there."}'
      skillkit run csv-report chart --keep ./out -- --sample --column price
      skillkit run csv-report report --read ~/data -- ~/data/sales.csv
    """
    approver = approver_for(chosen.get("state_dir"), yes=yes, wait=wait)
    with (
        ended_by_signals(),
        KeptFolder(keep) if keep else nullcontext() as folder,
        manager_for(chosen, approver=approver, session_id=session_id()) as manager,
    ):
        with script_output() as show:
            result = manager.execute_skill_script(
                skill_name,
                script_name,
                parsed_input(given, chosen.get("state_dir")),
                timeout,
                argv=argv,
                workspace=current_workspace(chosen.get("state_dir")),
                on_output=None if as_json else show,
            )
        kept = folder.save(result.artifacts) if folder else None
        if kept:
            require_own_place(kept)
        if as_json:
            saved = [written(path) for path in kept.paths] if kept else []
            echo_json(status=run_status(result), **result_structure(result), kept=saved)
        else:
            show_end(result, kept)
    ctx.exit(SIGNAL_BASE - result.exit_code if result.exit_code < 0 else result.exit_code)


def parsed_input(given: str | None, state_dir: Path | None) -> Any:  # noqa: ANN401 - any JSON value
    """Text, a file, or our own stdin; None leaves the script's stdin empty."""
    if given is None:
        return None
    try:
        text = given
        if given == "-":
            text = sys.stdin.read()
        elif given.startswith("@"):
            text = file_text(Path(given[1:]), state_dir)
        return json.loads(text)
    except OSError as error:
        raise ArgumentSerializationError(
            f"--input: no JSON can be read from {given.removeprefix('@')!r}: {error.strerror}. Name another file."
        ) from error
    except (ValueError, RecursionError) as error:
        raise ArgumentSerializationError(f"--input is no JSON: {error}. Quote it for your shell.") from error


def file_text(path: Path, state_dir: Path | None) -> str:
    """No script is given a key of yours that a link stands for: another script may have put the link there."""
    with path.open(encoding="utf-8") as file:
        is_plain = stat.S_ISREG(os.fstat(file.fileno()).st_mode)  # a shell's `<(...)` is a link to a pipe
        real = opened_path(file.fileno(), path) if is_plain else os.path.abspath(path)
        if real != os.path.abspath(path) and closed_places(state_folder(state_dir)).hold(real):
            raise ArgumentSerializationError(
                f"--input: {path} is a link to {real}, which no script is given. Name the file itself if you mean it."
            )
        return file.read()


def current_workspace(state_dir: Path | None) -> Workspace | None:
    """The current folder, unless scripts may not work there; then a person is told that there is none.

    At home and in the root folder nobody expects one.
    """
    here = current_folder()
    if here is None or real_path(here) in (os.sep, real_path(os.path.expanduser("~"))):
        return None
    try:
        return named_workspace(here, state_folder(state_dir), setting="The current folder is no workspace")
    except ConfigurationError as error:
        click.echo(f"skillkit: {visible(str(error))}", err=True)
        return None


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """`kill` and a closed terminal end us as Ctrl-C does: the script's tree goes first."""

    def stop(number: int, _: object) -> None:
        sys.exit(SIGNAL_BASE + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    is_main = threading.current_thread() is threading.main_thread()  # nobody else may set handlers
    before = {number: signal.signal(number, stop) for number in numbers if is_main}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def require_own_place(kept: Kept) -> None:
    """What was there is left as it is, and nothing gets lost; but it is not where it was wanted."""
    if kept.in_the_way is not None:
        raise ConfigurationError(
            f"--keep: {kept.in_the_way} exists and is left as it is. "
            f"What the script left is in {kept.folder} instead; name a new folder the next time."
        )


def show_end(result: ScriptExecutionResult, kept: Kept | None) -> None:
    """What the script's own output does not say."""
    remarks = []
    if result.timed_out:
        remarks.append(f"timed out after {result.execution_time_ms / 1000:.1f} s")
    if result.signal and not result.timed_out:
        remarks.append(f"ended by {result.signal}")
    cut = [name for name in ("stdout", "stderr") if getattr(result, f"{name}_truncated")]
    if cut:
        remarks.append(f"{' and '.join(cut)} cut at the limit of 10 MB; a script can leave more as a file, for --keep")
    if result.hint:
        remarks.append(result.hint)
    remarks += [f"kept {path}" for path in kept.paths] if kept else []
    if kept and kept.renamed:
        remarks.append(f"names that agents, editors, shells or git would obey have {HARMLESS!r} added")
    if result.artifacts and not kept:
        remarks.append(f"{counted(len(result.artifacts), 'file')} left in the work folder; --keep DIR saves them")
    for remark in remarks:
        click.echo(f"skillkit: {visible(remark)}", err=True)
