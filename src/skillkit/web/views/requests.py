"""The world's requests -> lists of what waits and what is over, and each one's own page."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from skillkit.core.ask.changes import file_text, skill_files, whole_changes
from skillkit.core.store.requests import PastRequest
from skillkit.present.changes import change_text
from skillkit.present.glance import scopes_of
from skillkit.web.access import session_of
from skillkit.web.context import context_of
from skillkit.web.html import Refusal, links_of, refuse, render
from skillkit.web.views.audit import RequestRuns, running_values
from skillkit.web.views.packages import preparing_values
from skillkit.web.views.prompt import (
    Group,
    Question,
    context_values,
    fingerprint,
    groups_of,
    prompt_values,
    question_of,
)
from skillkit.web.views.source import Part, lines_with, part_of, part_of_text

__all__ = [
    "CHANNEL",
    "changes_page",
    "closed_page",
    "file_page",
    "files_page",
    "history_page",
    "open_page",
    "pending_page",
    "request_page",
    "source_page",
]

CHANNEL = "web"
LISTED, LISTED_PAST, LISTED_IN_GROUP, FILES_LISTED = 500, 200, 50, 1_000
LONGEST_NUMBER, LONGEST_SEARCH, FOUND_LISTED = 10, 200, 200
OK, ANSWERED_BEFORE, GONE = 200, 409, 410


def pending_page(request: Request) -> Response:
    context = context_of(request)
    now = context.events.now()
    groups = groups_of(context.world.pending(LISTED))
    values = {
        **running_values(request, with_ended=True),
        **answered_values(request),
        "version": now.version,
        "total": len(now.ids),
        "groups": [(group, _group_token(request, group)) for group in groups],
        "listed_in_group": LISTED_IN_GROUP,
        "more": len(now.ids) - LISTED,
        "folder": context.world.place,
    }
    return render(request, "pending", values)


def _group_token(request: Request, group: Group) -> str:
    """For a no to all of it; one alone is answered on its own page."""
    if len(group.questions) == 1:
        return ""
    access = context_of(request).access
    return access.form_token(session_of(request, access), group.fingerprint)


def answered_values(request: Request) -> dict[str, Any]:
    """What was just answered: only the store's own words and counts are shown, never the address's."""
    answered = request.query_params.get("answered", "")
    done = context_of(request).world.find(answered) if answered else None
    is_done = isinstance(done, PastRequest)
    return {
        "done": done.request.title if isinstance(done, PastRequest) else "",
        "done_words": _answer_words(done) if isinstance(done, PastRequest) else "",
        "done_link": links_of(request).request(answered) if is_done else "",
        "covered": _number(request, "covered") if is_done else 0,
        "declined": _number(request, "declined"),
    }


def _number(request: Request, name: str, default: int = 0) -> int:
    given = request.query_params.get(name, "")
    return int(given) if given.isascii() and given.isdecimal() and len(given) < LONGEST_NUMBER else default


def request_page(request: Request) -> Response:
    found = _find(request)
    return open_page(request, found) if isinstance(found, Question) else found


def source_page(request: Request) -> Response:
    """A further part of a long script; the answer is given on the request's own page."""
    found = _find(request)
    if not isinstance(found, Question):
        return found
    number = request.path_params["number"]
    if found.prompt is None or not 0 < number <= len(found.prompt.commands):
        return refuse(request, Refusal.NOT_FOUND)
    command = found.prompt.commands[number - 1]
    part = part_of(found.prompt, number, _number(request, "start", 1))
    address = f"{links_of(request).request(found.request.id)}/source/{number}"
    return _source_part(request, found, part, command.source, address)


def files_page(request: Request) -> Response:
    """Every file of the skill that a question is about: a yes for the session is for all of them."""
    found = _find(request)
    if not isinstance(found, Question):
        return found
    if found.prompt is None:
        return refuse(request, Refusal.NOT_FOUND)
    files = skill_files(context_of(request).world.folder, found.prompt)
    listed = [(number, name, path.lstat().st_size) for number, (name, path) in enumerate(files[:FILES_LISTED], 1)]
    values = {"question": found, "files": listed, "more": len(files) - FILES_LISTED}
    return render(request, "files", values)


def file_page(request: Request) -> Response:
    """One of these files, by its number; a name never becomes a path."""
    found = _find(request)
    if not isinstance(found, Question):
        return found
    number = request.path_params["number"]
    files = skill_files(context_of(request).world.folder, found.prompt) if found.prompt else []
    if found.prompt is None or not 0 < number <= len(files):
        return refuse(request, Refusal.NOT_FOUND)
    name, path = files[number - 1]
    text = file_text(path)
    flagged = frozenset(risk.line for risk in found.prompt.risks if risk.path == name)
    part = part_of_text(text, name, flagged, start=_number(request, "start", 1))
    return _source_part(request, found, part, text, f"{links_of(request).request(found.request.id)}/files/{number}")


def _source_part(request: Request, question: Question, part: Part, text: str, address: str) -> Response:
    """Some lines, and those that hold what somebody looks for."""
    wanted = request.query_params.get("find", "")[:LONGEST_SEARCH]
    values = {
        "part": part,
        "request_id": question.request.id,
        "address": address,
        "wanted": wanted,
        "found": lines_with(text, wanted, FOUND_LISTED) if wanted else [],
        "most_found": FOUND_LISTED,
    }
    return render(request, "source", values)


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
    return closed_page(request, found) if isinstance(found, PastRequest) else question_of(found)


def open_page(request: Request, question: Question, *, status: int = OK, notice: str = "") -> Response:
    asked, access = question.request, context_of(request).access
    token = access.form_token(session_of(request, access), fingerprint(asked))
    values: dict[str, Any] = {"question": question, "notice": notice, "token": token}
    values |= {**preparing_values(request, question), **answered_values(request), **_neighbours(request, asked.id)}
    if question.prompt is not None:
        values |= {**prompt_values(asked, question.prompt, links_of(request)), "scopes": scopes_of(asked)}
    else:
        values |= {**context_values(asked), "scopes": {}}
    return render(request, "question", values, status=status)


def _neighbours(request: Request, request_id: str) -> dict[str, Any]:
    """Where it stands among what waits, and what comes before and after it."""
    ids = [name for _, name in context_of(request).world.pending_ids()]
    at = ids.index(request_id) if request_id in ids else 0
    links = links_of(request)
    return {
        "place": at + 1,
        "waiting": len(ids),
        "before": links.request(ids[at - 1]) if at > 0 else "",
        "after": links.request(ids[at + 1]) if at + 1 < len(ids) else "",
    }


def closed_page(request: Request, past: PastRequest, *, is_answering: bool = False) -> Response:
    """`is_answering` says that somebody tried to answer it once more."""
    status = GONE if past.answer is None else ANSWERED_BEFORE if is_answering else OK
    run, given = RequestRuns(context_of(request).world).of(past)
    said = {"past": past, "words": _answer_words(past), "is_answering": is_answering, "run": run, "given": given}
    said |= running_values(request, with_ended=True)
    return render(request, "closed", said, status=status)


def _answer_words(past: PastRequest) -> str:
    """The label of the option that was chosen."""
    chosen = past.answer.option_id if past.answer is not None else ""
    return next((option.label for option in past.request.options if option.id == chosen), chosen)


def history_page(request: Request) -> Response:
    world = context_of(request).world
    past, runs = world.history(LISTED_PAST), RequestRuns(world)
    rows = [(each, _answer_words(each), *runs.of(each)) for each in past]
    return render(request, "history", {**running_values(request), "past": rows})
