"""Servers on loopback that stand for the network outside: hosts with names of our own behind a proxy of the machine."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["Handle", "ProxyOutside", "answer_http", "echo", "listening"]

Handle = Callable[[socket.socket], None]


@contextmanager
def listening(handle: Handle) -> Iterator[int]:
    """The port of a server that hands each connection to `handle`, in a thread of its own."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=attend, args=(connection,), daemon=True).start()

        def attend(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                handle(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def echo(connection: socket.socket) -> None:
    """Gives back what it gets, and ends when its client does."""
    while data := connection.recv(1 << 16):
        connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)


def answer_http(seen: list[bytes], text: bytes = b"hello") -> Handle:
    """A host that notes what it was sent and answers each request with the text."""

    def handle(connection: socket.socket) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            piece = connection.recv(1 << 16)
            if not piece:
                return
            data += piece
        seen.append(data)
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode() + text)
        connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(1 << 16):
            seen[-1] += piece

    return handle


class ProxyOutside:
    """The proxy that a machine needs to reach the network: it knows names of our own, and notes what was asked of it."""

    def __init__(self, hosts: dict[str, int]) -> None:
        """`hosts` are `name:port` and where that really listens on loopback."""
        self.hosts = hosts
        self.asked: list[str] = []
        self.heads: list[bytes] = []

    def __call__(self, connection: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = connection.recv(1)
            if not piece:
                return
            head += piece
        self.heads.append(head)
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        authority = target if method == "CONNECT" else target.removeprefix("http://").partition("/")[0]
        authority = authority if ":" in authority else f"{authority}:80"
        self.asked.append(authority)
        if authority not in self.hosts:
            connection.sendall(b"HTTP/1.1 502 No such host\r\nConnection: close\r\n\r\n")
            return
        with socket.create_connection(("127.0.0.1", self.hosts[authority])) as server:
            if method == "CONNECT":
                connection.sendall(b"HTTP/1.1 200 OK\r\nVia: outside\r\n\r\n")
            else:
                path = "/" + target.removeprefix("http://").partition("/")[2]
                server.sendall(head.replace(target.encode(), path.encode(), 1))
            _both_ways(connection, server)


def _both_ways(one: socket.socket, other: socket.socket) -> None:
    def pass_on(source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    back = threading.Thread(target=pass_on, args=(other, one), daemon=True)
    back.start()
    pass_on(one, other)
    back.join()
