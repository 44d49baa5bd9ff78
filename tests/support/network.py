"""Servers on loopback that stand for the network outside: hosts with names of our own behind a proxy of the machine."""

from __future__ import annotations

import contextlib
import http.server
import os
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import trustme

from skillkit import STANDARD, ScriptExecutionResult, SkillManager
from skillkit.testing import skill_folder

__all__ = [
    "NAME",
    "POLICY",
    "Handle",
    "HostWorld",
    "ProxyOutside",
    "answer_http",
    "echo",
    "host_world",
    "https_server",
    "listening",
    "many_open_files",
]

NAME = "api.example.com"
POLICY = replace(STANDARD, sandbox="required", allowed_hosts=(NAME,))
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


@contextmanager
def many_open_files(count: int = 4096) -> Iterator[None]:
    """Both ends of every connection are in the test's one process: an ordinary user's usual 1,024 are too few."""
    import resource  # not everywhere

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(count, hard)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


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
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:  # what one side hung up on is over for both
            for each in (source, sink):
                with contextlib.suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    back = threading.Thread(target=pass_on, args=(other, one), daemon=True)
    back.start()
    pass_on(one, other)
    back.join()


class HostWorld:
    """A machine behind a proxy, and hosts of our own behind that."""

    def __init__(self, folder: Path, outside: ProxyOutside) -> None:
        self.folder = folder
        self.outside = outside

    def run(self, script: str, text: str, *argv: str, **changes: object) -> ScriptExecutionResult:
        skill_folder(self.folder / "skills", "net", files={f"scripts/{script}": text})
        policy = replace(POLICY, **changes)  # type: ignore[arg-type]
        with SkillManager(
            self.folder / "skills", "", [], [], policy=policy, state_dir=self.folder / "state"
        ) as manager:
            return manager.execute_skill_script("net", script, argv=argv, timeout=60)


@contextmanager
def host_world(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostWorld]:
    """`NAME` and one that is not allowed, both with a certificate of an authority of our own."""
    served = folder / "served"
    served.mkdir()
    (served / "hello.txt").write_text("hello")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    with https_server(served, authority) as port:
        outside = ProxyOutside({f"{NAME}:443": port, "evil.example.com:443": port})
        with listening(outside) as proxy:
            for variable in ("http_proxy", "https_proxy"):
                monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy}")
            monkeypatch.setenv("SSL_CERT_FILE", str(folder / "authority.pem"))
            monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
            yield HostWorld(folder, outside)


@contextmanager
def https_server(folder: Path, authority: trustme.CA) -> Iterator[int]:
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(NAME, "evil.example.com").configure_cert(context)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(10)
