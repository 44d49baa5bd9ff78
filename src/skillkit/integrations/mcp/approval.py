"""A question -> an answer through the client that called us, in either era of the protocol, or through the store."""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS, is_version_at_least
from pydantic import ValidationError

from skillkit.approvers.store import single_use_of
from skillkit.core.approving import Cancellation
from skillkit.core.decide.requests import LIFETIME_SECONDS, World
from skillkit.core.exceptions import ApprovalUnavailableError, RequestClosedError, StateUnavailableError
from skillkit.core.questions import Approver, Cancel, OptionAnswer, OptionRequest
from skillkit.integrations.mcp.wording import in_unicode
from skillkit.present.request import form_text

__all__ = [
    "CallAnswers",
    "LocalApprover",
    "McpApprover",
    "PageAddress",
    "QuestionReturned",
    "can_elicit",
    "question_result",
]

FIELD = "answer"
INPUT = "approval"
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


class ClientNotReachedError(ApprovalUnavailableError):
    """The client did not put the question to anybody."""


def can_elicit(ctx: Context) -> bool:
    """Whether the client says that it can show a form; `{}` is how older ones say it."""
    capabilities = ctx.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


def is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def form_of(request: OptionRequest, protocol_version: str) -> types.ElicitRequest:
    """Exactly the request's options, none preselected; the same text every time it is asked."""
    ids = [option.id for option in request.options]
    if is_version_at_least(protocol_version, TITLED_OPTIONS_SINCE):
        choices: dict[str, Any] = {"oneOf": [{"const": each.id, "title": each.label} for each in request.options]}
    else:
        choices = {"enum": ids, "enumNames": [option.label for option in request.options]}
    field = {"type": "string", "title": "May it run?", **choices}
    schema = {"type": "object", "properties": {FIELD: field}, "required": [FIELD]}
    message = in_unicode(form_text(request, COLUMNS, source_rows=SOURCE_ROWS))
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def answer_from(request: OptionRequest, said: types.ElicitResult) -> OptionAnswer:
    """Declining is a no; a form that was closed or filled with something else is no answer."""
    chosen = "no" if said.action == "decline" else None
    if said.action == "accept":
        given = (said.content or {}).get(FIELD)
        chosen = next((option.id for option in request.options if given in (option.id, option.label)), None)
    if chosen is None:
        reason = "the question was closed without one of its answers"
        raise ApprovalUnavailableError(f"Not approved: {reason}.", reasons=[reason])
    return OptionAnswer(chosen, McpApprover.channel, time.time(), request.id)


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
            except ClientNotReachedError:
                if cancel is not None and cancel.is_set():
                    raise
        return self.local.ask(request, cancel)


class AskingApprover:
    """Asks the client in the middle of the call, as protocols up to 2025-11-25 do."""

    channel = McpApprover.channel

    def __init__(self, ctx: Context, loop: asyncio.AbstractEventLoop) -> None:
        self.ctx = ctx
        self.loop = loop

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        asked = asyncio.run_coroutine_threadsafe(self._elicited(request), self.loop)
        until = time.monotonic() + LIFETIME_SECONDS
        while True:
            try:
                return answer_from(request, asked.result(LOOK_SECONDS))
            except TimeoutError:
                if asked.done() or not (time.monotonic() > until or (cancel is not None and cancel.is_set())):
                    continue
                asked.cancel()
                reason = "nobody answered in time, or the call was cancelled"
                raise ApprovalUnavailableError(f"Not approved: {reason}.", reasons=[reason]) from None
            except CancelledError:
                reason = "the client is gone"
                raise ApprovalUnavailableError(f"Not approved: {reason}.", reasons=[reason]) from None
            except (MCPError, ValidationError) as error:
                reason = f"the client did not ask: {error}"
                raise ClientNotReachedError(f"Not approved: {reason}.", reasons=[reason]) from error

    async def _elicited(self, request: OptionRequest) -> types.ElicitResult:
        form = form_of(request, self.ctx.protocol_version).params
        assert isinstance(form, types.ElicitRequestFormParams)  # noqa: S101 - form_of makes no other
        return await self.ctx.session.elicit_form(form.message, form.requested_schema, self.ctx.request_id)


class ReturningApprover:
    """Ends the call with its question, as protocols from 2026-07-28 do, unless this call brought the answer."""

    channel = McpApprover.channel

    def __init__(self, given: Mapping[str, types.ElicitResult]) -> None:
        self.given = given

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:  # noqa: ARG002 - Approver's
        said = self.given.get(request.id)
        if said is None:
            raise QuestionReturned(request)
        return answer_from(request, said)


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


def question_result(request: OptionRequest, protocol_version: str) -> types.InputRequiredResult:
    """What a call ends with that has to be made again."""
    state = {"call": secrets.token_hex(16), "asked": request.id}
    return types.InputRequiredResult(
        input_requests={INPUT: form_of(request, protocol_version)}, request_state=json.dumps(state)
    )


class Deadline:
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
        stop = Cancellation(cancel, Deadline(self.wait_seconds))
        try:
            with World(self.state_dir) as world:
                world.open(request, expires_in=lifetime, single_use=single_use_of(request))
                return world.wait(request.id, cancel=stop)
        except (RequestClosedError, StateUnavailableError) as error:
            reason = "the question cannot be kept for a person"
            raise ApprovalUnavailableError(f"Not approved: {reason}: {error}", reasons=[reason]) from error
        except ApprovalUnavailableError as error:
            if cancel is not None and cancel.is_set():
                raise
            reason = f"nobody answered within {self.wait_seconds:g} s"
            raise ApprovalUnavailableError(
                f"Not approved: {reason}. The question stays open for {lifetime:g} s. {how_to_answer(address)}",
                reasons=[reason],
            ) from error


def how_to_answer(address: str) -> str:
    """With the address of the page, which is no secret; never with a link that logs in: a model reads this."""
    return HOW_TO_ANSWER.format(page=ON_THE_PAGE.format(address=address) if address else "")
