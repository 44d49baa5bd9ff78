"""What a run or a refusal comes to -> the result of a tool call, short enough for a model to read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from skillkit.core.exceptions import (
    ApprovalDeclinedError,
    ApprovalUnavailableError,
    ApprovalWaitingError,
    ContentLoadError,
    InterpreterNotAllowedError,
    InterpreterNotFoundError,
    ScriptNotFoundError,
    ScriptRefusedError,
    SkillKitError,
    SkillNotFoundError,
)
from skillkit.core.values.needs import Need
from skillkit.core.values.runs import TRUNCATION_MARK, ScriptExecutionResult, stop_mark
from skillkit.core.values.text import visible
from skillkit.present.skill_context import ScriptOutput

__all__ = [
    "ASK_A_PERSON",
    "MISSING_FOR_COMMANDS",
    "SHOWN_CHARACTERS",
    "STATUS_WORDS",
    "RefusalStatus",
    "ScriptToolResult",
    "both_streams",
    "cause_text",
    "refusal_status",
    "refusal_text",
    "refused_needs",
    "run_status",
    "run_text",
    "shorten",
    "told_output",
    "written_stderr",
]

SHOWN_CHARACTERS = 30_000
RefusalStatus = Literal["declined", "approval_unavailable", "not_found", "refused", "waiting"]
STATUS_OF_ERROR: dict[type[SkillKitError], RefusalStatus] = {
    ApprovalDeclinedError: "declined",
    ApprovalWaitingError: "waiting",
    ApprovalUnavailableError: "approval_unavailable",
}
MISSING = (SkillNotFoundError, ScriptNotFoundError, ContentLoadError)
MISSING_FOR_COMMANDS = (SkillNotFoundError, ScriptNotFoundError, InterpreterNotFoundError)
"""Where a command is typed, as in a shell: its interpreter belongs to what can be missing."""
ASK_A_PERSON = "Only a person can give it that: show them the command, and try again afterwards."
LACKS = "Its code uses what it does not have here: "
LISTED_NEEDS = 3
STATUS_WORDS = {
    "ok": "done",
    "needs_packages": "failed, it needs packages",
    "timeout": "stopped, its time was over",
    "declined": "not approved",
    "approval_unavailable": "not run, nobody could approve it",
    "not_found": "not found",
    "invalid_arguments": "not run, its arguments do not fit",
    "needs_arguments": "not run, it needs arguments",
    "refused": "not run",
    "waiting": "not run yet, a person is asked",
}
"""A status in words for people."""


@dataclass(frozen=True, slots=True)
class ScriptToolResult:
    """What goes back to a model for one tool call; `status` and `result` are for the program that made it."""

    tool_use_id: str | None
    content: str
    is_error: bool = False
    status: str = "ok"
    """ok, failed, timeout, needs_packages, declined, approval_unavailable, waiting, not_found, invalid_arguments or
    refused.
    """
    result: ScriptExecutionResult | None = None
    """How the script ended, where one ran."""
    commands: tuple[ScriptOutput, ...] = ()
    """What became of each command of the instructions, where a skill was loaded."""
    needs: tuple[Need, ...] = ()
    """What the script lacked, where that is why it failed or did not run; a person alone can give it."""
    type: str = "tool_result"

    def to_anthropic(self) -> dict[str, Any]:
        """A content block for the user message that answers a `tool_use`."""
        return {
            "type": self.type,
            "tool_use_id": self.tool_use_id,
            "content": self.content,
            "is_error": self.is_error,
        }

    def to_openai(self) -> dict[str, Any]:
        """A message that answers a tool call."""
        return {"role": "tool", "tool_call_id": self.tool_use_id, "content": self.content}


def run_status(result: ScriptExecutionResult) -> Literal["ok", "failed", "timeout", "needs_packages"]:
    if result.timed_out:
        return "timeout"
    if result.needs_packages:
        return "needs_packages"
    return "ok" if result.success else "failed"


def told_output(result: ScriptExecutionResult) -> str:
    """Stdout of a success; stderr of a failure, else its stdout, else how it ended.

    Of a run that was stopped both: no word of the script's own says why, and what it had printed says how far it came.
    """
    if result.success:
        return result.stdout
    if stop_mark(result, result.signal):
        return both_streams(result)
    nothing = f"The script ended with exit code {result.exit_code} and printed nothing."
    if written_stderr(result).strip():
        return result.stderr
    return result.stdout if result.stdout.strip() else nothing


def both_streams(result: ScriptExecutionResult) -> str:
    """Stdout, then stderr, which ends with how the run was stopped."""
    return "\n".join(text for text in (result.stdout.rstrip("\n"), result.stderr) if text.strip())


def written_stderr(result: ScriptExecutionResult) -> str:
    """What the script wrote there itself: that it was stopped or its output cut are the runner's words."""
    text = result.stderr.removesuffix(stop_mark(result, result.signal))
    return text.rstrip("\n").removesuffix(TRUNCATION_MARK) if result.stderr_truncated else text


def run_text(result: ScriptExecutionResult, rest: str = "", limit: int = SHOWN_CHARACTERS) -> str:
    """As much of the output as a model should read, and the known cause of a failure."""
    shown = shorten(told_output(result), rest, limit)
    said = cause_text(result)
    return f"{shown.rstrip()}\n\n{said}" if said else shown


def cause_text(result: ScriptExecutionResult) -> str:
    """Why a run failed, where that is known; what it lacks, and that a person alone can give it."""
    untold = [need for need in result.needs if not need.remedy or need.remedy not in result.hint]
    listed = "; ".join(f"{need.kind.replace('_', ' ')} {need.name} ({need.remedy})" for need in untold[:LISTED_NEEDS])
    more = f" and {len(untold) - LISTED_NEEDS} more" if len(untold) > LISTED_NEEDS else ""
    lacks = visible(f"{LACKS}{listed}{more}.") if untold else ""
    asks = ASK_A_PERSON if result.needs or result.needs_packages else ""
    return "\n".join(filter(None, (result.hint, lacks, asks)))


def shorten(text: str, rest: str = "", limit: int = SHOWN_CHARACTERS) -> str:
    """Its beginning and its end, with a note between them of how much is missing and where it is."""
    missing, tail = len(text) - limit, limit // 3
    if missing <= 0:
        return text
    where = rest or "Ask for less, by the script's own options."
    note = f"[... {missing:,} of {len(text):,} characters are left out here. {where} ...]"
    return f"{text[: limit - tail]}\n{note}\n{text[-tail:]}"


def refusal_status(error: SkillKitError, missing: tuple[type[SkillKitError], ...] = MISSING) -> RefusalStatus:
    """The one word for why nothing ran; `missing` are the errors that say: there is no such thing."""
    if isinstance(error, missing):
        return "not_found"
    for kind, status in STATUS_OF_ERROR.items():
        if isinstance(error, kind):
            return status
    return "refused"


def refused_needs(error: SkillKitError | None) -> tuple[Need, ...]:
    """What a script was refused for want of, where a person can give it."""
    if not isinstance(error, InterpreterNotAllowedError) or not error.remedy:
        return ()
    return (Need("interpreter", error.interpreter, "inferred", "", remedy=error.remedy),)


def refusal_text(status: str, message: str, error: SkillKitError | None = None) -> str:
    """A structure, so that a program can tell why nothing ran; the message is for the model."""
    structure: dict[str, Any] = {"status": status, "message": message}
    if isinstance(error, ScriptRefusedError) and error.reasons:
        structure["reasons"] = list(error.reasons)
    if needs := refused_needs(error):
        structure["needs"] = [{"kind": need.kind, "name": need.name, "remedy": need.remedy} for need in needs]
        structure["message"] = f"{message} {ASK_A_PERSON}"
    if isinstance(error, SkillNotFoundError | ScriptNotFoundError):
        structure["available"] = list(error.available)
    text = json.dumps(structure, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(structure)  # a file's name may be no UTF-8
