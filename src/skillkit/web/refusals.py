"""What cannot be done -> a page, or JSON for the API, that says why and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from skillkit.web.frame import framed, links_of, path_within
from skillkit.web.markup import Child, tag

__all__ = ["Refusal", "api_error", "is_api", "problem_page", "refused"]

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
    STRANGER = 403, "other_user", "This page belongs to another user", "Ask them; each user has a page of their own."
    TOKEN = 401, "no_token", "A bearer token is needed", "Send the header Authorization: Bearer TOKEN."
    TOO_MANY = 429, "too_many_attempts", "Too many wrong attempts", "Wait a minute, then try again."
    NOT_FOUND = 404, "not_found", "There is nothing here", "See what waits for an answer."
    METHOD = 405, "method_not_allowed", "This cannot be done here", "Use the page's own buttons."
    FAILED = 500, "failed", "The page could not be made", "The log of the server says why. Nothing was answered."

    def __init__(self, status: int, code: str, heading: str, remedy: str) -> None:
        self.status = status
        self.code = code
        self.heading = heading
        self.remedy = remedy


RETRY = {Refusal.TOO_MANY: {"retry-after": "60"}, Refusal.TOKEN: {"www-authenticate": "Bearer"}}


def refused(request: Request, refusal: Refusal) -> Response:
    if is_api(request):
        message = f"{refusal.heading}. {refusal.remedy}"
        return api_error(refusal.status, refusal.code, message, headers=RETRY.get(refusal))
    details: list[Child] = [tag("p", refusal.remedy)]
    if refusal in (Refusal.SESSION, Refusal.LINK):
        details += [tag("pre", tag("code", NEW_LINK), class_="command"), retry_hint(request)]
    is_known = refusal not in (Refusal.SESSION, Refusal.LINK, Refusal.STRANGER, Refusal.HOST, Refusal.TOO_MANY)
    if is_known:
        details.append(tag("p", tag("a", "All pending requests", href=links_of(request).to("/"), class_="button")))
    return problem_page(request, refusal.status, refusal.heading, details, headers=RETRY.get(refusal), nav=is_known)


def retry_hint(request: Request) -> Child:
    """A browser keeps the cookie back on the first step from another site's page; the next step has it."""
    link = tag("a", "open the page", href=links_of(request).to("/"))
    return tag("p", "If you have just followed such a link from another page, ", link, ".", class_="quiet")


def problem_page(
    request: Request,
    status: int,
    heading: str,
    details: Child,
    *,
    headers: Mapping[str, str] | None = None,
    nav: bool = True,
) -> Response:
    """`nav` only for who may go further."""
    code = tag("p", f"{status}", class_="status-code")
    body = tag("section", code, tag("h1", heading), details, class_="problem card")
    return framed(request, heading, body, status=status, headers=headers, nav=nav)


def api_error(status: int, code: str, message: str, *, headers: Mapping[str, str] | None = None) -> Response:
    content = {"schema_version": 1, "error": {"code": code, "message": message}}
    return JSONResponse(content, status, dict(headers or {}))


def is_api(request: Request) -> bool:
    return path_within(request).startswith("/api/")
