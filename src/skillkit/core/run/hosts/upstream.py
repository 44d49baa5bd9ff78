"""The caller's environment -> the proxy through which this machine reaches other hosts, where it needs one."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from skillkit.core.exceptions import ConfigurationError

__all__ = ["Upstream", "Upstreams", "upstreams_in"]

_USUAL_PORT = 3128
_EVERYWHERE = "*"


class Upstream(NamedTuple):
    """Another proxy; names are resolved there."""

    host: str
    port: int
    authorization: bytes = b""

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        return ((b"Proxy-Authorization", self.authorization),) if self.authorization else ()


class Upstreams(NamedTuple):
    """One for tunnels, one for plain requests, and the hosts that need neither."""

    tunnels: Upstream | None = None
    plain: Upstream | None = None
    without: tuple[str, ...] = ()

    def on_the_way_to(self, name: str, port: int, *, is_tunnel: bool) -> Upstream | None:
        return None if self._is_direct(name, port) else self.tunnels if is_tunnel else self.plain

    def _is_direct(self, name: str, port: int) -> bool:
        """As others read NO_PROXY: a name means itself and all below it."""
        for entry in self.without:
            bare, _, wanted = entry.rpartition(":") if entry.count(":") == 1 else (entry, "", "")
            bare = (bare or entry).removeprefix("*").removeprefix(".")
            if wanted and wanted != str(port):
                continue
            if entry == _EVERYWHERE or name == bare or (bare and name.endswith(f".{bare}")):
                return True
        return False


def upstreams_in(environment: Mapping[str, str]) -> Upstreams:
    """Small letters win, as with curl; an empty value means none."""

    def value(name: str) -> str:
        return environment.get(name.lower()) or environment.get(name.upper()) or environment.get("all_proxy") or ""

    without = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    return Upstreams(
        _upstream("HTTPS_PROXY", value("https_proxy") or environment.get("ALL_PROXY", "")),
        _upstream("HTTP_PROXY", value("http_proxy") or environment.get("ALL_PROXY", "")),
        tuple(entry.strip().lower() for entry in without.split(",") if entry.strip()),
    )


def _upstream(variable: str, value: str) -> Upstream | None:
    if not value:
        return None
    parts = urlsplit(value if "://" in value else f"http://{value}")
    try:
        host, port = parts.hostname, parts.port or _USUAL_PORT
    except ValueError:
        host, port = None, 0
    if parts.scheme != "http" or not host:
        raise ConfigurationError(
            f"{variable} names no proxy that can be used: scripts reach hosts through proxies of the form "
            "http://name:port only. Set it so, or unset it where hosts are reached directly."
        )
    if parts.username is None:
        return Upstream(host, port)
    login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return Upstream(host, port, b"Basic " + base64.b64encode(login))
