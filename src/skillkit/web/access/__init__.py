"""Who may use the page: one-time links, sessions, the token of the API, and what proves that a form is ours."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from hashlib import sha256
from typing import Self, TypeVar

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillkit.listening import is_other_user
from skillkit.web.html import Refusal, links_of, path_within, refuse

__all__ = ["SECURITY_HEADERS", "Access", "Attempts", "Gate", "login_page", "new_login_link", "session_of"]

LINK_SECONDS = 3600.0
FORM_SECONDS = 3600.0
KEPT = 100
FAILURES, FAILURE_SECONDS = 10, 60.0
# The link stands on a command line while the browser starts: who takes it from there comes about then.
RIVAL_SECONDS = 60.0

Value = TypeVar("Value")


class Attempts:
    """Wrong guesses of late; too many are told so. A right one always counts, else anybody could lock out everybody."""

    def __init__(self) -> None:
        self._failures: deque[float] = deque(maxlen=FAILURES)

    def one_too_many(self) -> bool:
        """Notes a wrong one."""
        now = time.monotonic()
        is_over = len(self._failures) == FAILURES and now - self._failures[0] < FAILURE_SECONDS
        if not is_over:
            self._failures.append(now)
        return is_over


class Access:
    """The secrets of one run of the page; nothing of it is kept on disk."""

    def __init__(self, *, api_token: str, cookie_name: str, secret: bytes, only_own_user: bool = False) -> None:
        self.api_token = api_token
        self.cookie_name = cookie_name
        self._secret = secret
        self._lock = threading.Lock()
        self._links: OrderedDict[str, float] = OrderedDict()
        self._sessions: OrderedDict[str, None] = OrderedDict()
        self._used: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self.logins = Attempts()
        self.calls = Attempts()
        self.only_own_user = only_own_user

    @classmethod
    def fresh(cls, *, only_own_user: bool = False) -> Self:
        """The cookie's name is random too: other servers on this machine share the browser's cookies with us.

        `only_own_user` turns other users of this machine away, whatever they bring; not for behind a proxy.
        """
        return cls(
            only_own_user=only_own_user,
            api_token=secrets.token_urlsafe(32),
            cookie_name=f"skillkit-{secrets.token_hex(8)}",
            secret=secrets.token_bytes(32),
        )

    def new_login_path(self) -> str:
        """Good for one use within an hour; the newest hundred count."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            _keep(self._links, _hashed(token), time.monotonic() + LINK_SECONDS)
        return f"/login?token={token}"

    def log_in(self, token: str, present: str = "", *, may_hide_cookie: bool = False) -> str | None:
        """The value of a session for a link: a new one at its first use, `present` for the browser that used it.

        When another one brings a link right after its first use, one of the two has it from elsewhere, and both stay
        out. A browser that keeps its cookie back may be the same.
        """
        with self._lock:
            name, now = _hashed(token), time.monotonic()
            if name in self._used:
                session, until = self._used[name]
                if session == _hashed(present) and session in self._sessions:
                    return present
                if now < until and not may_hide_cookie:
                    self._sessions.pop(session, None)
                return None
            if self._links.pop(name, 0.0) <= now:
                return None
            value = secrets.token_urlsafe(32)
            _keep(self._sessions, _hashed(value), None)
            _keep(self._used, name, (_hashed(value), now + RIVAL_SECONDS))
        return value

    def is_session(self, value: str) -> bool:
        with self._lock:
            return _hashed(value) in self._sessions

    def is_api_token(self, value: str) -> bool:
        return hmac.compare_digest(_hashed(value), _hashed(self.api_token))

    def form_token(self, session: str, shown: str) -> str:
        """Proves that this session was shown exactly this, and when."""
        moment = f"{time.monotonic():.6f}"
        return f"{moment}_{self._signature(session, shown, moment)}"

    def form_age(self, token: str, session: str, shown: str) -> float | None:
        """Seconds since the form was shown; None when it is not ours, not for this, or too old to act on."""
        moment, _, signature = token.partition("_")
        expected = self._signature(session, shown, moment)
        if not hmac.compare_digest(signature.encode("utf-8", "replace"), expected.encode("ascii")):
            return None
        age = time.monotonic() - float(moment)
        return age if 0 <= age <= FORM_SECONDS else None

    def _signature(self, session: str, shown: str, moment: str) -> str:
        # Lengths are written, so that no two triples give the same text.
        parts = "".join(f"{len(part)}:{part}" for part in (session, shown, moment))
        return hmac.new(self._secret, parts.encode("utf-8", "surrogatepass"), sha256).hexdigest()


def _keep(kept: OrderedDict[str, Value], name: str, value: Value) -> None:
    kept[name] = value
    while len(kept) > KEPT:
        kept.popitem(last=False)


def _hashed(text: str) -> str:
    """Looked up by hash: how long a miss takes says nothing about what is kept."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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
