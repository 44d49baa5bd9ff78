"""What LangChain tools share: a tool that knows its call, how a script runs in a graph and is told, interrupts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import StructuredTool, ToolException
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.types import Interrupt, interrupt
from pydantic import BaseModel, ConfigDict, Field

from skillkit.core.exceptions import ApprovalUnavailableError, SkillKitError
from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill
from skillkit.core.resolve import CallArguments
from skillkit.core.run.aio import run_in_thread
from skillkit.core.values.questions import REASON_CHARACTERS, Cancel, OptionAnswer, OptionRequest, grant_ids
from skillkit.core.values.runs import NO_CONTROL, RunControl, ScriptExecutionResult
from skillkit.core.values.text import map_texts, visible
from skillkit.present.tool_result import ASK_A_PERSON, refusal_status, refused_needs, run_text, shorten, told_output

__all__ = [
    "CallTool",
    "InterruptApprover",
    "Ran",
    "ScriptFailedError",
    "ScriptNotRunError",
    "arun_script",
    "call_in",
    "error_content",
    "run_script",
    "session_in",
    "session_of",
]

Word = Literal["yes_once", "yes_in_session", "no"]


class AnswerWithGrants(BaseModel):
    """An option, what is ticked of what the question offers, and with a no what the model is told."""

    model_config = ConfigDict(extra="forbid")

    option_id: Word
    grants: list[str] = Field(default_factory=list)
    reason: str = Field(default="", max_length=REASON_CHARACTERS)


Answer = Word | AnswerWithGrants

# LangGraph names none of these in its public modules. Where one is missing, nobody can be asked.
CHECKPOINTER = "__pregel_checkpointer"
TASK = "__pregel_task_id"
INTERRUPTED = "__interrupt__"

LOOK_SECONDS = 30


class InterruptApprover:
    """Leaves the graph with a question and comes back with the answer; needs a checkpointer.

    What `interrupt` raises passes through: it is not a refusal.
    """

    channel = "interrupt"

    def __init__(self, config: RunnableConfig, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._place: Mapping[str, Any] = config.get("configurable") or {}
        self._loop = loop

    @property
    def is_available(self) -> bool:
        """Whether this is a step of a graph that can be continued."""
        return bool(self._place.get(CHECKPOINTER)) and bool(self._place.get(TASK))

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:  # noqa: ARG002
        said: Answer = interrupt(_payload_of(request), response_schema=Answer)  # type: ignore[call-overload]
        self._require_asked(request)
        given = AnswerWithGrants.model_validate({"option_id": said} if isinstance(said, str) else said)
        ticks = grant_ids(given.grants)
        return OptionAnswer(given.option_id, self.channel, time.time(), request.id, ticks, given.reason)

    def _require_asked(self, request: OptionRequest) -> None:
        """LangGraph gives answers by their order in a step, and calls that share a step may change places."""
        try:
            asked = [each.value.get("id") for each in self._questions() if isinstance(each.value, dict)]
        except Exception as error:
            reason = f"the checkpointer does not tell which call was asked ({type(error).__name__}: {error})"
            raise ApprovalUnavailableError.because(reason, "Use another one.") from error
        if request.id not in asked:
            raise ApprovalUnavailableError.because(
                "the answer was given to another call of the same step of the graph",
                "Make one call at a time, or let each call be a step of its own.",
            )

    def _questions(self) -> Iterator[Interrupt]:
        """What this step asked, as the checkpointer has it."""
        folder = str(self._place.get("checkpoint_ns") or "").rpartition("|")[0]
        kept = self._checkpoint({"thread_id": self._place.get("thread_id"), "checkpoint_ns": folder})
        for task, channel, value in (kept.pending_writes if kept else None) or ():
            if task == self._place[TASK] and channel == INTERRUPTED:
                yield from value

    def _checkpoint(self, place: dict[str, Any]) -> CheckpointTuple | None:
        """Of an async graph by its own loop: its checkpointer may know no other way."""
        saver: BaseCheckpointSaver[Any] = self._place[CHECKPOINTER]
        if self._loop is None:
            return saver.get_tuple({"configurable": place})
        looking = asyncio.run_coroutine_threadsafe(saver.aget_tuple({"configurable": place}), self._loop)
        return looking.result(LOOK_SECONDS)


def _payload_of(request: OptionRequest) -> dict[str, Any]:
    """What the client shows: the question, what would run, and the three answers."""
    shown = {"title": request.title, "message": request.message, **request.context}
    return {
        "type": "skillkit_approval",
        "id": request.id,
        # A skill's words could hide or reorder others.
        **map_texts(visible, shown),
        "options": [{"id": option.id, "label": option.label} for option in request.options],
        # Ids go back as they are; none is ticked beforehand.
        "grants": [{"id": tick.id, "label": visible(tick.label), "warning": tick.warning} for tick in request.grants],
    }


def session_of(config: RunnableConfig) -> str | None:
    """The conversation, as whoever runs the agent named it; a model cannot."""
    thread = (config.get("configurable") or {}).get("thread_id")
    return None if thread is None else str(thread)


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
        asks = f" {ASK_A_PERSON}" if refused_needs(error) else ""
        super().__init__(f"{self.status}: {error}{asks}")


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
