"""The world's requests -> lists of what waits and what is over, each one's own page, and the answer given there."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from skillkit.core.ask.changes import whole_changes
from skillkit.core.exceptions import RequestClosedError
from skillkit.core.store.requests import PastRequest
from skillkit.core.values.questions import REASON_CHARACTERS, OptionRequest
from skillkit.present.request import change_text, scopes_of
from skillkit.web.access.gate import session_of
from skillkit.web.context import context_of
from skillkit.web.html import links_of, render
from skillkit.web.html.refusals import Refusal, problem_page, refuse
from skillkit.web.views.prompt import NO, Question, context_values, fingerprint, prompt_values, question_of
from skillkit.web.views.source import part_of

__all__ = [
    "CHANNEL",
    "answer_page",
    "body_of",
    "changes_page",
    "history_page",
    "pending_page",
    "request_page",
    "source_page",
]

CHANNEL = "web"
LISTED, LISTED_PAST = 500, 200
LARGEST_BODY = 64_000
MOST_FIELDS = 120
Given = tuple[str, tuple[str, ...], str]
"""The option, what is ticked, and what the person says."""
# So long a page must have been shown before a yes counts: a click meant for something else is not an answer.
CAREFUL_SECONDS = 0.6
OK, ANSWERED_BEFORE, GONE, TOO_EARLY = 200, 409, 410, 425
TOO_QUICK = "That was too quick to have been read. Look at it again, then answer."
UNPROVEN = "This page was open for long, or the request was asked anew. Look at it again, then answer."
NOT_OFFERED = "Answer with one of the options below."


def pending_page(request: Request) -> Response:
    context = context_of(request)
    version = context.events.now().version
    waiting = context.world.pending()
    # What was just answered: only the store's own words are shown, never the address's.
    answered = request.query_params.get("answered", "")
    done = context.world.find(answered) if answered else None
    values = {
        "version": version,
        "total": len(waiting),
        "waiting": map(question_of, waiting[:LISTED]),
        "more": len(waiting) - LISTED,
        "done": done.request.title if isinstance(done, PastRequest) else "",
        "done_words": _answer_words(done) if isinstance(done, PastRequest) else "",
        "folder": str(context.world.folder),
    }
    return render(request, "pending", values)


def request_page(request: Request) -> Response:
    found = _find(request)
    return _open_page(request, found) if isinstance(found, Question) else found


def source_page(request: Request) -> Response:
    """A further part of a long script; the answer is given on the request's own page."""
    found = _find(request)
    if not isinstance(found, Question):
        return found
    number, given = request.path_params["number"], request.query_params.get("start", "1")
    if found.prompt is None or not 0 < number <= len(found.prompt.commands):
        return refuse(request, Refusal.NOT_FOUND)
    start = int(given) if given.isascii() and given.isdecimal() and len(given) < 10 else 1  # noqa: PLR2004 - digits
    part = part_of(found.prompt, number, start)
    return render(request, "source", {"part": part, "request_id": found.request.id})


def changes_page(request: Request) -> Response:
    """Every line that differs from what was approved, as plain text: it may be long."""
    found = _find(request)
    if not isinstance(found, Question):
        return found
    changes = whole_changes(context_of(request).world.folder, found.prompt) if found.prompt is not None else None
    if changes is None:
        return refuse(request, Refusal.NOT_FOUND)
    return PlainTextResponse("\n".join(change_text(each) for each in changes) + "\n")


def _find(request: Request) -> Question | Response:
    """The question that the address names; or the page that says that there is none, or that it is over."""
    found = context_of(request).world.find(request.path_params["request_id"])
    if found is None:
        return refuse(request, Refusal.NOT_FOUND)
    return _closed_page(request, found) if isinstance(found, PastRequest) else question_of(found)


def _open_page(request: Request, question: Question, *, status: int = OK, notice: str = "") -> Response:
    asked, access = question.request, context_of(request).access
    token = access.form_token(session_of(request, access), fingerprint(asked))
    values: dict[str, Any] = {"question": question, "notice": notice, "token": token}
    if question.prompt is not None:
        values |= {**prompt_values(asked.id, question.prompt, links_of(request)), "scopes": scopes_of(asked)}
    else:
        values |= {**context_values(asked), "scopes": {}}
    return render(request, "question", values, status=status)


def _closed_page(request: Request, past: PastRequest, *, is_answering: bool = False) -> Response:
    """`is_answering` says that somebody tried to answer it once more."""
    status = GONE if past.answer is None else ANSWERED_BEFORE if is_answering else OK
    said = {"past": past, "words": _answer_words(past), "is_answering": is_answering}
    return render(request, "closed", said, status=status)


def _answer_words(past: PastRequest) -> str:
    """The label of the option that was chosen."""
    chosen = past.answer.option_id if past.answer is not None else ""
    return next((option.label for option in past.request.options if option.id == chosen), chosen)


def history_page(request: Request) -> Response:
    past = context_of(request).world.history(LISTED_PAST)
    return render(request, "history", {"past": [(each, _answer_words(each)) for each in past]})


async def answer_page(request: Request) -> Response:
    """A posted form -> one answer to the request it was made for, or a page that says why not."""
    body = await body_of(request)
    if body is None:
        return problem_page(request, 413, "That is too much", "Answer with one of the buttons.")
    try:
        form = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:  # more fields than any form of ours has
        form = {}
    # A field that is given twice is given not at all; only of ticks there are several.
    names = ("token", "option", "reason")
    token, option_id, reason = (form[name][0] if len(form.get(name, ())) == 1 else "" for name in names)
    given = (option_id, tuple(form.get("grant", ())), reason[:REASON_CHARACTERS])
    return await run_in_threadpool(_answer, request, token, given)


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


def _answer(request: Request, token: str, given: Given) -> Response:
    option_id, grants, _ = given
    context = context_of(request)
    found = context.world.find(request.path_params["request_id"])
    if found is None:
        return refuse(request, Refusal.NOT_FOUND)
    if isinstance(found, PastRequest):
        return _closed_page(request, found, is_answering=True)
    question = question_of(found)
    age = context.access.form_age(token, session_of(request, context.access), fingerprint(found))
    if age is None:
        return _open_page(request, question, status=Refusal.FORM.status, notice=UNPROVEN)
    is_offered = option_id in [option.id for option in question.options]
    are_offered = option_id == NO or {tick.id for tick in found.grants}.issuperset(grants)
    if not is_offered or not are_offered:
        return _open_page(request, question, status=400, notice=NOT_OFFERED)
    if option_id != NO and age < CAREFUL_SECONDS:
        return _open_page(request, question, status=TOO_EARLY, notice=TOO_QUICK)
    return _keep_answer(request, found, given)


def _keep_answer(request: Request, asked: OptionRequest, given: Given) -> Response:
    """A no opens nothing, whatever is ticked beside it."""
    world, (option_id, ticked, reason) = context_of(request).world, given
    grants = () if option_id == NO else ticked
    try:
        world.answer(asked.id, option_id, CHANNEL, grants=grants, reason=reason, created_at=asked.created_at)
    except RequestClosedError:
        now = world.find(asked.id)
        if isinstance(now, PastRequest):
            return _closed_page(request, now, is_answering=True)
        return refuse(request, Refusal.FORM)
    return RedirectResponse(links_of(request).to("/", answered=asked.id), 303)
