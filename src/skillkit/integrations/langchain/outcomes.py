"""What a call came to -> the text a model reads, and the exception behind it where it failed."""

from __future__ import annotations

from langchain_core.tools import ToolException

from skillkit.core.exceptions import SkillKitError
from skillkit.core.runs import ScriptExecutionResult
from skillkit.present.tool_result import refusal_status, run_text, shortened, told_output

__all__ = ["ScriptFailedError", "ScriptNotRunError", "error_content"]


class ScriptFailedError(ToolException):
    """A script ran and failed; the message is its stderr, or its stdout when stderr is empty."""

    def __init__(self, result: ScriptExecutionResult) -> None:
        super().__init__(told_output(result))
        self.result = result


class ScriptNotRunError(ToolException):
    """Nothing ran; the message begins with a word for why, and `error` is what skillkit raised."""

    def __init__(self, error: SkillKitError) -> None:
        self.status = refusal_status(error)
        self.error = error
        super().__init__(f"{self.status}: {error}")


def error_content(error: ToolException) -> str:
    """What the model reads about it, so that the agent can go on; a failure with a known cause names it."""
    return run_text(error.result) if isinstance(error, ScriptFailedError) else shortened(str(error))
