"""The proxy of a run on loopback, the hosts that it leads to, and what a client says to it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from skillkit.core.run.hosts.proxy import Proxy
from skillkit.core.run.hosts.upstream import Upstream, Upstreams
from skillkit.core.values.hosts import HostRule
from support.network import Handle, ProxyOutside, listening

__all__ = ["ALLOWED", "dial", "outside", "reaching", "read_all", "read_until", "said_to", "serving", "tunnel"]

DIRECT = Upstreams()
ALLOWED = ("api.example.com", "*.example.org", "other.example.com:8443")


@contextmanager
def serving(*rules: str, upstreams: Upstreams = DIRECT, is_private: bool = False) -> Iterator[tuple[Proxy, int]]:
    proxy = Proxy([HostRule.parse(each, is_private=is_private) for each in rules], upstreams)
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        thread = threading.Thread(target=proxy.serve, args=(listener,))
        thread.start()
        try:
            yield proxy, listener.getsockname()[1]
        finally:
            proxy.close()
            thread.join(10)
            assert not thread.is_alive()


@contextmanager
def outside(hosts: dict[str, int]) -> Iterator[tuple[ProxyOutside, Upstreams]]:
    proxy = ProxyOutside(hosts)
    with listening(proxy) as port:
        upstream = Upstream("127.0.0.1", port)
        yield proxy, Upstreams(upstream, upstream)


@contextmanager
def reaching(handle: Handle, *authorities: str) -> Iterator[tuple[ProxyOutside, Proxy, int]]:
    """A host behind the machine's proxy, and a proxy of ours that leads to both."""
    with (
        listening(handle) as host,
        outside(dict.fromkeys(authorities, host)) as (there, upstreams),
        serving(*ALLOWED, upstreams=upstreams) as (proxy, port),
    ):
        yield there, proxy, port


def dial(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def tunnel(port: int, authority: str) -> socket.socket:
    connection = dial(port)
    connection.sendall(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode())
    assert b" 200 " in read_until(connection, b"\r\n\r\n")
    return connection


def read_until(connection: socket.socket, end: bytes) -> bytes:
    data = b""
    while not data.endswith(end):
        piece = connection.recv(1)
        if not piece:
            break
        data += piece
    return data


def read_all(connection: socket.socket) -> bytes:
    data = b""
    while piece := connection.recv(1 << 16):
        data += piece
    return data


def said_to(port: int, request: bytes) -> bytes:
    with dial(port) as connection:
        connection.sendall(request)
        return read_all(connection)
