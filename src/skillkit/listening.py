"""An ASGI application -> a server that idle callers cannot keep from others, nor from the descriptors scripts need.

It also tells which user of this machine is at the other end: the link that logs in to the page stands on a command line
while the browser starts, where other users can read it, and a browser sends the page's cookie to every server on this
machine, theirs too.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Endpoint", "LimitedServer", "is_other_user", "most_connections", "other_users_among", "server_config"]

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

# A socket of the newer protocol reaches an address of the older one too, and then stands in the second table.
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
MAPPED = f"{0:016X}{int.from_bytes(bytes((0, 0, 255, 255)), sys.byteorder):08X}"
LOCAL, REMOTE, OWNER, INODE = 1, 2, 7, 9
NOBODYS = "0"
ROOT = 0
LOOKS = 2  # a table that changes while it is read can leave a row out

Endpoint = tuple[str, int]

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
        http=_LimitedProtocol,
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
    """Takes few connections at a time, but lets many wait for their turn; `before_shutdown` ends what would not end."""

    def __init__(self, config: uvicorn.Config, before_shutdown: Callable[[], None] = lambda: None) -> None:
        super().__init__(config)
        self._before_shutdown = before_shutdown

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(QUEUED)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._before_shutdown()
        await super().shutdown(sockets)


class _LimitedProtocol(H11Protocol):
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
        waiting = [each for each in self.connections if isinstance(each, _LimitedProtocol) and each.is_waiting]
        others = self._other_users(waiting)
        oldest = sorted(waiting, key=lambda each: each.number)
        for each in others or oldest[:1] or [self]:
            each._end()  # noqa: SLF001 - of the same class

    def _other_users(self, waiting: list[_LimitedProtocol]) -> list[_LimitedProtocol]:
        """Looked for once a second at most: the tables are long where there are many connections."""
        now, server = time.monotonic(), self.server
        if server is None or server[1] is None or not _is_loopback(server[0]):
            return []
        place = (server[0], server[1])
        if now - _looked_at.get(place, -LOOK_SECONDS) < LOOK_SECONDS:
            return []
        _looked_at[place] = now
        found = other_users_among([each.client for each in waiting if each.client], place)
        return [each for each in waiting if each.client in found]


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def is_other_user(client: Endpoint | None, server: Endpoint | None) -> bool:
    """Only where the system says so: Linux names the user of every connection it holds itself.

    A connection that is not listed, or that nobody holds any more, counts as another user's.
    """
    if client is None or server is None or not hasattr(os, "geteuid") or not any(map(os.path.exists, TABLES)):
        return False
    try:
        caller = _as_listed(client)
        looks = (owner for _ in range(LOOKS) for each, owner in _callers(server) if each == caller)
        owner = next(looks, None)
    except (OSError, ValueError):  # not for us to read; a name instead of an address
        return False
    return owner is None or int(owner) not in (os.geteuid(), ROOT)


def other_users_among(clients: Iterable[Endpoint], server: Endpoint) -> set[Endpoint]:
    """Those of `clients` that other users of this machine hold, so far as it says so, from one look at the tables."""
    if not hasattr(os, "geteuid"):
        return set()
    try:
        owners, ours = dict(_callers(server)), (os.geteuid(), ROOT)
        return {client for client in clients if int(owners.get(_as_listed(client), ROOT)) not in ours}
    except (OSError, ValueError):  # as above
        return set()


def _callers(server: Endpoint) -> Iterator[tuple[str, str]]:
    """The other end of each connection, and who holds it.

    One that was closed has no inode, and old kernels call it root's. Row by row: where a machine has much
    memory, the kernel takes ten milliseconds for a whole table, however short.
    """
    place = _as_listed(server)
    for table in filter(os.path.exists, TABLES):
        with open(table, encoding="ascii") as file:
            for row in map(str.split, file):
                if row[REMOTE].removeprefix(MAPPED) == place and row[INODE] != NOBODYS:
                    yield row[LOCAL].removeprefix(MAPPED), row[OWNER]


def _as_listed(endpoint: Endpoint) -> str:
    """As the kernel's table has it: the address in the machine's own order of bytes."""
    address = ipaddress.IPv4Address(endpoint[0]).packed
    return f"{int.from_bytes(address, sys.byteorder):08X}:{endpoint[1]:04X}"
