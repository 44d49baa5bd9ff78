"""What became of a command in a model's text: a status, the result if it ran, and one short line for the person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skillkit.core.exceptions import (
    ApprovalDeclinedError,
    ApprovalUnavailableError,
    AuditUnavailableError,
    InterpreterNotFoundError,
    ScriptNotFoundError,
    SkillKitError,
    SkillNotFoundError,
)
from skillkit.core.runs import ScriptExecutionResult
from skillkit.integrations.inline.syntax import Command
from skillkit.present.terminal import cut, visible
from skillkit.present.tool_result import run_status

__all__ = ["CommandOutcome", "Status", "outcome_of_error", "outcome_of_result"]

Status = Literal["ok", "failed", "timeout", "cancelled", "declined", "approval_unavailable", "not_found", "refused"]

NAME_COLUMNS = 80
LINE_COLUMNS = 300
SAID = {
    "declined": "not approved",
    "approval_unavailable": "not run, nobody could approve it",
    "not_found": "not found",
    "refused": "not run",
}
STATUS_OF_ERROR: tuple[tuple[type[SkillKitError] | tuple[type[SkillKitError], ...], Status], ...] = (
    (ApprovalDeclinedError, "declined"),
    (ApprovalUnavailableError, "approval_unavailable"),
    ((ScriptNotFoundError, SkillNotFoundError, InterpreterNotFoundError), "not_found"),
)


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """`detail` says why, where there is a why; `output` is what goes back to the model."""

    command: Command
    status: Status
    detail: str = ""
    result: ScriptExecutionResult | None = None

    @property
    def output(self) -> str:
        """What it wrote; of a failure both streams, of one that did not run the reason."""
        if self.result is None:
            return self.detail
        if self.status == "ok":
            return self.result.stdout
        return "\n".join(part for part in (self.result.stdout.rstrip("\n"), self.result.stderr) if part)

    @property
    def line(self) -> str:
        """For a person, on one line, without anything that a terminal would obey."""
        name = cut(visible(self.command.body), NAME_COLUMNS)
        return cut(visible(f"[{name}: {self._said()}]"), LINE_COLUMNS)

    def _said(self) -> str:
        if self.result is None:
            return f"{SAID.get(self.status, self.status)}: {self.detail}" if self.detail else self.status
        seconds = f"{self.result.execution_time_ms / 1000:.1f} s"
        if self.status in ("ok", "cancelled"):
            return f"{'done' if self.status == 'ok' else 'cancelled'}, {seconds}"
        if self.status == "timeout":
            return f"stopped after {seconds}, its time was over"
        why = f"killed by {self.result.signal}" if self.result.signal else f"exit code {self.result.exit_code}"
        last = self.detail or self.result.stderr.strip().rpartition("\n")[2]
        return f"failed, {why}" + (f": {last}" if last else "")


def outcome_of_result(command: Command, result: ScriptExecutionResult) -> CommandOutcome:
    return CommandOutcome(command, "cancelled" if result.cancelled else run_status(result), result.hint, result)


def outcome_of_error(command: Command, error: SkillKitError) -> CommandOutcome:
    """A refusal is a status like any other; it never ends the answer."""
    if isinstance(error, AuditUnavailableError) and isinstance(error.result, ScriptExecutionResult):
        return CommandOutcome(command, "failed", str(error), error.result)
    refused: Status = "refused"
    status = next((status for kinds, status in STATUS_OF_ERROR if isinstance(error, kinds)), refused)
    return CommandOutcome(command, status, str(error))
