"""A request -> LangGraph's `interrupt`: the run stops, a person answers, the call is made again from its beginning."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.types import Interrupt, interrupt
from pydantic import BaseModel, ConfigDict, Field

from skillkit.core.exceptions import ApprovalUnavailableError
from skillkit.core.values.questions import REASON_CHARACTERS, Cancel, OptionAnswer, OptionRequest, grant_ids
from skillkit.core.values.text import map_texts, visible

__all__ = ["InterruptApprover", "session_of"]

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
