"""One request -> the page on which a person reads and answers it; or what became of it."""

from __future__ import annotations

import time
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from skillkit.core.decide.changes import whole_changes
from skillkit.core.decide.requests import PastRequest
from skillkit.core.questions import Option, OptionRequest
from skillkit.present.request import change_text, scopes_of
from skillkit.web.closed_view import closed_page
from skillkit.web.frame import framed, links_of
from skillkit.web.gate import session_of
from skillkit.web.icons import icon
from skillkit.web.links import Links
from skillkit.web.markup import Child, Markup, tag
from skillkit.web.prompt_view import prompt_heading, prompt_sections
from skillkit.web.prompts import NO, Shown, fingerprint, options_of, shown_request
from skillkit.web.refusals import Refusal, refused
from skillkit.web.served import served
from skillkit.web.shown import card, facts, moment, value_block, within
from skillkit.web.source_view import PART_LINES, part_of, source_block

__all__ = ["changes_page", "open_request_page", "request_page", "source_page"]

FEW_OPTIONS = 4


def request_page(request: Request) -> Response:
    found = served(request).world.find(request.path_params["request_id"])
    if found is None:
        return refused(request, Refusal.NOT_FOUND)
    if isinstance(found, PastRequest):
        return closed_page(request, found)
    return open_request_page(request, found)


def open_request_page(request: Request, asked: OptionRequest, *, status: int = 200, notice: str = "") -> Response:
    links, shown = links_of(request), shown_request(asked)
    said = tag("p", icon("flag"), tag("span", notice), class_="notice", role="alert") if notice else None
    if shown.prompt is not None:
        content: Child = [prompt_heading(asked, shown.prompt), *prompt_sections(asked, shown.prompt, links)]
    else:
        content = general_sections(asked, shown)
    back = tag("p", tag("a", "All pending requests", href=links.to("/")), class_="back")
    access = served(request).access
    token = access.form_token(session_of(request, access), fingerprint(asked))
    body = [back, said, content, answer_bar(asked, shown, links, token)]
    page = tag("div", body, class_="stack", data_request=quote(asked.id, safe=""))
    return framed(request, asked.title, page, current="/", status=status)


def general_sections(asked: OptionRequest, shown: Shown) -> Child:
    """A question that is not about a script, or one that cannot be shown as it was asked."""
    session = tag("code", asked.session_id) if asked.session_id else None
    question = tag(
        "section",
        tag("p", "A question for you", class_="eyebrow"),
        tag("h1", asked.title),
        tag("div", asked.message, class_="message") if asked.message else None,
        facts([("Session", session), ("Asked", moment(asked.created_at))]),
        class_="card question",
    )
    problem = tag("p", icon("flag"), tag("span", shown.problem, " It can only be declined."), class_="notice",
                  role="alert") if shown.problem else None  # fmt: skip
    context = card("Details", value_block(dict(asked.context))) if asked.context and not shown.problem else None
    return [problem, question, context]


def answer_bar(asked: OptionRequest, shown: Shown, links: Links, token: str) -> Markup:
    """No option is chosen beforehand, and none has the focus."""
    left = asked.expires_at - time.time()
    options = options_of(asked, shown)
    scopes = scopes_of(asked) if shown.prompt is not None else {}
    expires = tag("p", icon("clock"), tag("span", "Expires in ", tag("span", within(left),
                  data_left=max(0, round(left))), ". No answer means no."), class_="expires")  # fmt: skip
    buttons = [button(option, scopes.get(option.id, "")) for option in options]
    return tag(
        "form",
        tag("h2", "Your answer", class_="unsaid"),
        expires,
        tag("input", type="hidden", name="token", value=token),
        tag("div", buttons, class_="options"),
        method="post",
        action=links.answer(asked.id),
        class_="answer" if len(options) <= FEW_OPTIONS else "answer many",
        autocomplete="off",
    )


def button(option: Option, scope: str) -> Markup:
    said = tag("small", scope) if scope else None
    kind = "option no" if option.id == NO else "option yes"
    return tag("button", tag("strong", option.label), said, type="submit", name="option", value=option.id, class_=kind,
               data_careful=option.id != NO)  # fmt: skip


def source_page(request: Request) -> Response:
    """A further part of a long script; the answer is given on the request's own page."""
    found = served(request).world.find(request.path_params["request_id"])
    if isinstance(found, PastRequest):
        return closed_page(request, found)
    shown = shown_request(found) if found is not None else Shown()
    number = request.path_params["number"]
    if found is None or shown.prompt is None or not 0 < number <= len(shown.prompt.commands):
        return refused(request, Refusal.NOT_FOUND)
    given = request.query_params.get("start", "1")
    start = int(given) if given.isascii() and given.isdecimal() and len(given) < 10 else 1  # noqa: PLR2004 - digits
    return framed(request, "Source", source_body(found, shown, number, start, links_of(request)), current="/")


def changes_page(request: Request) -> Response:
    """Every line that differs from what was approved, as plain text: it may be long."""
    world = served(request).world
    found = world.find(request.path_params["request_id"])
    if isinstance(found, PastRequest):
        return closed_page(request, found)
    shown = shown_request(found) if found is not None else Shown()
    changes = whole_changes(world.folder, shown.prompt) if shown.prompt is not None else None
    if changes is None:
        return refused(request, Refusal.NOT_FOUND)
    return PlainTextResponse("\n".join(change_text(each) for each in changes) + "\n")


def source_body(asked: OptionRequest, shown: Shown, number: int, start: int, links: Links) -> Child:
    assert shown.prompt is not None  # noqa: S101 - the caller looked
    command = shown.prompt.commands[number - 1]
    part = part_of(command, start)
    moves = [
        tag("a", "Earlier lines", href=links.source(asked.id, number, max(1, part.start - PART_LINES)), class_="button")
        if part.start > 1
        else None,
        tag("a", "Later lines", href=links.source(asked.id, number, part.end + 1), class_="button")
        if part.end < part.total
        else None,
    ]
    told = f"Lines {part.start:,} to {part.end:,} of {part.total:,}." if part.total else "Empty."
    back = tag("p", tag("a", "Back to the request", href=links.request(asked.id)), class_="back")
    heading = tag("h1", "Source ", tag("code", command.script))
    block = source_block(shown.prompt, number, part) if part.total else None
    content = tag("section", tag("p", told, class_="quiet"), block, tag("p", moves, class_="moves"), class_="card")
    return tag("div", back, heading, content, class_="stack", data_request=quote(asked.id, safe=""))
