"""What a run or a refusal comes to -> the result of a tool call, short enough for a model to read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from skillkit.core.exceptions import (
    ApprovalDeclinedError,
    ApprovalUnavailableError,
    ContentLoadError,
    ScriptNotFoundError,
    ScriptRefusedError,
    SkillKitError,
    SkillNotFoundError,
)
from skillkit.core.runs import ScriptExecutionResult

__all__ = [
    "SHOWN_CHARACTERS",
    "ScriptToolResult",
    "refusal_status",
    "refusal_text",
    "run_status",
    "run_text",
    "shortened",
    "told_output",
]

SHOWN_CHARACTERS = 30_000


@dataclass(frozen=True, slots=True)
class ScriptToolResult:
    """What goes back to a model for one tool call; `status` and `result` are for the program that made it."""

    tool_use_id: str | None
    content: str
    is_error: bool = False
    status: str = "ok"
    """ok, failed, timeout, declined, approval_unavailable, not_found, invalid_arguments or refused."""
    result: ScriptExecutionResult | None = None
    """How the script ended, where one ran."""
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


def run_status(result: ScriptExecutionResult) -> Literal["ok", "failed", "timeout"]:
    if result.timed_out:
        return "timeout"
    return "ok" if result.success else "failed"


def told_output(result: ScriptExecutionResult) -> str:
    """Stdout of a success; stderr of a failure, else its stdout, else how it ended."""
    if result.success:
        return result.stdout
    nothing = f"The script ended with exit code {result.exit_code} and printed nothing."
    return next((text for text in (result.stderr, result.stdout) if text.strip()), nothing)


def run_text(result: ScriptExecutionResult, rest: str = "", limit: int = SHOWN_CHARACTERS) -> str:
    """As much of the output as a model should read, and the known cause of a failure."""
    shown = shortened(told_output(result), rest, limit)
    return f"{shown.rstrip()}\n\n{result.hint}" if result.hint else shown


def shortened(text: str, rest: str = "", limit: int = SHOWN_CHARACTERS) -> str:
    """Its beginning and its end, with a note between them of how much is missing and where it is."""
    missing, tail = len(text) - limit, limit // 3
    if missing <= 0:
        return text
    where = rest or "Ask for less, by the script's own options."
    note = f"[... {missing:,} of {len(text):,} characters are left out here. {where} ...]"
    return f"{text[: limit - tail]}\n{note}\n{text[-tail:]}"


def refusal_status(error: SkillKitError) -> str:
    if isinstance(error, ApprovalDeclinedError):
        return "declined"
    if isinstance(error, ApprovalUnavailableError):
        return "approval_unavailable"
    is_missing = isinstance(error, SkillNotFoundError | ScriptNotFoundError | ContentLoadError)
    return "not_found" if is_missing else "refused"


def refusal_text(status: str, message: str, error: SkillKitError | None = None) -> str:
    """A structure, so that a program can tell why nothing ran; the message is for the model."""
    structure: dict[str, Any] = {"status": status, "message": message}
    if isinstance(error, ScriptRefusedError) and error.reasons:
        structure["reasons"] = list(error.reasons)
    if isinstance(error, SkillNotFoundError | ScriptNotFoundError):
        structure["available"] = list(error.available)
    text = json.dumps(structure, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(structure)  # a file's name may be no UTF-8
