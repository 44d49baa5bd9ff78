"""A listening socket and rules -> connections to the hosts that the rules open, and what was reached or refused.

Each connection has a thread of its own: what it waits for (a name, a host, a slow client) holds up no other. There are
never more than `MOST_AT_ONCE`; others wait until the kernel's queue is full.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Collection, Iterator, Sequence

from skillkit.core.run.hosts.addresses import allowed_addresses, is_loopback_name, service_addresses
from skillkit.core.run.hosts.relay import Moved, relay
from skillkit.core.run.hosts.requests import HEAD_BYTES, Body, Request, RequestError, parse_request
from skillkit.core.run.hosts.upstream import Upstream, Upstreams
from skillkit.core.values.hosts import (
    ANY,
    NOT_LISTED,
    NOT_PUBLIC,
    HostRule,
    HostUse,
    is_address,
    is_closed_name,
    is_inner_name,
)
from skillkit.core.values.runs import OnHost

__all__ = ["Proxy"]

MOST_AT_ONCE = 256
MOST_HOSTS = 100  # told by name; a script chooses them
HEAD_SECONDS = 20.0
CONNECT_SECONDS = 20.0
FAREWELL_SECONDS = 1.0
_REASONS = {400: "Bad Request", 403: "Forbidden", 408: "Request Timeout", 431: "Too Large", 502: "Bad Gateway"}
OTHERS = "(others)"


class _RefusedError(RequestError):
    """A host that no rule opens; `told` is what the script hears, where that is less than what people do."""

    def __init__(self, message: str, told: str = "") -> None:
        super().__init__(message, 403)
        self.told = told or message


class _Count:
    """What was done with one host: a script can connect as often as it likes, and this stays small."""

    def __init__(self) -> None:
        self.connections = 0
        self._over = Moved()
        self._passing: set[Moved] = set()

    def begin(self, moved: Moved) -> None:
        self.connections += 1
        self._passing.add(moved)

    def end(self, moved: Moved) -> None:
        self._passing.discard(moved)
        self._over.sent += moved.sent
        self._over.received += moved.received

    def bytes(self) -> tuple[int, int]:
        """Sent and received, also of connections that go on."""
        every = (self._over, *self._passing)
        return sum(each.sent for each in every), sum(each.received for each in every)


class Proxy:
    """Accepts on one socket until it is closed."""

    def __init__(
        self,
        rules: Sequence[HostRule],
        upstreams: Upstreams = Upstreams(),  # noqa: B008 - frozen
        *,
        own_services: Collection[tuple[str, int]] = (),
        other_services: Collection[tuple[str, int]] = (),
    ) -> None:
        """`own_services` are names and ports that the user's own settings name: for tools of ours, never for scripts.

        They may lie in any network, and on this very machine where the name says so; `other_services`, which those
        name in their turn, never do.
        """
        self._rules = tuple(rules)
        self._own_services, self._other_services = frozenset(own_services), frozenset(other_services)
        self._upstreams = upstreams
        self._lock = threading.Lock()
        self._free = threading.Semaphore(MOST_AT_ONCE)
        self._open: set[socket.socket] = set()
        self._threads: set[threading.Thread] = set()
        self._is_closed = False
        self.on_host: OnHost | None = None
        self._used: dict[tuple[str, str, str], _Count] = {}

    def serve(self, listener: socket.socket) -> None:
        """Take connections until `close`; returns then."""
        if not self._hold(listener):
            return
        while True:
            self._free.acquire()
            try:
                client, _ = listener.accept()
            except OSError:
                self._free.release()
                if self._is_closed:
                    return
                time.sleep(0.01)  # descriptors are short for a moment
                continue
            self._begin(client)

    def _begin(self, client: socket.socket) -> None:
        """A machine that can give no more threads gives this connection none, and the next one a try."""
        thread = threading.Thread(target=self._attend, args=(client,), name="skillkit host", daemon=True)
        try:
            with self._lock:
                thread.start()
                self._threads.add(thread)
        except RuntimeError:
            client.close()
            self._free.release()

    def close(self) -> None:
        """End every connection; afterwards nothing is reached any more."""
        with self._lock:
            self._is_closed = True
            held, threads = [*self._open], [*self._threads]
        for each in held:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._free.release()
        until = time.monotonic() + FAREWELL_SECONDS
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))

    def used(self) -> tuple[HostUse, ...]:
        """What was reached and refused so far, in the order it was first asked for."""
        with self._lock:
            return tuple(
                HostUse(host, refused, count.connections, *count.bytes(), via)
                for (host, refused, via), count in self._used.items()
            )

    def _hold(self, connection: socket.socket) -> bool:
        """Known to `close`; False where that has been already."""
        with self._lock:
            if not self._is_closed:
                self._open.add(connection)
            return not self._is_closed

    def _release(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)
        connection.close()

    def _attend(self, client: socket.socket) -> None:
        try:
            if self._hold(client):
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._answer(client)
        except OSError:
            pass  # the client hung up
        finally:
            self._release(client)
            self._free.release()
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _answer(self, client: socket.socket) -> None:
        request = None
        try:
            head, rest = _read_head(client)
            request = parse_request(head)
            server, upstream = self._reach(request)
        except RequestError as error:
            if request is not None:
                with self._counted(request, str(error)):
                    pass
            _say_no(client, error)
            return
        try:
            with self._counted(request, via=upstream.place if upstream else "") as moved:
                _pass_on(client, server, request, rest, upstream, moved)
        except RequestError as error:
            _say_no(client, error)
        finally:
            self._release(server)

    # Which host, and the way to it.

    def _reach(self, request: Request) -> tuple[socket.socket, Upstream | None]:
        """A connection to the host, or to the proxy that leads to it."""
        name, port = request.name, request.port
        rules = [rule for rule in self._rules if rule.opens(name, port)]
        is_own = (name, port) in self._own_services
        is_service = is_own or (name, port) in self._other_services
        if not rules and not is_service:
            raise _RefusedError(f"{request.place} {NOT_LISTED}")
        upstream = self._upstreams.on_the_way_to(name, port, is_tunnel=request.is_tunnel)
        upstream = None if is_own and is_loopback_name(name) else upstream
        try:
            if is_service and upstream is None:
                return self._connect(service_addresses(name, port, is_elsewhere=not is_own)), None
            if upstream is None:
                return self._connect(allowed_addresses(name, port, is_private=any(r.is_private for r in rules))), None
            if not is_service:
                _require_outer(name, rules)
            server = self._connect([(upstream.host, upstream.port)])
        except PermissionError as error:  # which names this network knows, and as what, is no script's business
            raise _RefusedError(str(error), f"{request.place} leads to what {NOT_PUBLIC}") from error
        except OSError as error:
            raise RequestError(f"{request.place} cannot be reached: {error.strerror or error}", 502) from error
        if request.is_tunnel:
            self._tunnel_through(server, request, upstream)
        return server, upstream

    def _connect(self, addresses: Sequence[tuple[str, int]]) -> socket.socket:
        """To the first that answers; known to `close` from the beginning, so that nothing is reached after it."""
        problem: OSError | None = None
        found = [each for address in addresses for each in socket.getaddrinfo(*address, type=socket.SOCK_STREAM)]
        for family, _, _, _, place in found:
            server = socket.socket(family, socket.SOCK_STREAM)
            if not self._hold(server):
                server.close()
                break
            try:
                server.settimeout(CONNECT_SECONDS)
                server.connect(place)
                server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                self._release(server)
                problem = error
            else:
                return server
        raise problem or OSError("the run is over")

    def _tunnel_through(self, server: socket.socket, request: Request, upstream: Upstream) -> None:
        lines = [b"CONNECT " + request.authority + b" HTTP/1.1", b"Host: " + request.authority]
        lines += [name + b": " + value for name, value in upstream.headers]
        try:
            server.sendall(b"\r\n".join((*lines, b"", b"")))
            answer = _read_answer(server)
        except (OSError, RequestError) as error:
            self._release(server)
            raise RequestError(f"the proxy of this machine does not answer: {error}", 502) from error
        if not re.match(rb"HTTP/1\.[01] 2[0-9][0-9][ \r]", answer):
            self._release(server)
            said = answer.split(b"\r\n", 1)[0][:100].decode("ascii", "replace")
            raise RequestError(f"the proxy of this machine does not lead to {request.name}: {said}", 502)

    @contextlib.contextmanager
    def _counted(self, request: Request, refused: str = "", via: str = "") -> Iterator[Moved]:
        """One more connection, whose bytes are counted while they pass."""
        key, moved = (request.place, refused, via), Moved()
        with self._lock:
            if key not in self._used and len(self._used) >= MOST_HOSTS:
                key = (OTHERS, "refused like others before" if refused else "", via)
            is_first = key not in self._used
            count = self._used.setdefault(key, _Count())
            count.begin(moved)
        if is_first and self.on_host is not None:
            with contextlib.suppress(Exception):  # the caller's own: no connection waits for it or dies of it
                self.on_host(HostUse(key[0], key[1], 1, via=via))
        try:
            yield moved
        finally:
            with self._lock:
                count.end(moved)


def _pass_on(
    client: socket.socket,
    server: socket.socket,
    request: Request,
    rest: bytes,
    upstream: Upstream | None,
    moved: Moved,
) -> None:
    """What the client said after its head, and all that follows."""
    if request.is_tunnel:
        body, first = None, rest
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    else:
        body = Body(request.length)
        head = request.head(is_absolute=upstream is not None, more=upstream.headers if upstream else ())
        first = head + rest[: body.take(rest)]
    server.sendall(first)
    moved.sent += len(first)
    relay(client, server, moved, body)


def _require_outer(name: str, rules: Sequence[HostRule]) -> None:
    """What another proxy resolves cannot be judged here; addresses can, and names that no public network has."""
    if is_address(name):
        allowed_addresses(name, 0, is_private=any(rule.is_private for rule in rules))
        return
    if is_closed_name(name):
        raise PermissionError(f"{name} is never opened")
    if is_inner_name(name) and all(rule.name == ANY for rule in rules):
        raise PermissionError(f"{name} is a name of a private network, and {NOT_LISTED}")


def _read_head(connection: socket.socket, seconds: float = HEAD_SECONDS) -> tuple[bytes, bytes]:
    """All up to the empty line, and what came behind it; a client that takes its time is not waited for."""
    until = time.monotonic() + seconds
    data, looked = bytearray(), 0
    while (end := data.find(b"\r\n\r\n", max(0, looked - 3))) < 0:
        looked, left = len(data), until - time.monotonic()
        if looked > HEAD_BYTES:
            raise RequestError("the request's head is too long", 431)
        connection.settimeout(max(0.001, left))
        try:
            piece = connection.recv(HEAD_BYTES) if left > 0 else None
        except TimeoutError:
            piece = None
        if piece is None:
            raise RequestError("no request came", 408)
        if not piece:
            raise RequestError("the connection ended before the request did")
        data += piece
    return bytes(data[: end + 4]), bytes(data[end + 4 :])


def _read_answer(server: socket.socket) -> bytes:
    """The head of another proxy's answer, byte by byte at its end: what follows belongs to the tunnel."""
    data = b""
    server.settimeout(CONNECT_SECONDS)
    while not data.endswith(b"\r\n\r\n"):
        seen = server.recv(HEAD_BYTES, socket.MSG_PEEK)
        end = (data[-3:] + seen).find(b"\r\n\r\n")
        count = len(seen) if end < 0 else end + 4 - len(data[-3:])
        data += server.recv(count)
        if not seen or len(data) > HEAD_BYTES:
            raise RequestError("its answer has no end")
    return data


def _say_no(client: socket.socket, error: RequestError) -> None:
    text = f"skillkit: {error.told if isinstance(error, _RefusedError) else error}\n".encode()
    head = f"HTTP/1.1 {error.status} {_REASONS[error.status]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    head += f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    client.settimeout(FAREWELL_SECONDS)
    client.sendall(head.encode("ascii") + text)
