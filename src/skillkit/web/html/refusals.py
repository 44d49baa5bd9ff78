"""What cannot be done -> a page, or JSON for the API, that says why and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from skillkit.web.html import path_within, render

__all__ = ["Refusal", "api_error", "is_api", "problem_page", "refuse"]

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
