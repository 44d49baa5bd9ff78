"""What was asked and is over -> a table, the newest first."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from skillkit.core.decide.requests import PastRequest
from skillkit.web.closed_view import OUTCOMES, answer_words
from skillkit.web.frame import framed, links_of
from skillkit.web.links import Links
from skillkit.web.markup import Child, Markup, tag
from skillkit.web.prompts import NO
from skillkit.web.served import served
from skillkit.web.shown import empty_card, listing, moment, plural

__all__ = ["history_page"]

SHOWN = 200


def history_page(request: Request) -> Response:
    past = served(request).world.history(SHOWN)
    links = links_of(request)
    heading = tag("h1", "History")
    told = tag("p", f"The newest {plural(len(past), 'request')}. What they showed is not kept.", class_="quiet")
    rows = [row(each, links) for each in past]
    content = (
        [told, listing("Past requests", rows)] if past else empty_card("clock", tag("p", "Nothing was asked yet."))
    )
    return framed(request, "History", tag("div", heading, content, class_="stack"), current="/history")


def row(past: PastRequest, links: Links) -> dict[str, Child]:
    return {
        "Asked": moment(past.request.created_at),
        "Question": tag("a", past.request.title, href=links.request(past.request.id)),
        "Answer": outcome(past),
        "Through": tag("code", past.answer.channel) if past.answer else "-",
        "Session": tag("code", past.request.session_id) if past.request.session_id else "-",
    }


def outcome(past: PastRequest) -> Markup:
    """The whole sentence stands on the request's own page."""
    if past.answer is None:
        return tag("span", past.outcome if past.outcome in OUTCOMES else "over", class_="chip")
    kind = "chip" if past.answer.option_id == NO else "chip good"
    return tag("span", answer_words(past), class_=kind)
