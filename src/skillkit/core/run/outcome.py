"""What a process did -> the result a caller sees, with one sentence of help where the cause is known."""

from __future__ import annotations

import logging
import os
import re
import signal
from collections.abc import Callable

from skillkit.core.run.sandbox.explain import can_be_shown
from skillkit.core.values.runs import (
    READ_FROM_CODE,
    TIMEOUT_EXIT_CODE,
    TRUNCATION_MARK,
    Artifact,
    Isolation,
    ProcessExit,
    ScriptCommand,
    ScriptExecutionResult,
    stop_mark,
)

__all__ = ["outcome"]

SIGNAL_BASE = 128
# ILL, TRAP, ABRT, BUS, FPE, KILL, SEGV, XCPU, XFSZ, SYS.
CRASH_SIGNALS = frozenset((4, 5, 6, 7, 8, 9, 11, 24, 25, 31))

run_log = logging.getLogger("skillkit.run")
run_log.addHandler(logging.NullHandler())

# What a failing script says when something is missing, and what helps; {0} is what it named, never a free text.
KNOWN_CAUSES = (
    (
        r"ModuleNotFoundError: No module named '([A-Za-z_][\w.]{0,99})'",
        "The Python module {0!r} is missing; install it for {python}.",
    ),
    (
        r"Error: Cannot find module '([\w@][\w@./-]{0,99})'",
        "The Node module {0!r} is missing; install it beside the skill.",
    ),
    (r"cannot load such file -- ([\w./-]{1,100})(?!\S)", "The Ruby library {0!r} is missing; install its gem."),
    (r"Can't locate ([\w/]{1,100})\.pm in @INC", "The Perl module {0!r} is missing; install it."),
    (
        r"(EOFError): EOF when reading a line",
        "The script reads more from its stdin than it was given; pass it as 'arguments' or 'stdin' (--input).",
    ),
)

# How failing scripts of each language say that a program could not be started.
_LINES = 40
_NAME = r"(?P<name>[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63})"
# A folder that the walls hide may answer with either.
_ABSENT = r"(?:No such file or directory|Permission denied)"
# Python says the same of a file; only these functions look for programs.
_STARTING = re.compile(r"\bin (?:_execute_child|_execvpe|execvpe?)$")
_PYTHON = re.compile(rf"^(?:FileNotFoundError: \[Errno 2\]|PermissionError: \[Errno 13\]) {_ABSENT}: '{_NAME}'$")
_STARTERS = "env|nice|nohup|setsid|stdbuf|time|timeout|xargs"
_SPOKEN = re.compile(
    "|".join(
        each.replace("<name>", f"<name{number}>")
        for number, each in enumerate(
            (
                rf"\bspawn(?:Sync)? {_NAME} (?:ENOENT|EACCES)\b",
                rf": {_ABSENT} - {_NAME} \(Errno::E(?:NOENT|ACCES)\)",
                rf"^Can't exec \"{_NAME}\": {_ABSENT} at ",
                rf": line \d+: {_NAME}: command not found$",
                rf"^\S+: \d+: {_NAME}: (?:not found|Permission denied)$",
                rf"^(?:\S*/)?(?:{_STARTERS}): (?:failed to run command )?['\u2018`\"]?{_NAME}['\u2019\"]?: {_ABSENT}",
            )
        )
    )
)
MISSING_PROGRAM = "The program {0!r} is missing; install it or put it on PATH."


def outcome(
    command: ScriptCommand,
    ended: ProcessExit,
    isolation: Isolation,
    artifacts: tuple[Artifact, ...],
    explain: Callable[[str], str] | None = None,
) -> ScriptExecutionResult:
    """Only the runner says that a run timed out, was cancelled or died of a signal."""
    exit_code = TIMEOUT_EXIT_CODE if ended.timed_out else _status_of(ended, isolation)
    signal_number = -exit_code if exit_code < 0 else None
    name = signal_name(signal_number) if signal_number else None
    stdout_truncated = ended.stdout_bytes > len(ended.stdout)
    stderr_truncated = ended.stderr_bytes > len(ended.stderr)
    if ended.timed_out or name or stdout_truncated or stderr_truncated:
        _log_outcome(command, ended, name)
    stderr = _text_of(ended.stderr, truncated=stderr_truncated, last_line=stop_mark(ended, name))
    return ScriptExecutionResult(
        stdout=_text_of(ended.stdout, truncated=stdout_truncated),
        stderr=stderr,
        exit_code=exit_code,
        execution_time_ms=ended.duration_ms,
        script_path=command.script_path,
        signal=name,
        signal_number=signal_number,
        stdout_truncated=stdout_truncated,
        stderr_truncated=stderr_truncated,
        timed_out=ended.timed_out,
        cancelled=ended.cancelled,
        isolation=isolation,
        artifacts=artifacts,
        hint=((explain(stderr) if explain else "") or _hint_for(command, stderr)) if exit_code else "",
    )


def _status_of(ended: ProcessExit, isolation: Isolation) -> int:
    """In a PID namespace a signal's death is seen as 128+N: for the signals of crashes it is read as that."""
    number = ended.status - SIGNAL_BASE
    return -number if isolation.status == READ_FROM_CODE and number in CRASH_SIGNALS else ended.status


def _text_of(captured: bytes, *, truncated: bool, last_line: str = "") -> str:
    """Bytes never raise: what is not UTF-8 becomes U+FFFD, also a character cut in two by the limit."""
    text = captured.decode("utf-8", "replace")
    # Lengthened in place: ten megabytes need not be copied for the sake of a line.
    if truncated:
        text += f"\n{TRUNCATION_MARK}"
    if last_line:
        text += last_line if not text or text.endswith("\n") else f"\n{last_line}"
    return text


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _hint_for(command: ScriptCommand, stderr: str) -> str:
    tail = stderr[-4000:]
    if program := _missing_program(tail, command.environment.get("PATH", os.defpath)):
        return MISSING_PROGRAM.format(program)
    for pattern, sentence in KNOWN_CAUSES:
        if found := re.search(pattern, tail, re.ASCII):
            # What another language starts is some Python of the system's, nobody here knows which.
            python = command.argv[0] if command.interpreter.startswith("python") else "the python3 that it starts"
            return sentence.format(found[1], python=python)
    return _hint_about_place(command)


def _missing_program(stderr: str, path: str) -> str:
    """Its name where no folder of PATH has it, else nothing: what a script wrote proves nothing by itself."""
    lines = stderr.splitlines()[-_LINES:]
    is_starting = any(_STARTING.search(line) for line in lines)
    for line in reversed(lines):
        spoken = _SPOKEN.search(line)
        name = next(filter(None, spoken.groupdict().values()), "") if spoken else ""
        if not name and is_starting and (raised := _PYTHON.match(line)):
            name = raised["name"]
        if name:
            return "" if _may_be_on(path, name) else name
    return ""


def _may_be_on(path: str, name: str) -> bool:
    """A folder that is not absolute was looked for from wherever the script was."""
    folders = path.split(os.pathsep)
    return any(not os.path.isabs(each) or os.path.lexists(os.path.join(each, name)) for each in folders)


def _hint_about_place(command: ScriptCommand) -> str:
    """People name files from where they are; a script starts elsewhere."""
    workspace = str(command.workspace or "")
    for word in command.script_arguments if workspace else ():
        meant = os.path.normpath(os.path.join(workspace, word))
        is_below = meant.startswith(workspace + os.sep) and can_be_shown(meant)
        is_elsewhere = not os.path.isabs(word) and is_below and not os.path.lexists(os.path.join(command.cwd, word))
        if is_elsewhere and os.path.lexists(meant):
            return (
                f"{word!r} is in the workspace, but the script starts in its skill's folder; name it as {meant}, "
                "or set the policy key working_directory to 'workspace'."
            )
    return ""


def _one_line(text: str) -> str:
    """A name may hold line breaks, and must not write lines of its own into a log."""
    return text if text.isprintable() else "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _log_outcome(command: ScriptCommand, ended: ProcessExit, name: str | None) -> None:
    who = {"skill": command.skill_name, "script": command.script_name}
    place = _one_line(f"{command.skill_name}: {command.script_name}")
    if ended.timed_out:
        run_log.warning("%s timed out after %g s", place, command.timeout, extra={**who, "timeout": command.timeout})
    elif name and not ended.cancelled:
        run_log.error("%s died of %s", place, name, extra={**who, "signal": name})
    for stream, kept, size in (
        ("stdout", len(ended.stdout), ended.stdout_bytes),
        ("stderr", len(ended.stderr), ended.stderr_bytes),
    ):
        if size > kept:
            message = "%s wrote %d bytes to %s; the first %d are kept"
            run_log.warning(message, place, size, stream, kept, extra={**who, "stream": stream, "size": size})
