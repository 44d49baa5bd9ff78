"""The page's own files: styles, script, icon, manifest."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from skillkit.web.frame import links_of
from skillkit.web.refusals import Refusal, refused

__all__ = ["favicon", "static_file", "web_manifest"]

MEDIA_TYPES = {
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "favicon.svg": "image/svg+xml",
}


@cache
def content_of(name: str) -> bytes:
    return (files("skillkit.web") / "static" / name).read_bytes()


def static_file(request: Request) -> Response:
    """By name from a short list; a path never reaches the file system."""
    name = request.path_params["name"]
    if name not in MEDIA_TYPES:
        return refused(request, Refusal.NOT_FOUND)
    return Response(content_of(name), media_type=MEDIA_TYPES[name])


def favicon(request: Request) -> Response:  # noqa: ARG001 - a view
    return Response(content_of("favicon.svg"), media_type=MEDIA_TYPES["favicon.svg"])


def web_manifest(request: Request) -> Response:
    """For who installs the page as a window of its own."""
    links = links_of(request)
    content = {
        "name": "skillkit approvals",
        "short_name": "skillkit",
        "description": "Answer what skills ask before they run.",
        "start_url": links.to("/"),
        "scope": links.to("/"),
        "display": "standalone",
        "background_color": "#f6f7f9",
        "theme_color": "#1f5fbf",
        "icons": [{"src": links.to("/favicon.svg"), "sizes": "any", "type": "image/svg+xml"}],
    }
    return JSONResponse(content, media_type="application/manifest+json")
