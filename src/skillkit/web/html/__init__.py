"""A template and values -> a page in which text can never become markup and nothing hides.

Theory of operation. Every value that a template shows passes `_make_visible`, Jinja's `finalize`, which writes out what
hides or reorders, and then autoescape. Jinja's own filters, `safe` among them, do not exist here: only this makes
`Markup`. A line break in a template and the indentation behind it stand for nothing, so the files can be laid out
for a reader while `<pre>` and neighbouring words stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache, partial
from itertools import groupby
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from skillkit.core.values.text import is_plain, plural, spell_out, visible
from skillkit.present.glance import as_word, command_text, news_of, place_of

__all__ = ["Links", "Refusal", "api_error", "is_api", "links_of", "path_within", "problem_page", "refuse", "render"]

OWN_NAMES = ("127.0.0.1", "localhost", "::1")
MINUTE, HOUR, DAY = 60, 3600, 86_400
# A browser drops tabs and line breaks from an address and takes a backslash for a slash.
LOCAL = re.compile(r"(?:/(?!/)|[#?])[!-\[\]-~]*|/?")


def render(
    request: Request,
    template: str,
    values: Mapping[str, object],
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The template of this name, with the addresses of the other pages."""
    is_local = request.url.hostname in OWN_NAMES
    shown = {"links": links_of(request), "is_local": is_local, "status": status, **values}
    page = _environment().get_template(f"{template}.html").render(shown)
    content = f"<!doctype html>\n{page}".encode("utf-8", "replace")
    return Response(content, status, dict(headers or {}), media_type="text/html; charset=utf-8")


@dataclass(frozen=True, slots=True)
class Links:
    """The addresses of the pages; `root` is the path that they are mounted at, empty when they stand alone."""

    root: str

    def to(self, path: str, **query: str | int | None) -> str:
        given = {name: value for name, value in query.items() if value not in (None, "")}
        return f"{quote(self.root)}{path}{f'?{urlencode(given)}' if given else ''}"

    def request(self, request_id: str, **query: str | int | None) -> str:
        return self.to(f"/requests/{quote(request_id, safe='')}", **query)

    def source(self, request_id: str, number: int, start: int = 1) -> str:
        return f"{self.request(request_id)}/source/{number}?start={start}"

    def file(self, request_id: str, number: int) -> str:
        return f"{self.request(request_id)}/files/{number}"

    def line(self, page: str, number: int, at: int) -> str:
        """One line of a source that has a page of its own."""
        return f"{page}?start={at}#source-{number}-{at}"

    def run(self, number: int) -> str:
        return self.to(f"/audit/{number}")

    def packages(self, name: str) -> str:
        return self.to(f"/packages/{quote(name, safe='')}")

    def skill(self, name: str) -> str:
        return self.to(f"/skills/{quote(name, safe='')}")


def links_of(request: Request) -> Links:
    return Links(str(request.scope.get("root_path", "")).rstrip("/"))


def path_within(request: Request) -> str:
    """Below the place where the page is mounted."""
    path, root = str(request.scope["path"]), str(request.scope.get("root_path", ""))
    return path.removeprefix(root) if path == root or path.startswith(f"{root}/") else path


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("skillkit.web", "html"),
        autoescape=True,
        finalize=_make_visible,
        undefined=StrictUndefined,
        extensions=[_OnOneLine],
        auto_reload=False,
    )
    environment.filters = dict(FILTERS)
    return environment


class _OnOneLine(Extension):
    """A space that is meant stands inside a line."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002 - Jinja's
        return "".join(map(str.strip, source.splitlines()))


def _make_visible(value: object) -> object:
    match value:
        case None:
            return ""
        case Markup() | int():
            return value
        case str():
            return visible(value)
        case _:
            raise TypeError(f"A page shows text and whole numbers, not {type(value).__name__}.")


def _address(text: str) -> str:
    """For every `href`, `src` and `action`."""
    if not LOCAL.fullmatch(text):
        raise ValueError(f"{text!r} is no address on this page.")
    return text


def _marked(text: str) -> Markup:
    """What a reader would not see is written out and set apart from text that only looks like that."""
    if text.isascii() and text.isprintable():
        return escape(text)
    unseen = Markup('<mark class="unseen">{}</mark>')
    return Markup("").join(
        escape(visible("".join(run))) if plain else unseen.format("".join(map(spell_out, run)))
        for plain, run in groupby(text, is_plain)
    )


def _moment(seconds: float) -> Markup:
    """In UTC; the browser says it in local time where it can."""
    at = datetime.fromtimestamp(seconds, UTC)
    element = Markup('<time datetime="{}" data-local>{} UTC</time>')
    return element.format(at.isoformat(timespec="seconds"), f"{at:%Y-%m-%d %H:%M:%S}")


def _within(seconds: float) -> str:
    """`4 min 5 s`: how long is left."""
    left = max(0, round(seconds))
    if left >= DAY:
        return f"{left // DAY} d {left % DAY // HOUR} h"
    if left >= HOUR:
        return f"{left // HOUR} h {left % HOUR // MINUTE} min"
    return f"{left // MINUTE} min {left % MINUTE} s" if left >= MINUTE else f"{left} s"


def _lasting(seconds: float) -> str:
    """`1 min`: how long a bar of the chart is, without parts that are none."""
    return re.sub(r" 0 \w+$", "", _within(seconds))


FILTERS: dict[str, Callable[..., Any]] = {
    "address": _address,
    "as_json": partial(json.dumps, ensure_ascii=False),  # so that text and number cannot be mistaken for each other
    "as_word": as_word,
    "command": command_text,
    "counted": plural,
    "exact": escape,  # for a form's `value` alone: what it sends back must be what it was given
    "grouped": "{:,}".format,
    "lasting": _lasting,
    "length": len,
    "marked": _marked,
    "moment": _moment,
    "news": news_of,
    "place": place_of,
    "quoted": partial(quote, safe=""),
    "text": str,
    "within": _within,
}

NEW_LINK = "skillkit web"
RIVAL = (
    "A link signs in one browser. If you did not use it before, something else did, and is signed out now. "
    "This gives you a new one:"
)


class Refusal(Enum):
    """Status, code for programs, heading, what to do."""

    HOST = 421, "unknown_host", "This is not the address of this page", "Open the address that skillkit printed."
    ORIGIN = 403, "foreign_origin", "This did not come from this page", "Go back to the page and answer there."
    FORM = 403, "bad_form", "This form is not valid any more", "Look at the request again and answer there."
    SESSION = 401, "no_session", "You are not signed in", "A link signs you in once. This gives you a new one:"
    LINK = 401, "used_link", "This link was used, or is too old", RIVAL
    OTHER_USER = 403, "other_user", "This page belongs to another user", "Ask them; each user has a page of their own."
    TOKEN = 401, "no_token", "A bearer token is needed", "Send the header Authorization: Bearer TOKEN."
    TOO_MANY = 429, "too_many_attempts", "Too many wrong attempts", "Wait a minute, then try again."
    NOT_FOUND = 404, "not_found", "There is nothing here", "See what waits for an answer."
    METHOD = 405, "method_not_allowed", "This cannot be done here", "Use the page's own buttons."
    FAILED = 500, "failed", "The page could not be made", "The log of the server says why. Nothing was answered."

    def __init__(self, status: int, code: str, heading: str, remedy: str) -> None:
        self.status, self.code, self.heading, self.remedy = status, code, heading, remedy


NEEDS_LINK = (Refusal.SESSION, Refusal.LINK)
SHUTS_OUT = (*NEEDS_LINK, Refusal.OTHER_USER, Refusal.HOST, Refusal.TOO_MANY)
HEADERS = {Refusal.TOO_MANY: {"retry-after": "60"}, Refusal.TOKEN: {"www-authenticate": "Bearer"}}


def refuse(request: Request, refusal: Refusal) -> Response:
    headers = HEADERS.get(refusal)
    if is_api(request):
        return api_error(refusal.status, refusal.code, f"{refusal.heading}. {refusal.remedy}", headers=headers)
    said = {
        "heading": refusal.heading,
        "told": refusal.remedy,
        "command": NEW_LINK if refusal in NEEDS_LINK else "",
        "nav": refusal not in SHUTS_OUT,
        "has_way_back": refusal not in SHUTS_OUT,
    }
    return render(request, "problem", said, status=refusal.status, headers=headers)


def problem_page(request: Request, status: int, heading: str, told: str) -> Response:
    """For who may go further."""
    said = {"heading": heading, "told": told, "command": "", "nav": True, "has_way_back": False}
    return render(request, "problem", said, status=status)


def api_error(
    status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None, **more: object
) -> Response:
    content = {"schema_version": 1, "error": {"code": code, "message": message}, **more}
    return JSONResponse(content, status, dict(headers or {}))


def is_api(request: Request) -> bool:
    return path_within(request).startswith("/api/")
