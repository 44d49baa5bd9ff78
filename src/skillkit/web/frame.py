"""A view's content -> a whole page: head, navigation, footer."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from skillkit.web.icons import icon
from skillkit.web.links import Links
from skillkit.web.markup import Child, Markup, document, tag

__all__ = ["framed", "links_of", "path_within"]

SECTIONS = (("/", "Pending"), ("/history", "History"), ("/audit", "Audit"), ("/skills", "Skills"))


def links_of(request: Request) -> Links:
    return Links(str(request.scope.get("root_path", "")).rstrip("/"))


def path_within(request: Request) -> str:
    """Below the place where the page is mounted."""
    path, root = str(request.scope["path"]), str(request.scope.get("root_path", ""))
    return path.removeprefix(root) if path == root or path.startswith(f"{root}/") else path


def framed(
    request: Request,
    title: str,
    body: Child,
    *,
    current: str = "",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    nav: bool = True,
    footer: Child = None,
) -> Response:
    """`current` is the section that the view belongs to; `nav` is for who may use it."""
    links = links_of(request)
    page = tag(
        "html",
        head(title, links),
        tag(
            "body",
            tag("a", "Skip to content", href="#main", class_="skip"),
            top(links, current) if nav else top_without_sections(),
            tag("main", body, id="main", tabindex=-1),
            tag("footer", footer, " " if footer else None, reach_of(request), class_="foot"),
            data_events=links.to("/events") if nav else None,
        ),
        lang="en",
    )
    return Response(document(page), status, dict(headers or {}), media_type="text/html; charset=utf-8")


def reach_of(request: Request) -> str:
    is_local = request.url.hostname in ("127.0.0.1", "localhost", "::1")
    return "Only this computer can open this page." if is_local else ""


def head(title: str, links: Links) -> Markup:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{title} · skillkit"),
        tag("link", rel="icon", href=links.to("/favicon.svg"), type="image/svg+xml"),
        tag("link", rel="manifest", href=links.to("/manifest.webmanifest")),
        tag("link", rel="stylesheet", href=links.to("/static/page.css")),
        tag("script", src=links.to("/static/page.js"), type="module"),
    )


def top(links: Links, current: str) -> Markup:
    entries = [
        tag(
            "li",
            tag(
                "a",
                name,
                tag("span", class_="badge", data_count=True, hidden=True) if path == "/" else None,
                href=links.to(path),
                aria_current="page" if path == current else None,
            ),
        )
        for path, name in SECTIONS
    ]
    brand = tag("a", icon("shield"), tag("span", "skillkit"), href=links.to("/"), class_="brand")
    return tag("header", tag("div", brand, tag("nav", tag("ul", entries), aria_label="Sections")), class_="top")


def top_without_sections() -> Markup:
    brand = tag("span", icon("shield"), tag("span", "skillkit"), class_="brand")
    return tag("header", tag("div", brand), class_="top")
