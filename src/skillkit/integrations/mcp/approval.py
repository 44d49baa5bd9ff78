"""A question -> an answer through the client that called us, in either era of the protocol, or through the store.

Theory of operation. Up to 2025-11-25 a server asks its client in the middle of a call and waits. From 2026-07-28 on the
call ends with the question and a state that we seal; the client makes the same call again with the answer, and the
state is good for one answer. A state that is not ours any more, because it is too old or another process gave it out,
counts as none: the question is asked anew. A form that is answered sooner than a person can was not shown to one. Then,
and where the client cannot ask, it is left to whoever shares the world (`local`).
"""

from __future__ import annotations

import asyncio
import json
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, wait
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS, is_version_at_least
from pydantic import ValidationError

from skillkit.core.ask.approvals import Cancellation
from skillkit.core.ask.haste import form_seconds
from skillkit.core.exceptions import ApprovalUnavailableError
from skillkit.core.store.world import LIFETIME_SECONDS
from skillkit.core.values.questions import (
    ANSWER_SECONDS,
    Approver,
    Cancel,
    OptionAnswer,
    OptionRequest,
    Prompt,
)
from skillkit.integrations.mcp import in_unicode
from skillkit.integrations.mcp.local import Asking, Deadline, LocalApprover, Tell, untold
from skillkit.present.form import form_text, headline

__all__ = [
    "STATE_SECONDS",
    "CallAnswers",
    "Context",
    "McpApprover",
    "QuestionReturned",
    "ask_anew",
    "client_approver",
    "is_modern",
    "question_result",
]

FIELD = "answer"
INPUT = "approval"
TICK, NO = "open_", "no"
TITLED_OPTIONS_SINCE = "2025-11-25"
LOOK_SECONDS = 0.05
STATE_SECONDS = ANSWER_SECONDS
COLUMNS = 96
SOURCE_ROWS = 150
BROUGHT = ("requestState", "inputResponses")
INVALID_STATE = "invalid_request_state"
TOO_QUICK = "the client answered its form after {milliseconds} ms, sooner than a person can, so it does not count"
ASK_ELSEWHERE = (
    "Where a client answers by itself, `skillkit mcp --ask-locally` never asks it, and "
    "`skillkit trust add {skill}` is a person's word beforehand."
)

Context = ServerRequestContext[Any, Any]


class QuestionReturned(BaseException):
    """Not a failure: the call ends here, and the client makes it again with the answer to this question."""

    def __init__(self, request: OptionRequest) -> None:
        super().__init__(request.title)
        self.request = request


class _ClientNotReachedError(ApprovalUnavailableError):
    """The client did not put the question to anybody."""


class _Said(NamedTuple):
    """What came back from a form, and how long after it was sent."""

    result: types.ElicitResult
    seconds: float

    def answer_to(self, request: OptionRequest) -> OptionAnswer:
        """What no person can have said in that time is no answer, whichever it is."""
        if self.seconds < form_seconds():
            reason = TOO_QUICK.format(milliseconds=round(self.seconds * 1000))
            prompt = Prompt.from_context(request.context)
            skill = shlex.quote(prompt.skill) if prompt is not None else "SKILL"
            raise _ClientNotReachedError.because(reason, ASK_ELSEWHERE.format(skill=skill))
        return _answer_from(request, self.result)


def is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def form_of(request: OptionRequest, protocol_version: str) -> types.ElicitRequestFormParams:
    """Exactly the request's options, none preselected; the same text every time it is asked."""
    if is_version_at_least(protocol_version, TITLED_OPTIONS_SINCE):
        choices: dict[str, Any] = {"oneOf": [{"const": each.id, "title": each.label} for each in request.options]}
    else:
        labels = [option.label for option in request.options]
        choices = {"enum": [option.id for option in request.options], "enumNames": labels}
    field = {"type": "string", "title": in_unicode(headline(request)), **choices}
    schema = {"type": "object", "properties": {FIELD: field, **_tick_fields(request)}, "required": [FIELD]}
    message = in_unicode(form_text(request, COLUMNS, source_rows=SOURCE_ROWS))
    return types.ElicitRequestFormParams(message=message, requested_schema=schema)


def _tick_fields(request: OptionRequest) -> dict[str, dict[str, Any]]:
    """A switch for each thing that a yes may open too, none of them on.

    No room for a reason: a second field that most leave empty is one more step before every yes, and in some hosts'
    forms a trap.
    """
    fields: dict[str, dict[str, Any]] = {}
    for number, tick in enumerate(request.grants, 1):
        field: dict[str, Any] = {"type": "boolean", "title": in_unicode(f"Also open: {tick.label}"), "default": False}
        fields[f"{TICK}{number}"] = {**field, **({"description": tick.warning} if tick.warning else {})}
    return fields


def _ticked(request: OptionRequest, content: Mapping[str, Any], chosen: str) -> tuple[str, ...]:
    """Only what is plainly said counts, and with a no nothing."""
    if chosen == NO:
        return ()
    return tuple(tick.id for number, tick in enumerate(request.grants, 1) if content.get(f"{TICK}{number}") is True)


def _answer_from(request: OptionRequest, said: types.ElicitResult) -> OptionAnswer:
    """Declining is a no; a form that was closed or filled with something else is not an answer."""
    chosen = NO if said.action == "decline" else None
    if said.action == "accept":
        given = (said.content or {}).get(FIELD)
        chosen = next((option.id for option in request.options if given in (option.id, option.label)), None)
    if chosen is None:
        raise ApprovalUnavailableError.because("the question was closed without one of its answers")
    ticks = _ticked(request, said.content or {}, chosen)
    return OptionAnswer(chosen, McpApprover.channel, time.time(), request.id, ticks)


class McpApprover:
    """The client where it can ask, else whoever shares the world; never a terminal, which the client may own."""

    channel = "elicitation"
    expires_in = ANSWER_SECONDS

    def __init__(self, client: Approver | None, local: LocalApprover) -> None:
        self.client = client
        self.local = local

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        return self._ask(request, cancel, self.local.ask)

    def ask_later(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        """A form is waited for, an answer that is given elsewhere is not."""
        return self._ask(request, cancel, self.local.ask_later)

    def _ask(self, request: OptionRequest, cancel: Cancel | None, ask_locally: Asking) -> OptionAnswer:
        if self.client is None:
            return ask_locally(request, cancel)
        try:
            return self.client.ask(request, cancel)
        except _ClientNotReachedError as unreached:
            if cancel is not None and cancel.is_set():
                raise
            return _after(unreached, partial(ask_locally, request, cancel))


def _after(unreached: _ClientNotReachedError, ask: Callable[[], OptionAnswer]) -> OptionAnswer:
    """The answer, or why there is none, with what the client did before."""
    try:
        return replace(ask(), note="; ".join(unreached.reasons))
    except ApprovalUnavailableError as error:
        raise type(error)(f"{unreached} {error}", reasons=[*unreached.reasons, *error.reasons]) from error


class _AskingApprover:
    """Asks the client in the middle of the call, as protocols up to 2025-11-25 do."""

    channel = McpApprover.channel

    def __init__(self, ctx: Context, loop: asyncio.AbstractEventLoop, tell: Tell) -> None:
        self.ctx = ctx
        self.loop = loop
        self.tell = tell

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        form = form_of(request, self.ctx.protocol_version)
        asking = self.ctx.session.elicit_form(form.message, form.requested_schema, self.ctx.request_id)
        sent = time.monotonic()
        asked = asyncio.run_coroutine_threadsafe(asking, self.loop)
        stop = Cancellation(cancel, Deadline(LIFETIME_SECONDS))
        self.tell(f"Waiting for an answer to the form: {headline(request)}")
        try:
            while not wait([asked], LOOK_SECONDS).done:
                if stop.is_set():
                    asked.cancel()
                    raise ApprovalUnavailableError.because("nobody answered in time, or the call was cancelled")
        finally:
            self.tell("")
        try:
            return _Said(asked.result(), time.monotonic() - sent).answer_to(request)
        except CancelledError:
            raise ApprovalUnavailableError.because("the client is gone") from None
        except (MCPError, ValidationError) as error:
            raise _ClientNotReachedError.because(f"the client did not ask: {error}") from error


class _ReturningApprover:
    """Ends the call with its question, as protocols from 2026-07-28 do, unless this call brought the answer."""

    channel = McpApprover.channel

    def __init__(self, given: Mapping[str, _Said]) -> None:
        self.given = given

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:  # noqa: ARG002 - Approver's
        said = self.given.get(request.id)
        if said is None:
            raise QuestionReturned(request)
        return said.answer_to(request)


class CallAnswers:
    """Which answers a call brings; a sealed state is good for one of them, so that no yes counts twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: dict[str, float] = {}

    def of(self, params: types.InputResponseRequestParams) -> dict[str, _Said]:
        """By the id of the question; the state was checked to be ours before it comes here."""
        said = (params.input_responses or {}).get(INPUT)
        if params.request_state is None or not isinstance(said, types.ElicitResult):
            return {}
        state = json.loads(params.request_state)
        seconds = time.monotonic() - state["sent"]
        is_open = seconds < STATE_SECONDS and self._spend(state["call"])
        return {state["asked"]: _Said(said, seconds)} if is_open else {}

    def _spend(self, call: str) -> bool:
        now = time.monotonic()
        with self._lock:
            self._spent = {each: until for each, until in self._spent.items() if until > now}
            is_new = call not in self._spent
            self._spent[call] = now + STATE_SECONDS
        return is_new


def client_approver(
    ctx: Context, params: types.InputResponseRequestParams, answers: CallAnswers, tell: Tell = untold
) -> Approver | None:
    """The client, if it says that it can show a form; `{}` is how older ones say it."""
    capabilities = ctx.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return None
    if is_modern(ctx):
        return _ReturningApprover(answers.of(params))
    return _AskingApprover(ctx, asyncio.get_running_loop(), tell)


def question_result(request: OptionRequest, protocol_version: str) -> types.InputRequiredResult:
    """What a call ends with that has to be made again."""
    state = {"call": secrets.token_hex(16), "asked": request.id, "sent": time.monotonic()}
    form = types.ElicitRequest(params=form_of(request, protocol_version))
    return types.InputRequiredResult(input_requests={INPUT: form}, request_state=json.dumps(state))


async def ask_anew(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Goes around what checks states: a call whose state is not good any more is made as if it had brought none."""
    try:
        return await call_next(ctx)
    except MCPError as error:
        if not isinstance(error.error.data, dict) or error.error.data.get("reason") != INVALID_STATE:
            raise
        bare = {name: value for name, value in (ctx.params or {}).items() if name not in BROUGHT}
        return await call_next(replace(ctx, params=bare))
