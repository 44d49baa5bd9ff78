"""An https URL -> its bytes, no more than allowed and in no more time; never by plain http, whoever redirects there."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from skillkit._version import __version__
from skillkit.core.exceptions import SizeLimitExceededError, SourceRefusedError, SourceUnavailableError
from skillkit.core.values.text import grouped, visible

__all__ = ["download"]

QUIET_SECONDS = 30.0
CHUNK_BYTES = 1 << 16


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: urllib.request.Request, *given: Any) -> urllib.request.Request | None:  # noqa: ANN401 - the library's signature
        _require_https(given[-1])
        return super().redirect_request(req, *given)


def download(url: str, limit: int, *, seconds: float, on_progress: Callable[[str], None] | None = None) -> bytes:
    """All of it, or an error that names the URL."""
    _require_https(url)
    asked = urllib.request.Request(url, headers={"User-Agent": f"skillkit/{__version__}"})  # noqa: S310 - https only
    opener = urllib.request.build_opener(_OnlyHttps)
    until, content = time.monotonic() + seconds, bytearray()
    try:
        with opener.open(asked, timeout=min(seconds, QUIET_SECONDS)) as answer:
            while time.monotonic() < until and len(content) <= limit and (chunk := answer.read1(CHUNK_BYTES)):
                content += chunk
                if on_progress is not None:
                    on_progress(f"{grouped(len(content) // 1000)} kB fetched")
        if time.monotonic() >= until:
            raise TimeoutError  # noqa: TRY301 - as the library says it
    except TimeoutError as error:
        raise SourceUnavailableError(
            f"{visible(url)} did not answer to the end within {seconds:g} seconds. Try again, or give it more time "
            "by --timeout."
        ) from error
    except (OSError, ValueError) as error:
        raise SourceUnavailableError(
            f"{visible(url)} cannot be fetched: {visible(str(error))}. Check the address."
        ) from error
    if len(content) > limit:
        message = f"{visible(url)} is not added: it has more than {grouped(limit)} bytes."
        raise SizeLimitExceededError(message, size=len(content), limit=limit)
    return bytes(content)


def _require_https(url: str) -> None:
    if urlsplit(url).scheme != "https":
        raise SourceRefusedError(
            f"{visible(url)} is not fetched: it is not https, so anybody on the way may change it."
        )
