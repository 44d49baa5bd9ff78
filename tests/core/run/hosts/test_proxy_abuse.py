"""The proxy of a run under abuse: slow, broken and lying clients hold up nobody, and what breaks in it opens nothing."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest
from support.network import answer_http, echo, listening
from support.proxies import ALLOWED, dial, outside, reaching, read_all, said_to, serving, tunnel
from support.running import wait_for

from skillkit.core.run.hosts import proxy as proxies
from skillkit.core.run.hosts.requests import HEAD_BYTES, parse_request
from skillkit.core.run.hosts.upstream import Upstream, Upstreams

HIDDEN = b"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"


def test_a_head_that_comes_byte_by_byte_is_read_in_time_and_waited_for_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(proxies._read_head, "__defaults__", (1.0,))
    with reaching(echo, "api.example.com:443") as (there, _, port), dial(port) as slow:
        slow.settimeout(10)
        began = time.monotonic()
        with contextlib.suppress(OSError):
            while time.monotonic() - began < 8:  # a byte every few milliseconds: no single wait is long
                slow.sendall(b"C")
                time.sleep(0.004)
        assert time.monotonic() - began < 6
        assert there.asked == []


def test_a_long_head_in_single_bytes_takes_no_more_time_than_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end is looked for in what is new, not in all of it again."""
    looked = []

    class Counted(bytearray):
        def find(self, sub: bytes, start: int = 0) -> int:  # type: ignore[override]
            looked.append(len(self) - start)
            return super().find(sub, start)

    monkeypatch.setattr(proxies, "bytearray", Counted, raising=False)

    class Drip:
        left = b"CONNECT api.example.com:443 HTTP/1.1\r\n" + b"X-A: b\r\n" * 1000 + b"\r\n"

        def settimeout(self, _: float) -> None: ...

        def recv(self, _: int) -> bytes:
            piece, self.left = self.left[:1], self.left[1:]
            return piece

    size = len(Drip.left)
    head, rest = proxies._read_head(Drip())  # type: ignore[arg-type]
    assert (len(head), rest) == (size, b"")
    assert sum(looked) < 10 * size


def test_a_head_without_an_end_is_cut_off() -> None:
    with reaching(echo, "api.example.com:443") as (there, _, port):
        answer = said_to(port, b"CONNECT api.example.com:443 HTTP/1.1\r\nX: " + b"a" * (HEAD_BYTES + 10))
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert there.asked == []


@pytest.mark.parametrize(
    "chunks",
    [
        b"4;a=\rb\r\nbody\r\n0\r\n\r\n",
        b"4;\x00\r\nbody\r\n0\r\n\r\n",
        b"4\nbody\r\n0\r\n\r\n",
        b"4 \r\nbody\r\n0\r\n\r\n",
        b"4\r\nbody0\r\n\r\n",
        b"4\r\nbodyXX0\r\n\r\n",
        b"4\r\nbody\r\n0\r\nno colon\r\n\r\n",
        b"4\r\nbody\r\n0\r\nX: a\rb\r\n\r\n",
        b"4\r\nbody\r\n0\r\n Folded: x\r\n\r\n",
        b"0x4\r\nbody\r\n0\r\n\r\n",
        b"+4\r\nbody\r\n0\r\n\r\n",
        b"4,4\r\nbody\r\n0\r\n\r\n",
        b"\r\n4\r\nbody\r\n0\r\n\r\n",
    ],
)
def test_chunks_that_others_could_read_in_another_way_end_the_connection(chunks: bytes) -> None:
    """What stands behind them never arrives, where another proxy might take it for a request to anybody."""
    seen: list[bytes] = []
    with reaching(answer_http(seen), "api.example.com:80") as (there, _, port):
        head = b"POST http://api.example.com/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        with contextlib.suppress(ConnectionError):
            said_to(port, head + chunks + HIDDEN)
        time.sleep(0.05)
        assert not any(b"evil" in each for each in (*seen, *there.heads))


def test_control_chunks_that_are_plain_arrive() -> None:
    seen: list[bytes] = []
    chunks = b"4;name=value\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n"
    with reaching(answer_http(seen), "api.example.com:80") as (_, _, port):
        head = b"POST http://api.example.com/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        assert b"200 OK" in said_to(port, head + chunks + HIDDEN)
    assert wait_for(lambda: bool(seen) and chunks in seen[0])
    assert b"evil" not in seen[0]


@pytest.mark.parametrize(
    "head",
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"connect api.example.com:443 HTTP/1.1\r\n\r\n",
        b"CONNECT api.example.com:443 HTTP/1.1\nHost: evil.test\r\n\r\n",
        b"CONNECT api.example.com:443\x00.evil.test:443 HTTP/1.1\r\n\r\n",
        b"CONNECT evil.test:443\x00.api.example.com:443 HTTP/1.1\r\n\r\n",
        b"CONNECT api.example.com\xe3\x80\x82:443 HTTP/1.1\r\n\r\n",
        b"CONNECT api\xef\xbc\x8eexample.com:443 HTTP/1.1\r\n\r\n",
        b"CONNECT api.example.com\xc2\xad:443 HTTP/1.1\r\n\r\n",
        b"CONNECT *:443 HTTP/1.1\r\n\r\n",
        b"CONNECT *.example.org:443 HTTP/1.1\r\n\r\n",
        b"CONNECT .example.org:443 HTTP/1.1\r\n\r\n",
        b"CONNECT a..example.org:443 HTTP/1.1\r\n\r\n",
        b"CONNECT " + b"a." * 130 + b"example.org:443 HTTP/1.1\r\n\r\n",
        b"CONNECT " + b"a" * 64 + b".example.org:443 HTTP/1.1\r\n\r\n",
        b"CONNECT 2130706433:443 HTTP/1.1\r\n\r\n",
        b"CONNECT 0177.0.0.1:443 HTTP/1.1\r\n\r\n",
        b"CONNECT 127.1:443 HTTP/1.1\r\n\r\n",
        b"CONNECT 0x7f000001:443 HTTP/1.1\r\n\r\n",
        b"CONNECT [::1%25lo]:443 HTTP/1.1\r\n\r\n",
        b"CONNECT [fe80::1%lo]:443 HTTP/1.1\r\n\r\n",
        b"CONNECT [api.example.com]:443 HTTP/1.1\r\n\r\n",
        b"CONNECT api.example.com:443, evil.test:443 HTTP/1.1\r\n\r\n",
        b"CONNECT api.example.com:443/../evil.test HTTP/1.1\r\n\r\n",
        b"CONNECT api.example.com:\xd9\xa4\xd9\xa4\xd9\xa3 HTTP/1.1\r\n\r\n",
        b"GET http://api.example.com:80:443/ HTTP/1.1\r\n\r\n",
        b"GET http://api.example.com&@evil.test/ HTTP/1.1\r\n\r\n",
        b"GET http://evil.test#@api.example.com/ HTTP/1.1\r\n\r\n",
        b"GET http://api.example.com;evil.test/ HTTP/1.1\r\n\r\n",
        b"GET //api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
        b"GET /x HTTP/1.1\r\nHost: api.example.com\r\n\r\n",
        b"GET ws://api.example.com/ HTTP/1.1\r\n\r\n",
        b"GET http://api.example.com/\x00 HTTP/1.1\r\n\r\n",
        b"GET http://api.example.com/ HTTP/1.1\r\nX: a\r\n Host: evil.test\r\n\r\n",
        b"GET http://api.example.com/ HTTP/1.1\r\nX: a\rHost: evil.test\r\n\r\n",
        b"GET http://api.example.com/ HTTP/1.1\r\nContent-Length : 5\r\n\r\n",
        b"GET http://api.example.com/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET http://api.example.com/ HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n",
        b"GET http://api.example.com/ HTTP/1.1\r\nTransfer-Encoding:\x0bchunked\r\n\r\n",
        b"GET http://api.example.com/ HTTP/1.1\r\nContent-Length: 4, 4\r\n\r\n",
        b"GET http://api.example.com/ HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET http://api.example.com/ HTTP/1.1\r\nContent-Length: 0x4\r\n\r\n",
    ],
)
def test_what_another_reader_could_take_for_another_host_or_a_second_request_goes_nowhere(head: bytes) -> None:
    with outside({}) as (there, upstreams), serving(*ALLOWED, upstreams=upstreams) as (_, port):
        assert said_to(port, head).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 403 "))
        assert there.asked == []


def test_a_kept_connection_serves_one_request_whoever_the_next_is_for() -> None:
    seen: list[bytes] = []
    with reaching(answer_http(seen), "api.example.com:80", "a.example.org:80") as (there, _, port):
        with dial(port) as connection:
            connection.sendall(b"GET http://api.example.com/ HTTP/1.1\r\nConnection: keep-alive\r\n\r\n")
            assert read_all(connection).endswith(b"hello"), "the connection ends with the answer"
            with contextlib.suppress(OSError):
                connection.sendall(b"GET http://a.example.org/ HTTP/1.1\r\n\r\n")
                assert read_all(connection) == b""
        assert there.asked == ["api.example.com:80"]
        assert b"\r\nConnection: close\r\n" in seen[0]
        assert b"keep-alive" not in seen[0]


def test_a_plain_request_cannot_be_turned_into_a_tunnel() -> None:
    seen: list[bytes] = []
    with reaching(answer_http(seen), "api.example.com:80") as (_, _, port):
        request = b"GET http://api.example.com/ HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        assert b"200 OK" in said_to(port, request + b"bytes of another kind")
    assert b"pgrade" not in seen[0]
    assert b"another kind" not in seen[0]


def test_half_closed_connections_pass_what_is_left_on() -> None:
    def talk(connection: socket.socket) -> None:
        connection.sendall(b"first")
        connection.shutdown(socket.SHUT_WR)
        rest = read_all(connection)
        heard.append(rest)

    heard: list[bytes] = []
    with reaching(talk, "api.example.com:443") as (_, _, port), contextlib.ExitStack() as held:
        connections = [held.enter_context(tunnel(port, "api.example.com:443")) for _ in range(20)]
        for each in connections:
            assert read_all(each) == b"first"
        for each in connections:
            each.sendall(b"x" * 100_000)
            each.shutdown(socket.SHUT_WR)
        assert wait_for(lambda: len(heard) == len(connections), 30)
    assert all(each == b"x" * 100_000 for each in heard)


@pytest.mark.parametrize("line", [b"HTTP/1.1 200\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.1 204 Fine\r\n\r\n"])
def test_the_machines_proxy_may_say_yes_in_any_way_it_is_said(line: bytes) -> None:
    def agree(connection: socket.socket) -> None:
        while b"\r\n\r\n" not in connection.recv(1 << 16):
            pass
        connection.sendall(line)
        echo(connection)

    with listening(agree) as there:
        upstream = Upstream("localhost", there)
        with (
            serving(*ALLOWED, upstreams=Upstreams(upstream, upstream)) as (_, port),
            tunnel(port, "api.example.com:443") as connection,
        ):
            connection.sendall(b"hello")
            connection.shutdown(socket.SHUT_WR)
            assert read_all(connection) == b"hello"


def test_a_machine_that_gives_no_thread_refuses_one_connection_and_serves_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with reaching(echo, "api.example.com:443") as (_, _, port):
        start, failed = threading.Thread.start, list[threading.Thread]()

        def fail_once(thread: threading.Thread) -> None:
            if thread.name == "skillkit host" and not failed:
                failed.append(thread)
                raise RuntimeError("can't start new thread")
            start(thread)

        monkeypatch.setattr(threading.Thread, "start", fail_once)
        with dial(port) as refused, contextlib.suppress(ConnectionError):
            assert refused.recv(10) == b""
        tunnel(port, "api.example.com:443").close()
        assert failed


def test_what_breaks_inside_opens_nothing_and_breaks_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with reaching(echo, "api.example.com:443") as (there, _, port):

        def fail(head: bytes) -> object:
            if b"evil" in head:
                raise AssertionError("a fault of our own")
            return parse_request(head)

        monkeypatch.setattr(proxies, "parse_request", fail)
        monkeypatch.setattr(threading, "excepthook", lambda *_: None)
        with contextlib.suppress(ConnectionError):
            assert said_to(port, b"CONNECT evil.test:443 HTTP/1.1\r\n\r\n") == b""
        tunnel(port, "api.example.com:443").close()
        assert there.asked == ["api.example.com:443"]
    assert capfd.readouterr().out == ""


def test_closing_ends_a_connection_that_is_still_being_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """To a host whose queue is full: it neither answers nor refuses."""
    with socket.socket() as deaf, contextlib.ExitStack() as held:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        place = deaf.getsockname()
        for _ in range(4):
            filler = held.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(place)
        monkeypatch.setattr(proxies, "allowed_addresses", lambda *_, **__: [place])
        with serving(*ALLOWED) as (proxy, port), dial(port) as client:
            client.sendall(b"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n")
            assert wait_for(lambda: len(proxy._open) == 3)
            threads = [*proxy._threads]
            began = time.monotonic()
            proxy.close()
            assert time.monotonic() - began < 5
            for each in threads:
                each.join(5)
            assert not any(each.is_alive() for each in threads)
            assert proxy._open <= {each for each in proxy._open if each.fileno() < 0 or each.getsockname()[1] == port}
