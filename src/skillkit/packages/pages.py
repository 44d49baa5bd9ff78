"""An address of an index -> what is there, bounded in size and time.

A login goes to the host that it was set for: whoever that host sends us on to gets none of it.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from base64 import b64encode
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

__all__ = ["PAGE_SECONDS", "PORTS", "read_address"]

PORTS = {"https": 443, "http": 80}
PAGE_SECONDS = 60.0
WAIT_SECONDS = 20.0
MOST_BYTES = 60_000_000
CHUNK = 1 << 16
LOGIN, PROXY_LOGIN = "Authorization", "Proxy-authorization"


class _Redirects(urllib.request.HTTPRedirectHandler):
    """The library would send every header on to whatever host is named."""

    def redirect_request(self, req: urllib.request.Request, *given: Any) -> urllib.request.Request | None:  # noqa: ANN401 - the library's signature
        before, after = urlsplit(req.full_url), urlsplit(given[-1])
        if after.scheme not in ("https", before.scheme):
            given[0].close()
            raise ValueError(f"it sends on from {before.scheme} to {after.scheme or 'nowhere'}, which is not followed")
        found = super().redirect_request(req, *given)
        if found is not None:
            found.remove_header(PROXY_LOGIN)  # set anew where the way leads through the proxy again
            if _origin(before) == _origin(after) and (login := req.get_header(LOGIN)):
                found.add_unredirected_header(LOGIN, login)
        return found


def read_address(address: str, accept: str, *, seconds: float = PAGE_SECONDS) -> tuple[bytes, str, str]:
    """What is there, what kind it is, and where it was in the end."""
    until = time.monotonic() + seconds
    bare, login = _without_login(address)
    request = urllib.request.Request(bare, headers={"Accept": accept, "User-Agent": "skillkit"})  # noqa: S310 - checked
    if login:
        request.add_unredirected_header(LOGIN, f"Basic {b64encode(login.encode()).decode()}")
    data = bytearray()
    opener = urllib.request.build_opener(_Redirects)  # of our own: the proxies and certificates that are set now
    try:
        answer = opener.open(request, timeout=min(WAIT_SECONDS, seconds))
    except urllib.error.HTTPError as error:
        error.close()  # and its connection with it
        raise
    with answer:
        while piece := answer.read1(CHUNK):
            data += piece
            if len(data) > MOST_BYTES:
                raise ValueError("the answer is too long")
            if time.monotonic() > until:
                raise TimeoutError("the answer takes too long")
        return bytes(data), answer.headers.get_content_type(), answer.geturl()


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or PORTS.get(parts.scheme)


def _without_login(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    if parts.scheme not in PORTS:
        raise ValueError("it is no address of the web")
    if parts.username is None:
        return address, ""
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=place)), f"{unquote(parts.username)}:{unquote(parts.password or '')}"
