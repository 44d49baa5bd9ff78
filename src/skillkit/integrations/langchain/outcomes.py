"""What a call came to -> the text a model reads, and the exception behind it where it failed."""

from __future__ import annotations

from langchain_core.tools import ToolException

from skillkit.core.exceptions import (
    ApprovalDeclinedError,
    ApprovalUnavailableError,
    ScriptNotFoundError,
    SkillKitError,
    SkillNotFoundError,
)
from skillkit.core.runs import ScriptExecutionResult

__all__ = ["ScriptFailedError", "ScriptNotRunError", "error_content", "shown"]

SHOWN_CHARACTERS = 30_000
TAIL_CHARACTERS = 10_000


class ScriptFailedError(ToolException):
    """A script ran and failed; the message is its stderr, or its stdout when stderr is empty."""

    def __init__(self, result: ScriptExecutionResult) -> None:
        said = result.stderr if result.stderr.strip() else result.stdout
        nothing = f"The script ended with exit code {result.exit_code} and printed nothing."
        super().__init__(said if said.strip() else nothing)
        self.result = result


class ScriptNotRunError(ToolException):
    """Nothing ran; the message begins with a word for why, and `error` is what skillkit raised."""

    def __init__(self, error: SkillKitError) -> None:
        self.status = status_of(error)
        self.error = error
        super().__init__(f"{self.status}: {error}")


def status_of(error: SkillKitError) -> str:
    if isinstance(error, ApprovalDeclinedError):
        return "declined"
    if isinstance(error, ApprovalUnavailableError):
        return "approval_unavailable"
    return "not_found" if isinstance(error, SkillNotFoundError | ScriptNotFoundError) else "refused"


def error_content(error: ToolException) -> str:
    """What the model reads about it, so that the agent can go on; a failure with a known cause names it."""
    text = shown(str(error))
    hint = error.result.hint if isinstance(error, ScriptFailedError) else ""
    return f"{text.rstrip()}\n\n{hint}" if hint else text


def shown(text: str) -> str:
    """Its beginning and its end, with a note between them of how much is missing."""
    missing = len(text) - SHOWN_CHARACTERS
    if missing <= 0:
        return text
    note = f"[... {missing:,} of {len(text):,} characters are left out here; ask the script for less ...]"
    return f"{text[: SHOWN_CHARACTERS - TAIL_CHARACTERS]}\n{note}\n{text[-TAIL_CHARACTERS:]}"
