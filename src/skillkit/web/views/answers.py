"""A posted form -> answers: to one request, or a no to all of a group; then the page that comes next."""

from __future__ import annotations

from contextlib import suppress

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from skillkit.core.exceptions import RequestClosedError
from skillkit.core.store.requests import PastRequest
from skillkit.core.values.questions import REASON_CHARACTERS, OptionRequest
from skillkit.web.access import session_of
from skillkit.web.context import context_of, form_of
from skillkit.web.html import Refusal, links_of, problem_page, refuse
from skillkit.web.views.packages import place_after
from skillkit.web.views.prompt import NO, Group, fingerprint, groups_of, question_of
from skillkit.web.views.requests import CHANNEL, closed_page, open_page

__all__ = ["answer_page", "decline_page"]

Given = tuple[str, tuple[str, ...], str]
"""The option, what is ticked, and what the person says."""
IN_SESSION = "yes_in_session"
# So long a page must have been shown before a yes counts: a click meant for something else is not an answer.
CAREFUL_SECONDS = 0.6
TOO_EARLY = 425
TOO_QUICK = "That was too quick to have been read. Look at it again, then answer."
UNPROVEN = "This page was open for long, or the request was asked anew. Look at it again, then answer."
NOT_OFFERED = "Answer with one of the options below."
TOO_MUCH = ("That is too much", "Answer with one of the buttons.")
CHANGED_GROUP = ("The group changed", "Others came or went meanwhile; nothing was answered. Look at the list again.")


async def answer_page(request: Request) -> Response:
    """One answer to the request that the form was made for, or a page that says why not."""
    form = await form_of(request)
    if form is None:
        return problem_page(request, 413, *TOO_MUCH)
    token, option_id, reason = _once(form, "token", "option", "reason")
    given = (option_id, tuple(form.get("grant", ())), reason[:REASON_CHARACTERS])
    return await run_in_threadpool(_answer, request, token, given)


async def decline_page(request: Request) -> Response:
    """A no to every request of one group, exactly as it was shown."""
    form = await form_of(request)
    if form is None:
        return problem_page(request, 413, *TOO_MUCH)
    token, group, reason = _once(form, "token", "group", "reason")
    return await run_in_threadpool(_decline, request, token, group, reason[:REASON_CHARACTERS])


def _once(form: dict[str, list[str]], *names: str) -> list[str]:
    """A field that is given twice is given not at all; only of ticks there are several."""
    return [form[name][0] if len(form.get(name, ())) == 1 else "" for name in names]


def _answer(request: Request, token: str, given: Given) -> Response:
    option_id, grants, _ = given
    context = context_of(request)
    found = context.world.find(request.path_params["request_id"])
    if found is None:
        return refuse(request, Refusal.NOT_FOUND)
    if isinstance(found, PastRequest):
        return closed_page(request, found, is_answering=True)
    question = question_of(found)
    age = context.access.form_age(token, session_of(request, context.access), fingerprint(found))
    if age is None:
        return open_page(request, question, status=Refusal.FORM.status, notice=UNPROVEN)
    is_offered = option_id in [option.id for option in question.options]
    are_offered = option_id == NO or {tick.id for tick in found.grants}.issuperset(grants)
    if not is_offered or not are_offered:
        return open_page(request, question, status=400, notice=NOT_OFFERED)
    if option_id != NO and age < CAREFUL_SECONDS:
        return open_page(request, question, status=TOO_EARLY, notice=TOO_QUICK)
    return _keep_answer(request, found, given)


def _keep_answer(request: Request, asked: OptionRequest, given: Given) -> Response:
    """A no opens nothing, whatever is ticked beside it."""
    world, (option_id, ticked, reason) = context_of(request).world, given
    grants = () if option_id == NO else ticked
    covered = _others_like(asked, world.pending()) if option_id == IN_SESSION else 0
    try:
        world.answer(asked.id, option_id, CHANNEL, grants=grants, reason=reason, created_at=asked.created_at)
    except RequestClosedError:
        now = world.find(asked.id)
        if isinstance(now, PastRequest):
            return closed_page(request, now, is_answering=True)
        return refuse(request, Refusal.FORM)
    return RedirectResponse(_next_place(request, asked, covered), 303)


def _others_like(asked: OptionRequest, waiting: list[OptionRequest]) -> int:
    """How many other requests of the same skill, content and session wait: a yes for the session may answer them."""
    wanted = (asked.session_id, *_skill_of(asked))
    return sum((each.session_id, *_skill_of(each)) == wanted for each in waiting if each.id != asked.id)


def _skill_of(asked: OptionRequest) -> tuple[str, str]:
    prompt = question_of(asked).prompt
    return (prompt.skill, prompt.digest) if prompt else ("", asked.id)


def _next_place(request: Request, asked: OptionRequest, covered: int) -> str:
    """Where its own flow goes on; else the next request that waits, else the list. All say what was answered."""
    links, after = links_of(request), place_after(request, asked.id)
    if not after.startswith(links.to("/", answered=asked.id)):
        return after
    waiting = context_of(request).world.pending_ids()
    # What the yes covers is about to be gone.
    following = next((name for _, name in waiting if name != asked.id), "") if not covered else ""
    told = {"answered": asked.id, "covered": covered or None}
    return links.request(following, **told) if following else links.to("/", **told)


def _decline(request: Request, token: str, name: str, reason: str) -> Response:
    context = context_of(request)
    group: Group | None = next((each for each in groups_of(context.world.pending()) if each.name == name), None)
    session = session_of(request, context.access)
    if group is None or context.access.form_age(token, session, group.fingerprint) is None:
        return problem_page(request, Refusal.FORM.status, *CHANGED_GROUP)
    count = 0
    for question in group.questions:
        asked = question.request
        with suppress(RequestClosedError):  # somebody was faster with this one
            context.world.answer(asked.id, NO, CHANNEL, reason=reason, created_at=asked.created_at)
            count += 1
    return RedirectResponse(links_of(request).to("/", declined=count), 303)
