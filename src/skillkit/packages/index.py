"""The user's own settings -> which index packages come from: asked of the tools themselves, in an empty folder.

Nothing of a skill or a workspace is looked at, and no address of an index is written down here.
"""

from __future__ import annotations

import configparser
import ipaddress
import json
import os
import re
import socket
import urllib.error
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from packaging.utils import canonicalize_name

from skillkit.core.run.hosts.addresses import is_loopback_name, is_public
from skillkit.core.values.hosts import HostRule, host_name
from skillkit.packages.pages import PAGE_SECONDS, PORTS, read_address
from skillkit.packages.tools import Hosts, ask_tool, npm_program, uv_program
from skillkit.packages.values import PackagesError

__all__ = ["AT_ONCE", "File", "Index", "files_of_package", "hosts_for", "npm_registry", "pages_of", "python_index"]

FORMS = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.5, text/html;q=0.1"
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


OPTION = re.compile(r"^--(extra-)?index-url[ =](\S+)$", re.MULTILINE)
PIP_FILES = ("~/.pip/pip.conf", "~/.config/pip/pip.conf", "/etc/pip.conf")


@dataclass(frozen=True, slots=True)
class Index:
    """Where packages are asked for: addresses, the first one first; they may hold a password, so none is shown."""

    addresses: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """For people: host and port alone."""
        return tuple(dict.fromkeys(_shown(each) for each in self.addresses))


def python_index(empty: Path) -> Index:
    """What uv would ask; where the user told only pip, what pip would ask."""
    uv = (uv_program(), "pip", "compile", "--emit-index-url", "--offline", "--quiet", "--cache-dir", str(empty / "c"))
    (empty / "none.in").touch()
    own = {name: value for name, value in os.environ.items() if name.startswith("UV_")}
    told = _addresses(ask_tool((*uv, "none.in"), empty).stdout)
    usual = _addresses(ask_tool((*uv, "--no-config", "none.in"), empty, dict.fromkeys(own, "")).stdout)
    if told == usual or not told:
        told = _of_pip(os.environ) or told
    usable = tuple(each for each in told if urlsplit(each).scheme in PORTS)
    if not usable:
        raise PackagesError(
            "No index of packages that can be asked over the network is set for uv or pip. Set UV_DEFAULT_INDEX."
        )
    return Index(usable)


def npm_registry(empty: Path) -> Index:
    said = ask_tool((npm_program(), "config", "get", "registry"), empty)
    address = said.stdout.strip()
    if said.status or urlsplit(address).scheme not in PORTS:
        raise PackagesError("npm says no registry. Set one: npm config set registry ADDRESS")
    return Index((address,))


def hosts_for(index: Index, files: Iterable[str] = ()) -> Hosts:
    """Exactly these hosts and ports: the index in whatever network it is, since the user's own settings name it.

    Where its pages say that files are, is somebody else's word: public hosts, and others only where the index itself
    lies in such a network; never this machine.
    """
    named = {_host_of(each) for each in index.addresses} - {("", 0)}
    elsewhere = {_host_of(each) for each in files} - named - {("", 0)}
    outer = {each for each in elsewhere if not is_loopback_name(each[0])}
    if any(not is_loopback_name(host) and not _is_public(host, port) for host, port in named):
        return Hosts((), frozenset(named), frozenset(outer))
    return Hosts(tuple(sorted(HostRule(host, port).id for host, port in outer)), frozenset(named))


def _is_public(host: str, port: int) -> bool:
    """Whether everybody reaches it; what has no address here is judged where it is reached."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return True
    return all("%" not in str(info[4][0]) and is_public(ipaddress.ip_address(info[4][0])) for info in found)


def _addresses(emitted: str) -> tuple[str, ...]:
    """The default one first."""
    found = OPTION.findall(emitted)
    return tuple(dict.fromkeys([each for extra, each in found if not extra] + [each for extra, each in found if extra]))


def _of_pip(environment: Mapping[str, str]) -> tuple[str, ...]:
    """By its variables, else by the files of the user and of the machine."""
    if named := environment.get("PIP_INDEX_URL"):
        return (named, *environment.get("PIP_EXTRA_INDEX_URL", "").split())
    for place in filter(None, (environment.get("PIP_CONFIG_FILE"), *PIP_FILES)):
        reader = configparser.ConfigParser(interpolation=None)
        try:
            reader.read(os.path.expanduser(place), encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
        if named := reader.get("global", "index-url", fallback=""):
            return (named, *reader.get("global", "extra-index-url", fallback="").split())
    return ()


def _host_of(address: str) -> tuple[str, int]:
    parts = urlsplit(address)
    try:
        port = parts.port or PORTS.get(parts.scheme, 0)
    except ValueError:
        return "", 0
    return host_name(parts.hostname or "") or "", port


def _shown(address: str) -> str:
    host, port = _host_of(address)
    return host if port in PORTS.values() else f"{host}:{port}"
