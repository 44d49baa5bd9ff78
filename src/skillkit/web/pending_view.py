"""The world's open requests -> the list that a person starts from."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response

from skillkit.core.decide.requests import PastRequest, World
from skillkit.core.questions import OptionRequest
from skillkit.web.closed_view import answer_words
from skillkit.web.frame import framed, links_of
from skillkit.web.icons import icon
from skillkit.web.links import Links
from skillkit.web.markup import Child, Markup, tag
from skillkit.web.prompts import Shown, shown_request
from skillkit.web.served import served
from skillkit.web.shown import empty_card, plural, within

__all__ = ["pending_page"]

LISTED = 500


def pending_page(request: Request) -> Response:
    world, links = served(request).world, links_of(request)
    version = served(request).events.glance().version
    waiting = world.pending()
    told = plural(len(waiting), "request")
    heading = tag("h1", f"{told} waiting for you" if waiting else "Nothing waits for you")
    listed = tag("ol", [entry(each, links) for each in waiting[:LISTED]], class_="requests") if waiting else nothing()
    more = tag("p", f"{len(waiting) - LISTED:,} more come up as you answer.") if len(waiting) > LISTED else None
    body = [done_notice(world, request.query_params.get("answered", "")), heading, listed, more, refresh_hint(links)]
    content = tag("div", body, id="live", data_version=version, class_="stack")
    footer: Child = ["World: ", tag("code", str(world.folder)), "."]
    title = f"({len(waiting)}) Pending" if waiting else "Pending"
    return framed(request, title, content, current="/", footer=footer)


def entry(request: OptionRequest, links: Links) -> Markup:
    """One question on a card; all of it is the link."""
    shown = shown_request(request)
    left = request.expires_at - time.time()
    name = tag("a", heading_of(request, shown), href=links.request(request.id), class_="cover")
    waits: list[Child] = ["expires in ", tag("span", within(left), data_left=max(0, round(left)))]
    details: list[Child] = [tag("span", icon("clock"), waits, class_="chip")]
    if request.session_id:
        details.append(tag("span", "session ", tag("code", request.session_id), class_="chip"))
    chips = tag("p", flags(shown), details, class_="chips")
    told = tag("p", about(request, shown), class_="quiet")
    return tag("li", tag("h2", name), told, chips, class_="card request", id=f"r-{request.id}")


def heading_of(request: OptionRequest, shown: Shown) -> Child:
    """Names from a skill are set apart from our words."""
    prompt = shown.prompt
    if prompt is None or len(prompt.commands) != 1:
        return request.title
    return ["Run ", tag("code", prompt.commands[0].script), " of ", tag("code", prompt.skill), "?"]


def about(request: OptionRequest, shown: Shown) -> Child:
    if shown.problem:
        return "It cannot be shown as it was asked."
    return shown.prompt.origin if shown.prompt is not None else request.message[:200]


def flags(shown: Shown) -> Child:
    prompt = shown.prompt
    if prompt is None:
        return None
    chips: list[Child] = []
    if prompt.risks:
        chips.append(tag("span", icon("flag"), plural(len(prompt.risks), "risk flag"), class_="chip warn"))
    if prompt.changes is None:
        chips.append(tag("span", "never approved before", class_="chip"))
    elif prompt.changes:
        chips.append(tag("span", f"{plural(len(prompt.changes), 'file')} changed", class_="chip warn"))
    return chips


def nothing() -> Markup:
    return empty_card(
        "check",
        tag("p", "When a skill wants to run a script that policy asks about, it appears here by itself."),
        tag("p", "Try it: ", tag("code", "skillkit run SKILL SCRIPT --wait"), class_="quiet"),
    )


def refresh_hint(links: Links) -> Markup:
    link = tag("a", "Look again", href=links.to("/"))
    return tag("noscript", tag("p", "Without JavaScript this list does not change by itself. ", link, "."))


def done_notice(world: World, request_id: str) -> Child:
    """What was just answered; only the store's own words are shown, never the address's."""
    past = world.find(request_id) if request_id else None
    if not isinstance(past, PastRequest) or past.answer is None:
        return None
    words: list[Child] = ["Answered ", tag("strong", answer_words(past)), ": ", past.request.title]
    return tag("p", icon("check"), tag("span", words), class_="notice good", role="status")
