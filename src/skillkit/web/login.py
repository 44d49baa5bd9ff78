"""A one-time link -> a session's cookie, and a redirect that takes the token out of the address."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from skillkit.web.frame import links_of
from skillkit.web.gate import session_of
from skillkit.web.refusals import Refusal, refused
from skillkit.web.served import served

__all__ = ["login_page", "new_login_link"]


def login_page(request: Request) -> Response:
    """A HEAD looks and uses nothing up."""
    access = served(request).access
    token = request.query_params.get("token", "")
    if not token or request.method == "HEAD":
        return refused(request, Refusal.SESSION)
    is_from_elsewhere = request.headers.get("sec-fetch-site") == "cross-site"  # our cookie is not sent from there
    session = access.log_in(token, session_of(request, access), may_hide_cookie=is_from_elsewhere)
    if session is None:
        return refused(request, Refusal.TOO_MANY if access.logins.one_too_many() else Refusal.LINK)
    home = links_of(request).to("/")
    response = RedirectResponse(home, 303)
    response.set_cookie(
        access.cookie_name,
        session,
        path=home,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


def new_login_link(request: Request) -> Response:
    """For who holds the API's token and so may answer already: a way in for a browser."""
    path = links_of(request).to(served(request).access.new_login_path())
    return JSONResponse({"schema_version": 1, "path": path})
