"""An index's page about a package -> its files: where they lie, their hashes, sizes and upload times.

Both forms that indexes give are read: JSON (PEP 691), and HTML (PEP 503), which tells neither size nor time.
"""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit

from packaging.utils import canonicalize_name

from skillkit.packages.values import PackagesError

__all__ = ["File", "files_of_package", "pages_of", "read_address"]

FORMS = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.5, text/html;q=0.1"
MOST_BYTES = 60_000_000
PAGE_SECONDS = 60.0
WAIT_SECONDS = 20.0
CHUNK = 1 << 16
AT_ONCE = 8
NOT_FOUND = (404, 410, 403, 401)
SHA256 = re.compile(r"sha256=([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class File:
    """One file of a release."""

    name: str
    address: str
    sha256: str = ""
    size: int | None = None
    uploaded_at: float | None = None


def pages_of(names: Iterable[str], addresses: Iterable[str], *, seconds: float = PAGE_SECONDS) -> dict[str, list[File]]:
    """Of each package, all files that the first index has that knows it."""
    wanted, asked = list(dict.fromkeys(names)), list(addresses)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(lambda name: files_of_package(name, asked, seconds=seconds), wanted)
        return dict(zip(wanted, found, strict=True))


def files_of_package(name: str, addresses: Iterable[str], *, seconds: float = PAGE_SECONDS) -> list[File]:
    for address in addresses:
        page = f"{address.rstrip('/')}/{canonicalize_name(name)}/"
        try:
            content, kind, final = read_address(page, FORMS, seconds=seconds)
        except urllib.error.HTTPError as error:
            if error.code in NOT_FOUND:
                continue
            raise _unreachable(page, str(error)) from error
        except (OSError, ValueError) as error:
            raise _unreachable(page, str(getattr(error, "reason", "") or error)) from error
        return _of_json(content, final) if "json" in kind else _of_html(content, final)
    return []


def read_address(address: str, accept: str, *, seconds: float = PAGE_SECONDS) -> tuple[bytes, str, str]:
    """What is there, what kind it is, and where it was in the end; bounded in size and time."""
    until = time.monotonic() + seconds
    bare, login = _without_login(address)
    request = urllib.request.Request(bare, headers={"Accept": accept, "User-Agent": "skillkit"})  # noqa: S310 - checked
    if login:
        request.add_header("Authorization", f"Basic {b64encode(login.encode()).decode()}")
    data = bytearray()
    with urllib.request.urlopen(request, timeout=min(WAIT_SECONDS, seconds)) as answer:  # noqa: S310 - http(s) alone
        while piece := answer.read1(CHUNK):
            data += piece
            if len(data) > MOST_BYTES:
                raise ValueError("the answer is too long")
            if time.monotonic() > until:
                raise TimeoutError("the answer takes too long")
        return bytes(data), answer.headers.get_content_type(), answer.geturl()


def _without_login(address: str) -> tuple[str, str]:
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https"):
        raise ValueError("it is no address of the web")
    if parts.username is None:
        return address, ""
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=place)), f"{unquote(parts.username)}:{unquote(parts.password or '')}"


def _unreachable(page: str, reason: str) -> PackagesError:
    host = urlsplit(page).hostname
    return PackagesError(f"The index {host} does not answer: {reason[:200]}. Check the network, or the index you set.")


def _of_json(content: bytes, base: str) -> list[File]:
    try:
        listed = json.loads(content)["files"]
        return [_file_of(each, base) for each in listed if isinstance(each, dict)]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        host = urlsplit(base).hostname
        raise PackagesError(f"The index {host} gives a page that cannot be read: {error}.") from error


def _file_of(each: dict[str, object], base: str) -> File:
    hashes, size = each.get("hashes"), each.get("size")
    return File(
        str(each["filename"]),
        urljoin(base, str(each["url"])),
        str(hashes.get("sha256", "")) if isinstance(hashes, dict) else "",
        size if isinstance(size, int) else None,
        _moment(each.get("upload-time")),
    )


def _moment(text: object) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp() if text else None
    except ValueError:
        return None


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


def _of_html(content: bytes, base: str) -> list[File]:
    reader = _Links()
    reader.feed(content.decode("utf-8", "replace"))
    files = []
    for link in reader.found:
        address, fragment = urldefrag(urljoin(base, link))
        found = SHA256.search(fragment)
        name = unquote(urlsplit(address).path.rpartition("/")[2])
        files.append(File(name, address, found[1] if found else ""))
    return files
