"""What a call came to -> the text a model reads, and the exception behind it where it failed."""

from __future__ import annotations

from langchain_core.tools import ToolException

from skillkit.core.exceptions import SkillKitError
from skillkit.core.runs import ScriptExecutionResult
from skillkit.present.tool_result import refusal_status, shortened

__all__ = ["ScriptFailedError", "ScriptNotRunError", "error_content"]


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
        self.status = refusal_status(error)
        self.error = error
        super().__init__(f"{self.status}: {error}")


def error_content(error: ToolException) -> str:
    """What the model reads about it, so that the agent can go on; a failure with a known cause names it."""
    text = shortened(str(error))
    hint = error.result.hint if isinstance(error, ScriptFailedError) else ""
    return f"{text.rstrip()}\n\n{hint}" if hint else text
