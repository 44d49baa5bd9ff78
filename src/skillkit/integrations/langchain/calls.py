"""What LangChain tools share: a tool that knows its call, and how a script runs in a graph and is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool, ToolException

from skillkit.core.exceptions import SkillKitError
from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill
from skillkit.core.resolve import CallArguments
from skillkit.core.run.aio import run_in_thread
from skillkit.core.values.runs import NO_CONTROL, RunControl, ScriptExecutionResult
from skillkit.integrations.langchain.interrupts import InterruptApprover, session_of
from skillkit.present.tool_result import refusal_status, run_text, shorten, told_output

__all__ = [
    "CallTool",
    "Ran",
    "ScriptFailedError",
    "ScriptNotRunError",
    "arun_script",
    "call_in",
    "error_content",
    "run_script",
    "session_in",
]

Ran = tuple[str, ScriptExecutionResult]
"""What the model reads, and the tool message's artifact."""

_call_id: ContextVar[str] = ContextVar("skillkit_langchain_call_id", default="")


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
    return run_text(error.result) if isinstance(error, ScriptFailedError) else shorten(str(error))


class CallTool(StructuredTool):
    """A tool that knows which call it answers; so two equal calls are two questions to a person."""

    def run(self, tool_input: str | dict[str, Any], *args: Any, tool_call_id: str | None = None, **more: Any) -> Any:  # noqa: ANN401
        token = _call_id.set(tool_call_id or "")
        try:
            return super().run(tool_input, *args, tool_call_id=tool_call_id, **more)
        finally:
            _call_id.reset(token)

    async def arun(
        self,
        tool_input: str | dict[str, Any],
        *args: Any,  # noqa: ANN401
        tool_call_id: str | None = None,
        **more: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        token = _call_id.set(tool_call_id or "")
        try:
            return await super().arun(tool_input, *args, tool_call_id=tool_call_id, **more)
        finally:
            _call_id.reset(token)


def session_in(manager: SkillManager, config: RunnableConfig) -> str | None:
    """The manager's own, else the graph's thread."""
    return manager.session_id or session_of(config or {})


def call_in(
    manager: SkillManager,
    config: RunnableConfig,
    script: str,
    arguments: object = None,
    argv: Sequence[str] = (),
    stdin: str | None = None,
) -> CallArguments:
    """A call that a model made, in its conversation."""
    session, call_id = session_in(manager, config), _call_id.get()
    argv = tuple(argv)
    return manager.call_for(
        script, arguments, argv=argv, stdin=stdin, session_id=session, agent_facing=True, call_id=call_id
    )


def run_script(manager: SkillManager, skill: Skill, call: CallArguments, config: RunnableConfig) -> Ran:
    return _outcome(manager, skill, call, InterruptApprover(config or {}))


async def arun_script(manager: SkillManager, skill: Skill, call: CallArguments, config: RunnableConfig) -> Ran:
    by_interrupt = InterruptApprover(config or {}, asyncio.get_running_loop())
    return await run_in_thread(partial(_outcome, manager, skill, call, by_interrupt))


def _outcome(
    manager: SkillManager,
    skill: Skill,
    call: CallArguments,
    by_interrupt: InterruptApprover,
    control: RunControl = NO_CONTROL,
) -> Ran:
    """A refusal is told to the model and never ends its run; a framework's own exceptions pass through."""
    asks = manager.approver is None and by_interrupt.is_available
    try:
        result = manager.flow.execute(skill, call, control, approver=by_interrupt if asks else None)
    except SkillKitError as error:
        raise ScriptNotRunError(error) from error
    if not result.success:
        raise ScriptFailedError(result)
    return shorten(result.stdout), result
