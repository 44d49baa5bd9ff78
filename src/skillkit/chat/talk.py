"""A question -> rounds of answers: text, commands in it and tool calls, within one budget; keeps the conversation."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any

from skillkit.chat.endpoint import ChatMessage, Endpoint, ToolCall
from skillkit.chat.events import Event, Note, ToolOutcome
from skillkit.core.exceptions import ModelUnavailableError
from skillkit.integrations.functions import SkillFunctions
from skillkit.integrations.inline.loop import Answer, Budget, Spending, Stop
from skillkit.integrations.inline.processor import InlineProcessor
from skillkit.integrations.tool_schemas import TOOLS, parse_arguments
from skillkit.present.tool_result import ScriptToolResult

__all__ = ["Talk"]

RUNNING_TOOL, LOADING_TOOL = "skills_run_script", "load_skill"
NO_TOOLS = "This model cannot call tools; skills' commands are read from its text instead."
GO_ON, NO_WORDS = "Go on.", "…"
NOT_RUN = "It was not run: {reason}."


class Talk:
    """One conversation; `show` gets everything as it comes."""

    def __init__(
        self,
        endpoint: Endpoint,
        processor: InlineProcessor,
        functions: SkillFunctions,
        *,
        system: Callable[[bool], str],
        show: Callable[[Event], None],
        wait: Callable[[], None] = lambda: None,
        running: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
        is_stopped: Callable[[], bool] = lambda: False,
        begin: Callable[[], None] = lambda: None,
        tools: bool | str = "auto",
        budget: Budget | None = None,
    ) -> None:
        """`system` gives the system prompt, for a model with tools or without; `wait` is called before each answer.

        `running` is entered while something runs; `is_stopped` says that a person said no, and nothing else, since
        `begin` was called, before the first answer to a question.
        """
        self.endpoint = endpoint
        self.messages: list[ChatMessage] = []
        self._processor = processor
        self._functions = functions
        self._system = system
        self._show = show
        self._wait = wait
        self._running = running
        self._is_stopped = is_stopped
        self._begin = begin
        self._budget = budget or Budget()
        self._calls_tools = tools in (True, "auto")
        self._may_fall_back = tools == "auto"
        self._unanswered = ""
        self._is_broken = False
        self._has_acted = False

    @property
    def is_unanswered(self) -> bool:
        """Whether nothing came of the last question."""
        return bool(self._unanswered)

    def ask(self, question: str) -> Stop:
        """A question that nothing came of is taken out again, and `retry` asks it once more."""
        self._unanswered = question
        self.messages.append({"role": "user", "content": question})
        count = len(self.messages)
        try:
            return self._rounds()
        finally:
            if len(self.messages) == count:
                self.messages.pop()
            else:
                self._unanswered = ""

    def retry(self) -> Stop | None:
        """What was not answered to its end, again; None if the conversation is not open."""
        if self._unanswered:
            return self.ask(self._unanswered)
        if not self._is_broken:
            return None
        if self.messages[-1]["role"] != "assistant":
            return self._rounds()
        if self._has_acted:  # what was done must not be done twice
            return self.ask(GO_ON)
        self.messages.pop()
        return self.ask(str(self.messages.pop()["content"]))

    def _rounds(self) -> Stop:
        self._is_broken = True
        self._begin()
        stopped = self._bounded_rounds()
        self._is_broken = stopped != "answered"
        return stopped

    def _bounded_rounds(self) -> Stop:
        spending = Spending(self._budget)
        self._has_acted = False
        for number in range(1, self._budget.rounds + 1):
            answer, calls = self._one_answer(spending)
            self._answer_calls(calls, spending, is_last=number == self._budget.rounds)
            if answer.captured:
                self.messages.append({"role": "user", "content": answer.data_for_model()})
            if self._is_stopped():
                return "declined"
            if spending.used_up:
                return spending.used_up
            if not (answer.captured or calls):
                return "answered"
            self._has_acted = True
        return "rounds"

    def _one_answer(self, spending: Spending) -> tuple[Answer, list[ToolCall]]:
        """What came before an interruption is kept; a tool call that may be incomplete is not."""
        answer, calls = Answer(self._processor, spending, self._show), []

        def texts() -> Generator[str, None, None]:
            with closing(self._chunks()) as chunks:
                for chunk in chunks:
                    if isinstance(chunk, ToolCall):
                        calls.append(chunk)
                    elif self._is_stopped():
                        return
                    else:
                        with self._running("a command of the model"):
                            yield chunk

        is_whole = False
        try:
            answer.read(texts())
            is_whole = True
        finally:
            self._has_acted = self._has_acted or answer.has_acted
            self._keep("".join(answer.written), calls if is_whole else [])
        return answer, calls

    def _keep(self, text: str, calls: Sequence[ToolCall]) -> None:
        """An answer of nothing but commands is one too: else its question would be asked, and they run, again."""
        text = text or (NO_WORDS if self._has_acted and not calls else "")
        if text or calls:
            told = {"tool_calls": [call.to_openai() for call in calls]} if calls else {}
            self.messages.append({"role": "assistant", "content": text, **told})

    def _chunks(self) -> Generator[str | ToolCall, None, None]:
        """Of one answer; an endpoint that wants no tools is asked again without them, once and for all."""
        try:
            for chunk in self._stream():
                self._may_fall_back = self._may_fall_back and not chunk
                yield chunk
        except ModelUnavailableError as error:
            if not (self._calls_tools and self._may_fall_back and error.is_about_tools):
                raise
            self._calls_tools = False
            self._show(Note(NO_TOOLS))
            yield from self._stream()

    def _stream(self) -> Iterator[str | ToolCall]:
        self._wait()
        tools = self._tools() if self._calls_tools else []
        system = self._system(bool(tools))
        head = [{"role": "system", "content": system}] if system else []
        return self.endpoint.stream([*head, *self.messages], tools)

    def _tools(self) -> list[dict[str, Any]]:
        """Without leave to run scripts, a tool that would run them is not even offered."""
        may_run = self._functions.run_scripts
        listed = {skill.name for skill in self._functions.skills()}  # by the system prompt
        return [tool.to_openai() for tool in self._functions.tools(listed) if may_run or tool.name != RUNNING_TOOL]

    def _answer_calls(self, calls: Sequence[ToolCall], spending: Spending, *, is_last: bool) -> None:
        """Every call gets an answer, whatever stops them: an endpoint takes no conversation without."""
        answered = 0
        reason = "the person stopped it"
        try:
            for call in calls:
                if is_last or spending.used_up:
                    reason = "what one question may use is used up"
                    break
                if self._is_stopped():
                    break
                self.messages.append(self._call(call, spending))
                answered += 1
        finally:
            for call in calls[answered:]:
                self._show(ToolOutcome(call.name, call.arguments, "not run", reason))
                self.messages.append(_tool_message(call, NOT_RUN.format(reason=reason)))

    def _call(self, call: ToolCall, spending: Spending) -> ChatMessage:
        with self._running(_running_name(call)):
            result = self._functions.call(call.name, call.arguments, call.id)
        if result.result is not None:
            spending.seconds += result.result.execution_time_ms / 1000
        for outcome in _outcomes_of(call, result):
            self._show(outcome)
        return _tool_message(call, self._processor.as_data(spending.take_output(result.content)))


def _running_name(call: ToolCall) -> str:
    """Which script it is, as the model names it."""
    given = parse_arguments(call.arguments) or {}
    return " ".join(str(given[name]) for name in ("skill_name", "script") if given.get(name)) or call.name


def _tool_message(call: ToolCall, content: str) -> ChatMessage:
    return {"role": "tool", "tool_call_id": call.id, "content": content}


def _outcomes_of(call: ToolCall, result: ScriptToolResult) -> Iterator[ToolOutcome]:
    """One for the call, and one for each script that loading a skill ran or did not run."""
    name = call.name if call.name in TOOLS else "unknown tool"
    for command in result.commands:
        yield ToolOutcome("script", f"{command.source} {shlex.join(command.arguments)}".strip(), command.status)
    ran = result.result
    detail = result.content if result.is_error and ran is None and call.name != LOADING_TOOL else ""
    seconds = ran.execution_time_ms / 1000 if ran is not None else None
    yield ToolOutcome(name, call.arguments, result.status, detail, seconds)
