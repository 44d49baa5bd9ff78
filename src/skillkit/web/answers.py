"""A posted form -> one answer to the request it was made for, or a page that says why not."""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from skillkit.core.decide.requests import PastRequest
from skillkit.core.exceptions import RequestClosedError
from skillkit.core.questions import OptionRequest
from skillkit.web.closed_view import closed_page
from skillkit.web.frame import links_of
from skillkit.web.gate import session_of
from skillkit.web.markup import tag
from skillkit.web.prompts import NO, fingerprint, options_of, shown_request
from skillkit.web.refusals import Refusal, problem_page, refused
from skillkit.web.request_view import open_request_page
from skillkit.web.served import served

__all__ = ["CHANNEL", "answer_page", "body_of"]

CHANNEL = "web"
LARGEST_BODY = 64_000
# So long a page must have been shown before a yes counts: a click meant for something else is no answer.
CAREFUL_SECONDS = 0.6
TOO_EARLY = 425
TOO_QUICK = "That was too quick to have been read. Look at it again, then answer."
UNPROVEN = "This page was open for long, or the request was asked anew. Look at it again, then answer."


async def answer_page(request: Request) -> Response:
    body = await body_of(request)
    if body is None:
        return problem_page(request, 413, "That is too much", tag("p", "Answer with one of the buttons."))
    try:
        form = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20)
    except ValueError:  # more fields than any form of ours has
        form = {}
    return await run_in_threadpool(answered, request, only(form, "token"), only(form, "option"))


async def body_of(request: Request) -> bytes | None:
    """All of a small body; None for a large one, which is not read to its end."""
    content = b""
    try:
        async for chunk in request.stream():
            content += chunk
            if len(content) > LARGEST_BODY:
                return None
    except ClientDisconnect:
        return None
    return content


def only(form: dict[str, list[str]], name: str) -> str:
    """A field that is given twice is given not at all."""
    values = form.get(name, [])
    return values[0] if len(values) == 1 else ""


def answered(request: Request, token: str, option_id: str) -> Response:
    shared = served(request)
    asked = shared.world.find(request.path_params["request_id"])
    if asked is None:
        return refused(request, Refusal.NOT_FOUND)
    if isinstance(asked, PastRequest):
        return closed_page(request, asked, is_answering=True)
    age = shared.access.form_age(token, session_of(request, shared.access), fingerprint(asked))
    if age is None:
        return open_request_page(request, asked, status=Refusal.FORM.status, notice=UNPROVEN)
    if option_id not in [option.id for option in options_of(asked, shown_request(asked))]:
        return open_request_page(request, asked, status=400, notice="Answer with one of the options below.")
    if option_id != NO and age < CAREFUL_SECONDS:
        return open_request_page(request, asked, status=TOO_EARLY, notice=TOO_QUICK)
    return kept(request, asked, option_id)


def kept(request: Request, asked: OptionRequest, option_id: str) -> Response:
    world = served(request).world
    try:
        world.answer(asked.id, option_id, CHANNEL, created_at=asked.created_at)
    except RequestClosedError:
        now = world.find(asked.id)
        if isinstance(now, PastRequest):
            return closed_page(request, now, is_answering=True)
        return refused(request, Refusal.FORM)
    return RedirectResponse(links_of(request).to("/", answered=asked.id), 303)
