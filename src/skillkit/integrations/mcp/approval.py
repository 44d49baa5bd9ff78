"""A question -> an answer through the client that called us, in either era of the protocol, or through the store.

Theory of operation. Up to 2025-11-25 a server asks its client in the middle of a call and waits. From 2026-07-28 on the
call ends with the question and a state that we seal; the client makes the same call again with the answer, and the
state is good for one answer. A client that cannot ask leaves it to whoever shares the world: the question is kept in
the store, the call waits for a while, and when it is made again it finds the answer.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, wait
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS, is_version_at_least
from pydantic import ValidationError

from skillkit.core.ask.approvals import Cancellation
from skillkit.core.exceptions import ApprovalUnavailableError, RequestClosedError, StateUnavailableError
from skillkit.core.store.world import LIFETIME_SECONDS, World
from skillkit.core.values.questions import REASON_CHARACTERS, Approver, Cancel, OptionAnswer, OptionRequest
from skillkit.integrations.mcp import in_unicode
from skillkit.present.request import form_text

__all__ = [
    "STATE_SECONDS",
    "CallAnswers",
    "Context",
    "LocalApprover",
    "McpApprover",
    "PageAddress",
    "QuestionReturned",
    "client_approver",
    "is_modern",
    "question_result",
]

FIELD = "answer"
INPUT = "approval"
TICK, REASON, NO = "open_", "reason", "no"
TITLED_OPTIONS_SINCE = "2025-11-25"
LOOK_SECONDS = 0.05
STATE_SECONDS = 600.0
COLUMNS = 96
SOURCE_ROWS = 150
HOW_TO_ANSWER = (
    "A person can answer it {page}from a terminal (`skillkit approvals list`); then call the tool again. "
    "Only a person may answer: tell them, and do not answer it yourself."
)
ON_THE_PAGE = "on the page {address} (`skillkit web` logs them in) or "

Context = ServerRequestContext[Any, Any]
PageAddress = Callable[[], str]
"""Where the world's approval page is, made sure of when it is called; "" where there is none."""


class QuestionReturned(BaseException):
    """Not a failure: the call ends here, and the client makes it again with the answer to this question."""

    def __init__(self, request: OptionRequest) -> None:
        super().__init__(request.title)
        self.request = request


class _ClientNotReachedError(ApprovalUnavailableError):
    """The client did not put the question to anybody."""


def is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def form_of(request: OptionRequest, protocol_version: str) -> types.ElicitRequestFormParams:
    """Exactly the request's options, none preselected; the same text every time it is asked."""
    if is_version_at_least(protocol_version, TITLED_OPTIONS_SINCE):
        choices: dict[str, Any] = {"oneOf": [{"const": each.id, "title": each.label} for each in request.options]}
    else:
        labels = [option.label for option in request.options]
        choices = {"enum": [option.id for option in request.options], "enumNames": labels}
    field = {"type": "string", "title": "May it run?", **choices}
    schema = {"type": "object", "properties": {FIELD: field, **_tick_fields(request)}, "required": [FIELD]}
    message = in_unicode(form_text(request, COLUMNS, source_rows=SOURCE_ROWS))
    return types.ElicitRequestFormParams(message=message, requested_schema=schema)


def _tick_fields(request: OptionRequest) -> dict[str, dict[str, Any]]:
    """A switch for each thing that a yes may open too, none of them on; and room for why not."""
    fields: dict[str, dict[str, Any]] = {}
    for number, tick in enumerate(request.grants, 1):
        field: dict[str, Any] = {"type": "boolean", "title": in_unicode(f"Also open: {tick.label}"), "default": False}
        fields[f"{TICK}{number}"] = {**field, **({"description": tick.warning} if tick.warning else {})}
    if any(option.id == NO for option in request.options):
        fields[REASON] = {
            "type": "string",
            "title": "With a no: what the agent is told",
            "maxLength": REASON_CHARACTERS,
        }
    return fields


def _given_with(request: OptionRequest, content: Mapping[str, Any], chosen: str) -> tuple[tuple[str, ...], str]:
    """What was ticked, and why not; only what is plainly said counts."""
    reason = content.get(REASON)
    said = reason[:REASON_CHARACTERS] if isinstance(reason, str) else ""
    if chosen == NO:
        return (), said
    return tuple(
        tick.id for number, tick in enumerate(request.grants, 1) if content.get(f"{TICK}{number}") is True
    ), said


def _answer_from(request: OptionRequest, said: types.ElicitResult) -> OptionAnswer:
    """Declining is a no; a form that was closed or filled with something else is not an answer."""
    chosen = NO if said.action == "decline" else None
    if said.action == "accept":
        given = (said.content or {}).get(FIELD)
        chosen = next((option.id for option in request.options if given in (option.id, option.label)), None)
    if chosen is None:
        raise ApprovalUnavailableError.because("the question was closed without one of its answers")
    return OptionAnswer(
        chosen, McpApprover.channel, time.time(), request.id, *_given_with(request, said.content or {}, chosen)
    )


class McpApprover:
    """The client where it can ask, else whoever shares the world; never a terminal, which the client may own."""

    channel = "elicitation"
    expires_in = LIFETIME_SECONDS

    def __init__(self, client: Approver | None, local: Approver) -> None:
        self.client = client
        self.local = local

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        if self.client is not None:
            try:
                return self.client.ask(request, cancel)
            except _ClientNotReachedError:
                if cancel is not None and cancel.is_set():
                    raise
        return self.local.ask(request, cancel)


class _AskingApprover:
    """Asks the client in the middle of the call, as protocols up to 2025-11-25 do."""

    channel = McpApprover.channel

    def __init__(self, ctx: Context, loop: asyncio.AbstractEventLoop) -> None:
        self.ctx = ctx
        self.loop = loop

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        form = form_of(request, self.ctx.protocol_version)
        asking = self.ctx.session.elicit_form(form.message, form.requested_schema, self.ctx.request_id)
        asked = asyncio.run_coroutine_threadsafe(asking, self.loop)
        stop = Cancellation(cancel, _Deadline(LIFETIME_SECONDS))
        while not wait([asked], LOOK_SECONDS).done:
            if stop.is_set():
                asked.cancel()
                raise ApprovalUnavailableError.because("nobody answered in time, or the call was cancelled")
        try:
            return _answer_from(request, asked.result())
        except CancelledError:
            raise ApprovalUnavailableError.because("the client is gone") from None
        except (MCPError, ValidationError) as error:
            raise _ClientNotReachedError.because(f"the client did not ask: {error}") from error


class _ReturningApprover:
    """Ends the call with its question, as protocols from 2026-07-28 do, unless this call brought the answer."""

    channel = McpApprover.channel

    def __init__(self, given: Mapping[str, types.ElicitResult]) -> None:
        self.given = given

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:  # noqa: ARG002 - Approver's
        said = self.given.get(request.id)
        if said is None:
            raise QuestionReturned(request)
        return _answer_from(request, said)


class CallAnswers:
    """Which answers a call brings; a sealed state is good for one of them, so that no yes counts twice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: dict[str, float] = {}

    def of(self, params: types.InputResponseRequestParams) -> dict[str, types.ElicitResult]:
        """By the id of the question; the state was checked to be ours before it comes here."""
        said = (params.input_responses or {}).get(INPUT)
        if params.request_state is None or not isinstance(said, types.ElicitResult):
            return {}
        state = json.loads(params.request_state)
        return {state["asked"]: said} if self._spend(state["call"]) else {}

    def _spend(self, call: str) -> bool:
        now = time.monotonic()
        with self._lock:
            self._spent = {each: until for each, until in self._spent.items() if until > now}
            is_new = call not in self._spent
            self._spent[call] = now + STATE_SECONDS
        return is_new


def client_approver(ctx: Context, params: types.InputResponseRequestParams, answers: CallAnswers) -> Approver | None:
    """The client, if it says that it can show a form; `{}` is how older ones say it."""
    capabilities = ctx.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return None
    return (
        _ReturningApprover(answers.of(params)) if is_modern(ctx) else _AskingApprover(ctx, asyncio.get_running_loop())
    )


def question_result(request: OptionRequest, protocol_version: str) -> types.InputRequiredResult:
    """What a call ends with that has to be made again."""
    state = {"call": secrets.token_hex(16), "asked": request.id}
    form = types.ElicitRequest(params=form_of(request, protocol_version))
    return types.InputRequiredResult(input_requests={INPUT: form}, request_state=json.dumps(state))


class _Deadline:
    """A reason to stop waiting that comes with time."""

    def __init__(self, seconds: float) -> None:
        self.until = time.monotonic() + seconds

    def is_set(self) -> bool:
        return time.monotonic() >= self.until


class LocalApprover:
    """The world's store, for a while; the question stays open, and the same call made later finds its answer."""

    channel = "store"

    def __init__(self, state_dir: Path, wait_seconds: float, page: PageAddress | None = None) -> None:
        self.state_dir = state_dir
        self.wait_seconds = wait_seconds
        self.page = page

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        lifetime = max(LIFETIME_SECONDS, self.wait_seconds)
        address = self.page() if self.page is not None else ""
        stop = Cancellation(cancel, _Deadline(self.wait_seconds))
        try:
            with World(self.state_dir) as world:
                world.open(request, expires_in=lifetime, single_use=request.single_use)
                return world.wait(request.id, cancel=stop)
        except (RequestClosedError, StateUnavailableError) as error:
            reason = "the question cannot be kept for a person"
            raise ApprovalUnavailableError(f"Not approved: {reason}: {error}", reasons=[reason]) from error
        except ApprovalUnavailableError as error:
            if cancel is not None and cancel.is_set():
                raise
            # The page's address is not a secret; a link that logs in never stands here, for a model reads this.
            page = ON_THE_PAGE.format(address=address) if address else ""
            remedy = f"The question stays open for {lifetime:g} s. {HOW_TO_ANSWER.format(page=page)}"
            raise ApprovalUnavailableError.because(f"nobody answered within {self.wait_seconds:g} s", remedy) from error
