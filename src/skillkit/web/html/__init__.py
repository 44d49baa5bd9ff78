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
from functools import cache, partial
from itertools import groupby
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from skillkit.core.values.text import is_plain, plural, spell_out, visible
from skillkit.present.request import as_word

__all__ = ["Links", "links_of", "path_within", "render"]

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

    def request(self, request_id: str) -> str:
        return self.to(f"/requests/{quote(request_id, safe='')}")

    def source(self, request_id: str, number: int, start: int = 1) -> str:
        return f"{self.request(request_id)}/source/{number}?start={start}"

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


FILTERS: dict[str, Callable[..., Any]] = {
    "address": _address,
    "as_json": partial(json.dumps, ensure_ascii=False),  # so that text and number cannot be mistaken for each other
    "as_word": as_word,
    "counted": plural,
    "exact": escape,  # for a form's `value` alone: what it sends back must be what it was given
    "grouped": "{:,}".format,
    "length": len,
    "marked": _marked,
    "moment": _moment,
    "quoted": partial(quote, safe=""),
    "text": str,
    "within": _within,
}
