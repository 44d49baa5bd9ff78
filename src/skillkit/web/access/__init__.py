"""Who may use the page: one-time links, sessions, the token of the API, and what proves that a form is ours."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import OrderedDict, deque
from hashlib import sha256
from typing import Self, TypeVar

__all__ = ["Access", "Attempts"]

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
