"""An HTTP request -> let through, or refused before any view sees it; every response leaves with the same headers.

A one-time link becomes a session's cookie here, and a redirect that takes the token out of the address.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillkit.listening import is_other_user
from skillkit.web.access import Access
from skillkit.web.html import links_of, path_within
from skillkit.web.html.refusals import Refusal, refuse

__all__ = ["SECURITY_HEADERS", "Gate", "login_page", "new_login_link", "session_of"]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": POLICY,
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # `no-referrer` would make browsers send `Origin: null` with our own forms.
    "referrer-policy": "same-origin",
}
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
USUAL_PORTS = {"http": 80, "https": 443}
OPEN_PATHS = ("/login", "/favicon.svg", "/manifest.webmanifest", "/api/v1/openapi.json")
READING = ("GET", "HEAD")


class Gate:
    """In front of everything, so that a view can rely on who asks."""

    def __init__(self, app: ASGIApp, *, access: Access, hosts: Sequence[str]) -> None:
        self.app = app
        self.access = access
        self.hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(SECURITY_HEADERS)
            await send(message)

        response = self.refusal(Request(scope)) or self.app
        await response(scope, receive, send_secured)

    def refusal(self, request: Request) -> Response | None:
        """In the order in which an attacker would have to get past them."""
        if self.access.only_own_user and is_other_user(request.client, request.scope.get("server")):
            return refuse(request, Refusal.OTHER_USER)
        if not _is_our_host(request, self.hosts or _own_hosts(request.scope)):
            return refuse(request, Refusal.HOST)
        if _is_foreign(request):
            return refuse(request, Refusal.ORIGIN)
        path = path_within(request)
        if path in OPEN_PATHS or path.startswith("/static/"):
            return None
        return self.require_token(request) if path.startswith("/api/") else self.require_session(request)

    def require_session(self, request: Request) -> Response | None:
        if not self.access.is_session(session_of(request, self.access)):
            return refuse(request, Refusal.SESSION)
        if request.method not in READING and not _proves_our_origin(request):
            return refuse(request, Refusal.ORIGIN)
        return None

    def require_token(self, request: Request) -> Response | None:
        """A token is not sent by a browser of its own accord, so a call needs no other proof of where it comes from."""
        given = request.headers.getlist("authorization")
        kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        if kind.lower() != "bearer" or not token:
            return refuse(request, Refusal.TOKEN)
        if not self.access.is_api_token(token):
            return refuse(request, Refusal.TOO_MANY if self.access.calls.one_too_many() else Refusal.TOKEN)
        return None


def _own_hosts(scope: Scope) -> frozenset[str]:
    """This machine's names for itself, with the port that the server really listens on."""
    server = scope.get("server")
    if server is None or server[1] is None:
        return frozenset()
    is_usual = USUAL_PORTS.get(scope["scheme"]) == server[1]
    return frozenset(f"{name}{'' if is_usual else f':{server[1]}'}" for name in LOOPBACK)


def _is_our_host(request: Request, hosts: frozenset[str]) -> bool:
    """A name that an attacker's DNS points here is not ours."""
    given = request.headers.getlist("host")
    return len(given) == 1 and given[0].lower() in hosts


def _is_foreign(request: Request) -> bool:
    """What a browser says of the page behind this request; a link that was followed may come from anywhere."""
    origin, site = _origin_of(request.headers), request.headers.get("sec-fetch-site")
    if origin is not None and origin != f"{request.url.scheme}://{request.headers['host']}".lower():
        return True
    is_followed = request.method in READING and request.headers.get("sec-fetch-mode") == "navigate"
    return site not in (None, "same-origin", "none") and not is_followed


def _proves_our_origin(request: Request) -> bool:
    """`_is_foreign` has refused every wrong one."""
    return _origin_of(request.headers) is not None or request.headers.get("sec-fetch-site") == "same-origin"


def _origin_of(headers: Headers) -> str | None:
    given = headers.getlist("origin")
    return ", ".join(given).lower() if given else None


def login_page(request: Request) -> Response:
    """A HEAD looks and uses nothing up."""
    access: Access = request.app.state.context.access
    token = request.query_params.get("token", "")
    if not token or request.method == "HEAD":
        return refuse(request, Refusal.SESSION)
    is_from_elsewhere = request.headers.get("sec-fetch-site") == "cross-site"  # our cookie is not sent from there
    session = access.log_in(token, session_of(request, access), may_hide_cookie=is_from_elsewhere)
    if session is None:
        return refuse(request, Refusal.TOO_MANY if access.logins.one_too_many() else Refusal.LINK)
    home, is_secure = links_of(request).to("/"), request.url.scheme == "https"
    response = RedirectResponse(home, 303)
    response.set_cookie(access.cookie_name, session, path=home, httponly=True, samesite="strict", secure=is_secure)
    return response


def new_login_link(request: Request) -> Response:
    """For who holds the API's token and so may answer already: a way in for a browser."""
    access: Access = request.app.state.context.access
    return JSONResponse({"schema_version": 1, "path": links_of(request).to(access.new_login_path())})


def session_of(request: Request, access: Access) -> str:
    return request.cookies.get(access.cookie_name, "")
