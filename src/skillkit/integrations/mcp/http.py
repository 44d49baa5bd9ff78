"""A server over streamable HTTP, for whoever has the token."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from skillkit.core.exceptions import ConfigurationError
from skillkit.listening import LimitedServer, server_config

__all__ = ["PATH", "TokenGate", "http_app", "listen_on", "serve_http"]

PATH = "/mcp"
LAST_SECONDS = 2


def serve_http(server: Server[Any], host: str, port: int, token: str, on_ready: Callable[[str], None]) -> None:
    """Until a signal ends us; `on_ready` gets the address once it can be called."""
    with listen_on(host, port) as listening:
        port = listening.getsockname()[1]
        app = http_app(server, host, port, token)
        config = server_config(app, timeout_graceful_shutdown=LAST_SECONDS)
        on_ready(f"http://{_in_url(host)}:{port}{PATH}")
        anyio.run(LimitedServer(config).serve, [listening])


def http_app(server: Server[Any], host: str, port: int, token: str) -> ASGIApp:
    """Only under the name it was bound to, so that no web page reaches it by a name of its own."""
    address = None
    with suppress(ValueError):  # a name
        address = ipaddress.ip_address(host)
    is_loopback = address.is_loopback if address is not None else host == "localhost"
    names = {_in_url(host)} | ({"127.0.0.1", "localhost", "[::1]"} if is_loopback else set())
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=address is None or not address.is_unspecified,
        allowed_hosts=[f"{name}:{port}" for name in sorted(names)],
        allowed_origins=[f"http://{name}:{port}" for name in sorted(names)],
    )
    return TokenGate(server.streamable_http_app(streamable_http_path=PATH, transport_security=security), token)


class TokenGate:
    """Nothing behind it sees a request without the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self.expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or (scope["type"] == "http" and self.is_known(scope)):
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            refusal = PlainTextResponse("A bearer token is needed.\n", 401, {"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)

    def is_known(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(given) == 1 and secrets.compare_digest(given[0], self.expected)


def listen_on(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ConfigurationError(
            f"Nothing can listen on {host}:{port}: {error.strerror or error}. Name another address, or port 0."
        ) from error


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
