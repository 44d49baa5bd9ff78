"""`skillkit run`: one script of a skill, its output as it comes, its exit code as ours."""

from __future__ import annotations

import codecs
import json
import os
import re
import shlex
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, TextIO, Unpack

import click
from click.core import ParameterSource

from skillkit.cli import SIGNAL_BASE
from skillkit.cli.elsewhere import fleet_options, runner_here
from skillkit.cli.options import (
    SCRIPT,
    SKILL,
    Chosen,
    approver_for,
    current_workspace,
    end_on_signals,
    input_option,
    json_option,
    manager_for,
    policy_options,
    require_person_to_loosen,
    roots_options,
    session_id,
)
from skillkit.cli.output import echo_json, path_text, result_structure
from skillkit.core.exceptions import ApprovalUnavailableError, ArgumentSerializationError, ConfigurationError
from skillkit.core.paths import opened_path
from skillkit.core.paths.forbidden import forbidden_paths
from skillkit.core.resolve.arguments import ARGUMENTS_LIMIT_BYTES
from skillkit.core.run.keeping import HARMLESS, Kept, KeptFolder
from skillkit.core.store.state import state_folder
from skillkit.core.values.hosts import HostUse
from skillkit.core.values.policy import require_timeout
from skillkit.core.values.questions import Approver
from skillkit.core.values.runs import ScriptExecutionResult
from skillkit.core.values.text import plural, spell_out, visible
from skillkit.present.tool_result import run_status

__all__ = ["TerminalText", "host_remark", "read_input", "run_command"]

COLOUR = r"\x1b\[[0-9;:]{0,40}m"
# Whatever else a terminal obeys moves, hides or rewrites what is on it, or answers into the shell.
OBEYED = re.compile(rf"({COLOUR})|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
UNFINISHED = re.compile(r"\x1b(?:\[[0-9;:]{0,40})?\Z")
NO_COLOUR = "\x1b[0m"
READ_BYTES = ARGUMENTS_LIMIT_BYTES + 1  # of what is given: enough to tell that it is too much


def _check_timeout(_: click.Context, __: click.Parameter, seconds: float | None) -> float | None:
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
@input_option
@click.option(
    "--stdin",
    "text_given",
    metavar="FILE|-",
    help="Plain text for the script's stdin from a file, or - from ours; not with --input.",
)
@click.option("--timeout", type=float, callback=_check_timeout, help="Seconds, 1 to 600.")
@policy_options
@click.option("--yes", "-y", is_flag=True, help="Approve this one run, without being asked.")
@click.option("--wait", is_flag=True, help="Where no terminal can be asked, wait for 'skillkit approvals answer'.")
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), help="Save what the script leaves here.")
@fleet_options
@roots_options
@json_option
@click.pass_context
def run_command(
    ctx: click.Context,
    skill_name: str,
    script_name: str,
    argv: tuple[str, ...],
    given: str | None,
    text_given: str | None,
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
      git log --oneline | skillkit run text-stats stats --stdin -
      skillkit run csv-report chart --keep ./out -- --sample --column price
      skillkit run csv-report report --read ~/data -- ~/data/sales.csv
    """
    _require_one_stdin(given, text_given)
    approver, runner = _approver(chosen, yes=yes, wait=wait), runner_here(workspace="inputs")
    with (
        _told_how_to_approve(ctx, skill_name),
        end_on_signals(),
        KeptFolder(keep) if keep else nullcontext() as folder,
        manager_for(chosen, approver=approver, session_id=session_id(), runner=runner) as manager,
    ):
        manager.flow.here.ends_soon()
        with _script_output() as show:
            result = manager.execute_skill_script(
                skill_name,
                script_name,
                read_input(given, chosen.get("state_dir")),
                timeout,
                argv=argv,
                stdin=_read_stdin(text_given, chosen.get("state_dir")),
                workspace=current_workspace(chosen.get("state_dir")),
                on_output=None if as_json else show,
                on_host=None if as_json else _show_host,
            )
        _report(result, folder, as_json=as_json)
    ctx.exit(SIGNAL_BASE - result.exit_code if result.exit_code < 0 else result.exit_code)


def _approver(chosen: Chosen, *, yes: bool, wait: bool) -> Approver:
    """Who is asked; what the options approve or open beforehand is a person's word."""
    approver = approver_for(chosen.get("state_dir"), yes=yes, wait=wait)
    require_person_to_loosen(chosen, "run")
    return approver


def _require_one_stdin(given: str | None, text_given: str | None) -> None:
    if given is not None and text_given is not None:
        raise click.UsageError("--input and --stdin both give the script its stdin. Leave one out.")


@contextmanager
def _told_how_to_approve(ctx: click.Context, skill_name: str) -> Iterator[None]:
    """Who cannot be asked reads commands that work when typed: with the skill's name, and where it was looked for."""
    try:
        yield
    except ApprovalUnavailableError as error:
        trust = shlex.join(["skillkit", "trust", "add", skill_name, *_places_typed(ctx)])
        error.add_note(
            f"To approve it, run it in a terminal, add --yes for this one run, trust the skill ({trust}), "
            "or add --wait and answer by 'skillkit approvals'."
        )
        raise


def _places_typed(ctx: click.Context) -> Iterator[str]:
    for name, option in (("skills", "--skills"), ("plugins", "--plugin"), ("state_dir", "--state-dir")):
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            given = ctx.params[name]
            for each in given if isinstance(given, tuple) else (given,):
                yield from (option, str(each))


def _report(result: ScriptExecutionResult, folder: KeptFolder | None, *, as_json: bool) -> None:
    """Saves what the script left, and says what is to be said beside its output."""
    kept = folder.save(result.artifacts) if folder else None
    if kept:
        _require_own_place(kept)
    if as_json:
        saved = [path_text(path) for path in kept.paths] if kept else []
        echo_json(status=run_status(result), **result_structure(result), kept=saved)
    else:
        _show_end(result, kept)


def read_input(given: str | None, state_dir: Path | None) -> Any:  # noqa: ANN401 - any JSON value
    """Text, a file, or our own stdin; None leaves the script's stdin empty."""
    if given is None:
        return None
    try:
        text = given
        if given == "-":
            text = sys.stdin.read()
        elif given.startswith("@"):
            text = _file_bytes(Path(given[1:]), state_dir, "--input").decode()
        return json.loads(text)
    except OSError as error:
        raise ArgumentSerializationError(
            f"--input: no JSON can be read from {given.removeprefix('@')!r}: {error.strerror}. Name another file."
        ) from error
    except (ValueError, RecursionError) as error:
        raise ArgumentSerializationError(f"--input is no JSON: {error}. Quote it for your shell.") from error


def _read_stdin(given: str | None, state_dir: Path | None) -> bytes | None:
    """What the file or our own stdin holds, as it is; None leaves the script's stdin empty."""
    if given is None:
        return None
    if given == "-":
        return sys.stdin.buffer.read(READ_BYTES)
    try:
        return _file_bytes(Path(given), state_dir, "--stdin", READ_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ArgumentSerializationError(f"--stdin: {given!r} cannot be read: {reason}. Name another file.") from error


def _file_bytes(path: Path, state_dir: Path | None, option: str, most: int = -1) -> bytes:
    """No script is given a key of yours that a link stands for: another script may have put the link there."""
    with path.open("rb") as file:
        is_plain = stat.S_ISREG(os.fstat(file.fileno()).st_mode)  # a shell's `<(...)` is a link to a pipe
        real = opened_path(file.fileno(), path) if is_plain else os.path.abspath(path)
        if real != os.path.abspath(path) and forbidden_paths(state_folder(state_dir)).covers(real):
            raise ArgumentSerializationError(
                f"{option}: {path} is a link to {real}, which no script is given. Name the file itself if you mean it."
            )
        return file.read(most)


def _require_own_place(kept: Kept) -> None:
    """What was there is left as it is, and nothing gets lost; but it is not where it was wanted."""
    if kept.in_the_way is not None:
        raise ConfigurationError(
            f"--keep: {kept.in_the_way} exists and is left as it is. "
            f"What the script left is in {kept.folder} instead; name a new folder the next time."
        )


def _show_end(result: ScriptExecutionResult, kept: Kept | None) -> None:
    """What the script's own output does not say."""
    remarks = []
    if result.timed_out:
        remarks.append(f"timed out after {result.execution_time_ms / 1000:.1f} s")
    if result.signal and not result.timed_out:
        remarks.append(f"ended by {result.signal}")
    cut = [name for name in ("stdout", "stderr") if getattr(result, f"{name}_truncated")]
    if cut:
        remarks.append(f"{' and '.join(cut)} cut at the limit of 10 MB; a script can leave more as a file, for --keep")
    remarks += map(host_remark, result.hosts)
    if result.hint:
        remarks.append(result.hint)
    remarks += [f"kept {path}" for path in kept.paths] if kept else []
    if kept and kept.renamed:
        remarks.append(f"names that agents, editors, shells or git would obey have {HARMLESS!r} added")
    if result.artifacts and not kept:
        remarks.append(f"{plural(len(result.artifacts), 'file')} left in the work folder; --keep DIR saves them")
    for remark in remarks:
        click.echo(f"skillkit: {visible(remark)}", err=True)


def _show_host(use: HostUse) -> None:
    """While it goes on, for who watches; at the end there is a line for each in any case."""
    if sys.stderr.isatty():
        click.echo(f"skillkit: {'refused' if use.refused else 'reaches'} {visible(use.host)}", err=True)


def host_remark(use: HostUse) -> str:
    if use.refused:
        return use.refused if use.refused.startswith(use.host) else f"refused {use.host}: {use.refused}"
    moved = f"{use.sent:,} bytes sent, {use.received:,} received"
    via = f" through {use.via}, which resolved its name" if use.via else ""
    return f"reached {use.host}{via}: {plural(use.connections, 'connection')}, {moved}"


class TerminalText:
    """Bytes as they come -> text for a terminal; a colour that arrives in two parts is one colour."""

    def __init__(self) -> None:
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.held = ""
        self.is_coloured = False
        self.ends_line = True

    def of(self, data: bytes, *, is_last: bool = False) -> str:
        text = self.held + self.decoder.decode(data, is_last)
        rest = None if is_last else UNFINISHED.search(text)
        self.held = rest[0] if rest else ""
        text = text[: len(text) - len(self.held)]
        self.ends_line = text.endswith("\n") if text else self.ends_line
        return OBEYED.sub(self._tame, text)

    def _tame(self, found: re.Match[str]) -> str:
        self.is_coloured = self.is_coloured or bool(found[1])
        return found[1] or spell_out(found[0])

    def end(self) -> str:
        """What is still held; afterwards our own words begin on a line and in a colour of their own."""
        text = self.of(b"", is_last=True)
        return text + NO_COLOUR * self.is_coloured + "\n" * (not self.ends_line)


@contextmanager
def _script_output() -> Iterator[Callable[[str, bytes], None]]:
    """Takes the name of a stream and what came on it."""
    targets = {"stdout": sys.stdout, "stderr": sys.stderr}
    tamed = {name: TerminalText() for name, target in targets.items() if target.isatty()}

    def show(stream: str, data: bytes) -> None:
        _write(targets[stream], tamed[stream].of(data).encode() if stream in tamed else data)

    try:
        yield show
    finally:
        for stream, text in tamed.items():
            _write(targets[stream], text.end().encode())


def _write(target: TextIO, data: bytes) -> None:
    target.buffer.write(data)
    target.buffer.flush()
