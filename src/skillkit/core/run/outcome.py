"""What a process did -> the result a caller sees, without the keys it was given and with one sentence of help."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from skillkit.core.run.guard import SetAside
from skillkit.core.values.masking import NOTHING_MASKED, Masker
from skillkit.core.values.runs import (
    READ_FROM_CODE,
    TIMEOUT_EXIT_CODE,
    TRUNCATION_MARK,
    Artifact,
    Isolation,
    ProcessExit,
    RunControl,
    ScriptCommand,
    ScriptExecutionResult,
    stop_mark,
)

__all__ = ["isolation_seen", "masked_artifacts", "masked_exit", "masked_names", "masked_output", "outcome"]


@contextmanager
def masked_output(masker: Masker, control: RunControl) -> Iterator[RunControl]:
    """The same control, and who listens hears no key, however it is split over writes."""
    listen = control.on_output
    if listen is None or masker is NOTHING_MASKED:
        yield control
        return
    streams = {name: masker.stream(partial(listen, name)) for name in ("stdout", "stderr")}
    yield control._replace(on_output=lambda stream, data: streams[stream].feed(data))
    for stream in streams.values():
        stream.close()


def masked_exit(masker: Masker, ended: ProcessExit) -> ProcessExit:
    """How much was left out stays as it was."""
    if masker is NOTHING_MASKED:
        return ended
    lost_out, lost_err = ended.stdout_bytes - len(ended.stdout), ended.stderr_bytes - len(ended.stderr)
    stdout = masker.mask(ended.stdout, is_cut=lost_out > 0)
    stderr = masker.mask(ended.stderr, is_cut=lost_err > 0)
    return ended._replace(
        stdout=stdout, stderr=stderr, stdout_bytes=len(stdout) + lost_out, stderr_bytes=len(stderr) + lost_err
    )


def masked_names(masker: Masker, moved: tuple[SetAside, ...]) -> tuple[SetAside, ...]:
    """A script chose the names; what is moved away is told to agents, logs and the record alike."""
    if masker is NOTHING_MASKED:
        return moved
    return tuple(each._replace(path=masker.mask_text(each.path), kept=masker.mask_text(each.kept)) for each in moved)


def masked_artifacts(masker: Masker, artifacts: tuple[Artifact, ...]) -> tuple[Artifact, ...]:
    """Under a name without keys; the file keeps its own."""
    if masker is NOTHING_MASKED:
        return artifacts
    return tuple(
        replace(
            each,
            path=Path(masker.mask_text(str(each.path))),
            relative_path=Path(masker.mask_text(str(each.relative_path))),
        )
        for each in artifacts
    )


SIGNAL_BASE = 128
# ILL, TRAP, ABRT, BUS, FPE, KILL, SEGV, XCPU, XFSZ, SYS.
CRASH_SIGNALS = frozenset((4, 5, 6, 7, 8, 9, 11, 24, 25, 31))

run_log = logging.getLogger("skillkit.run")
run_log.addHandler(logging.NullHandler())


def outcome(
    command: ScriptCommand,
    ended: ProcessExit,
    isolation: Isolation,
    artifacts: tuple[Artifact, ...],
    explain: Callable[[str, str], str] | None = None,
) -> ScriptExecutionResult:
    """Only the runner says that a run timed out, was cancelled or died of a signal.

    `explain` says why it failed, by what it wrote to stdout and stderr.
    """
    exit_code = TIMEOUT_EXIT_CODE if ended.timed_out else _status_of(ended, isolation)
    signal_number = -exit_code if exit_code < 0 else None
    name = signal_name(signal_number) if signal_number else None
    stdout_truncated = ended.stdout_bytes > len(ended.stdout)
    stderr_truncated = ended.stderr_bytes > len(ended.stderr)
    if ended.timed_out or name or stdout_truncated or stderr_truncated:
        _log_outcome(command, ended, name)
    stderr = _text_of(ended.stderr, truncated=stderr_truncated, last_line=stop_mark(ended, name))
    stdout = _text_of(ended.stdout, truncated=stdout_truncated)
    return ScriptExecutionResult(
        stdout=stdout,
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
        hint=explain(stdout, stderr) if exit_code and explain and not ended.cancelled else "",
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


def isolation_seen(isolation: Isolation, ended: ProcessExit, *, source: str) -> Isolation:
    """Reach kill by namespace or subreaper, unless somebody was seen to be left all the same."""
    is_exact = isolation.tier != "none" and ended.kill != "incomplete"
    kill = isolation.kill if is_exact else ended.kill
    is_said = (isolation.kill, isolation.skill) == (kill, source)
    return isolation if is_said else replace(isolation, kill=kill, skill=source)
