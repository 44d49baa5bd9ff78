"""An ASGI application -> a server that idle callers cannot keep from others, nor from the descriptors scripts need."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from itertools import count
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from skillkit.listening.neighbours import Endpoint, strangers_among

__all__ = ["LimitedServer", "most_connections", "server_config"]

MOST_CONNECTIONS = 100
FEWEST_CONNECTIONS = 8
# Of the descriptors that this process may have; the rest is for scripts and the state.
SHARE_OF_DESCRIPTORS = 4
REQUEST_SECONDS = 20.0
KEEP_ALIVE_SECONDS = 5
LOOK_SECONDS = 1.0
# Taken at a time, before any of them can be looked at; the kernel keeps the others waiting.
ACCEPTED_AT_ONCE = 4
QUEUED = 1024
ARRIVED = (h11.DONE, h11.MUST_CLOSE, h11.CLOSED, h11.ERROR)

_numbers = count()
_looked_at: dict[Endpoint, float] = {}


def most_connections() -> int:
    """At a time; a descriptor that a caller holds is one that no script can have."""
    try:
        import resource
    except ImportError:  # Windows
        return MOST_CONNECTIONS
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(FEWEST_CONNECTIONS, min(MOST_CONNECTIONS, allowed // SHARE_OF_DESCRIPTORS))


def server_config(app: Any, **settings: Any) -> uvicorn.Config:  # noqa: ANN401 - uvicorn's own types are private
    """As both servers have it; logs, headers and limits are ours."""
    return uvicorn.Config(
        app,
        http=LimitedProtocol,
        ws="none",
        backlog=ACCEPTED_AT_ONCE,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # nobody stands in front, so who says so may be anybody
        **settings,
    )


class LimitedServer(uvicorn.Server):
    """Takes few connections at a time, but lets many wait for their turn."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(QUEUED)


class LimitedProtocol(H11Protocol):
    """One connection: a request must arrive in time, and who waits makes room for who comes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self.number = next(_numbers)
        self._deadline: asyncio.TimerHandle | None = None
        self._keep_deadline()
        if len(self.connections) > most_connections():
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._drop_deadline()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        super().handle_events()
        self._keep_deadline()

    @property
    def is_waiting(self) -> bool:
        """For a request, or for the rest of one: nothing is lost when it ends."""
        return self.conn.their_state not in ARRIVED

    def _keep_deadline(self) -> None:
        if not self.is_waiting or self.transport.is_closing():
            self._drop_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self._end)

    def _drop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end(self) -> None:
        """At once: a caller that reads nothing would keep a polite end waiting."""
        self.connections.discard(self)
        self.transport.abort()

    def _make_room(self) -> None:
        """Other users' connections go first, then the one that has waited longest; work goes on."""
        waiting = [each for each in self.connections if isinstance(each, LimitedProtocol) and each.is_waiting]
        strangers = self._strangers(waiting)
        oldest = sorted(waiting, key=lambda each: each.number)
        for each in strangers or oldest[:1] or [self]:
            each._end()  # noqa: SLF001 - of the same class

    def _strangers(self, waiting: list[LimitedProtocol]) -> list[LimitedProtocol]:
        """Looked for once a second at most: the tables are long where there are many connections."""
        now, server = time.monotonic(), self.server
        if server is None or server[1] is None or not is_loopback(server[0]):
            return []
        place = (server[0], server[1])
        if now - _looked_at.get(place, -LOOK_SECONDS) < LOOK_SECONDS:
            return []
        _looked_at[place] = now
        found = strangers_among([each.client for each in waiting if each.client], place)
        return [each for each in waiting if each.client in found]


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
