"""An HTTP request -> let through, or refused before any view sees it; every response leaves with the same headers."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillkit.listening.neighbours import is_stranger
from skillkit.web.access import Access
from skillkit.web.frame import path_within
from skillkit.web.refusals import Refusal, refused

__all__ = ["SECURITY_HEADERS", "Gate", "session_of"]

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
        if self.access.only_own_user and is_stranger(request.client, request.scope.get("server")):
            return refused(request, Refusal.STRANGER)
        if not is_our_host(request, self.hosts or own_hosts(request.scope)):
            return refused(request, Refusal.HOST)
        if is_from_elsewhere(request):
            return refused(request, Refusal.ORIGIN)
        path = path_within(request)
        if path in OPEN_PATHS or path.startswith("/static/"):
            return None
        return self.unwelcome_call(request) if path.startswith("/api/") else self.unwelcome_guest(request)

    def unwelcome_guest(self, request: Request) -> Response | None:
        if not self.access.is_session(session_of(request, self.access)):
            return refused(request, Refusal.SESSION)
        if request.method not in READING and not proves_our_origin(request):
            return refused(request, Refusal.ORIGIN)
        return None

    def unwelcome_call(self, request: Request) -> Response | None:
        """A token is not sent by a browser of its own accord, so a call needs no other proof of where it comes from."""
        given = request.headers.getlist("authorization")
        kind, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        if kind.lower() != "bearer" or not token:
            return refused(request, Refusal.TOKEN)
        if not self.access.is_api_token(token):
            return refused(request, Refusal.TOO_MANY if self.access.calls.one_too_many() else Refusal.TOKEN)
        return None


def own_hosts(scope: Scope) -> frozenset[str]:
    """This machine's names for itself, with the port that the server really listens on."""
    server = scope.get("server")
    if server is None or server[1] is None:
        return frozenset()
    is_usual = USUAL_PORTS.get(scope["scheme"]) == server[1]
    return frozenset(f"{name}{'' if is_usual else f':{server[1]}'}" for name in LOOPBACK)


def is_our_host(request: Request, hosts: frozenset[str]) -> bool:
    """A name that an attacker's DNS points here is not ours."""
    given = request.headers.getlist("host")
    return len(given) == 1 and given[0].lower() in hosts


def is_from_elsewhere(request: Request) -> bool:
    """What a browser says of the page behind this request; a link that was followed may come from anywhere."""
    origin, site = origin_of(request.headers), request.headers.get("sec-fetch-site")
    if origin is not None and origin != f"{request.url.scheme}://{request.headers['host']}".lower():
        return True
    is_followed = request.method in READING and request.headers.get("sec-fetch-mode") == "navigate"
    return site not in (None, "same-origin", "none") and not is_followed


def proves_our_origin(request: Request) -> bool:
    """`is_from_elsewhere` has refused every wrong one."""
    return origin_of(request.headers) is not None or request.headers.get("sec-fetch-site") == "same-origin"


def origin_of(headers: Headers) -> str | None:
    given = headers.getlist("origin")
    return ", ".join(given).lower() if given else None


def session_of(request: Request, access: Access) -> str:
    return request.cookies.get(access.cookie_name, "")
