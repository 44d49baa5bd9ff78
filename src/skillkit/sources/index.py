"""A site's index of skills (`/.well-known/agent-skills/index.json`) -> a tree with one folder for each of them.

Each artifact is named with its `sha256:`, and one that has another content is refused. A client can only know that the
site says so: index and artifacts come from the same place.
"""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any
from urllib.parse import urljoin, urlsplit

from skillkit._version import __version__
from skillkit.core.exceptions import SizeLimitExceededError, SourceRefusedError, SourceUnavailableError
from skillkit.core.values.text import grouped, visible
from skillkit.sources.archives import ARCHIVE_BYTES, ArchiveTree
from skillkit.sources.listing import SOURCE_BYTES, Listed, read_within

__all__ = ["IndexTree", "download"]

QUIET_SECONDS = 30.0
CHUNK_BYTES = 1 << 16


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: urllib.request.Request, *given: Any) -> urllib.request.Request | None:  # noqa: ANN401 - the library's signature
        _require_https(given[-1])
        found = super().redirect_request(req, *given)
        if found is not None:
            found.remove_header("Proxy-authorization")  # the proxy's alone: no proxy may lead to the next host
        return found


class _Ended(urllib.request.HTTPSHandler):
    """Connections that end with their time: a socket's own timeout knows silence, not who says a little for ever."""

    def __init__(self) -> None:
        super().__init__()
        self._made: list[http.client.HTTPSConnection] = []

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(self._connection, req)

    def _connection(self, host: str, **given: Any) -> http.client.HTTPSConnection:  # noqa: ANN401 - the library's
        self._made.append(http.client.HTTPSConnection(host, **given))
        return self._made[-1]

    def end(self) -> None:
        for connection in self._made:
            if connection.sock is not None:
                with suppress(OSError):
                    socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)  # TLS would wait for the other side


def download(url: str, limit: int, *, seconds: float, on_progress: Callable[[str], None] | None = None) -> bytes:
    """All of it, or an error that names the URL."""
    _require_https(url)
    until, connections = time.monotonic() + seconds, _Ended()
    ending = threading.Timer(seconds, connections.end)
    ending.daemon = True
    ending.start()
    try:
        content = _content(url, connections, limit, until, on_progress)
    except (OSError, ValueError, http.client.HTTPException) as error:
        if isinstance(error, TimeoutError) or time.monotonic() >= until:
            raise SourceUnavailableError(
                f"{visible(url)} did not answer to the end within {seconds:g} seconds. Try again, or give it more time "
                "by --timeout."
            ) from error
        raise SourceUnavailableError(
            f"{visible(url)} cannot be fetched: {visible(str(error))}. Check the address."
        ) from error
    finally:
        ending.cancel()
    if len(content) > limit:
        message = f"{visible(url)} is not added: it has more than {grouped(limit)} bytes."
        raise SizeLimitExceededError(message, size=len(content), limit=limit)
    return content


def _content(
    url: str, connections: _Ended, limit: int, until: float, on_progress: Callable[[str], None] | None
) -> bytes:
    """At most one piece more than allowed."""
    asked = urllib.request.Request(url, headers={"User-Agent": f"skillkit/{__version__}"})  # noqa: S310 - https only
    opener, content = urllib.request.build_opener(_OnlyHttps, connections), bytearray()
    try:
        answer = opener.open(asked, timeout=min(until - time.monotonic(), QUIET_SECONDS))
    except urllib.error.HTTPError as error:
        error.close()  # and its connection with it
        raise
    with answer:
        while time.monotonic() < until and len(content) <= limit and (chunk := answer.read1(CHUNK_BYTES)):
            content += chunk
            if on_progress is not None:
                on_progress(f"{grouped(len(content) // 1000)} kB fetched")
    if time.monotonic() >= until:
        raise TimeoutError
    return bytes(content)


def _require_https(url: str) -> None:
    if urlsplit(url).scheme != "https":
        raise SourceRefusedError(
            f"{visible(url)} is not fetched: it is not https, so anybody on the way may change it."
        )


INDEX_BYTES = 5_000_000
SKILL_FILE_BYTES = 10_000_000
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
SKILLS = 1000


class IndexTree:
    """Only what is wanted is fetched; all of it where nothing is named."""

    def __init__(
        self, url: str, wanted: Collection[str], *, seconds: float, on_progress: Callable[[str], None] | None = None
    ) -> None:
        self._url = url
        self._seconds = seconds
        self._on_progress = on_progress
        self._contents: list[bytes] = []
        self._left = SOURCE_BYTES
        self._versions: dict[str, str] = {}
        listed: list[Listed] = []
        for entry in self._entries():
            if not wanted or entry["name"] in wanted:
                listed += self._fetched(entry)
        self.listed: Sequence[Listed] = listed

    def version_of(self, path: str) -> str:
        """The hash of the artifact from which this came."""
        return self._versions[path.partition("/")[0]]

    def read(self, entries: Sequence[Listed]) -> list[bytes]:
        return [self._contents[entry.key] for entry in entries]

    def _entries(self) -> list[dict[str, str]]:
        raw = download(self._url, INDEX_BYTES, seconds=self._seconds)
        try:
            skills = json.loads(raw)["skills"]
            entries = [self._checked(entry) for entry in skills]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise SourceUnavailableError(
                f"{visible(self._url)} is no index of skills: it has no list 'skills' of objects with name, type, url "
                "and digest. Check the address."
            ) from error
        if len(entries) > SKILLS:
            raise SourceRefusedError(f"{visible(self._url)} lists more than {SKILLS} skills. Name some by --skill.")
        return entries

    def _checked(self, entry: dict[str, Any]) -> dict[str, str]:
        name, kind, url, digest = (str(entry[key]) for key in ("name", "type", "url", "digest"))
        if not NAME.fullmatch(name) or kind not in ("skill-md", "archive") or not DIGEST.fullmatch(digest):
            raise SourceRefusedError(
                f"{visible(self._url)}: {name!r} cannot be taken: its name, its type ({kind!r}) or its digest "
                f"({digest[:80]!r}) is none that the format knows. Tell the site's owner."
            )
        return {"name": name, "type": kind, "url": urljoin(self._url, url), "digest": digest}

    def _fetched(self, entry: dict[str, str]) -> list[Listed]:
        name, limit = entry["name"], SKILL_FILE_BYTES if entry["type"] == "skill-md" else ARCHIVE_BYTES
        content = download(entry["url"], limit, seconds=self._seconds, on_progress=self._on_progress)
        found = f"sha256:{sha256(content).hexdigest()}"
        if found != entry["digest"]:
            raise SourceRefusedError(
                f"{visible(entry['url'])} has the digest {found}, and the index says {entry['digest']}: somebody "
                "changed one of them. Nothing was changed here. Ask the site's owner."
            )
        self._versions[name] = found
        if entry["type"] == "skill-md":
            return [self._kept(Listed(f"{name}/SKILL.md", "file", len(content), None), content)]
        tree = ArchiveTree(entry["url"], content)
        contents = read_within(tree, tree.listed, f"{visible(entry['url'])} has")
        top = _common_folder(tree.listed)
        inside = [each._replace(path=f"{name}/{each.path.removeprefix(top)}") for each in tree.listed]
        return [self._kept(each, held) for each, held in zip(inside, contents, strict=True)]

    def _kept(self, entry: Listed, content: bytes) -> Listed:
        self._left -= len(content)
        if self._left < 0:
            raise SizeLimitExceededError(
                f"{visible(self._url)} is not added: its skills have more than {grouped(SOURCE_BYTES)} bytes together. "
                "Name some by --skill.",
                size=SOURCE_BYTES - self._left,
                limit=SOURCE_BYTES,
            )
        self._contents.append(content)
        return entry._replace(key=len(self._contents) - 1)


def _common_folder(listed: Sequence[Listed]) -> str:
    """The one folder around everything, if the skill does not lie at the top."""
    if any("/" not in entry.path for entry in listed):
        return ""
    tops = {entry.path.partition("/")[0] for entry in listed}
    return f"{tops.pop()}/" if len(tops) == 1 else ""
