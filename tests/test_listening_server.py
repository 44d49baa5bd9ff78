"""Connections that take their time, against a real server on this machine."""

from __future__ import annotations

import http.client
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from skillkit import World, listening
from skillkit.listening import MOST_CONNECTIONS, most_connections
from skillkit.web.server import PageServer

SHORT_SECONDS = 0.3
WHOLE = b"GET /favicon.svg HTTP/1.1\r\nHost: %s\r\n\r\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """Where a page is served that has little patience."""
    monkeypatch.setattr(listening, "REQUEST_SECONDS", SHORT_SECONDS)
    with World(tmp_path) as world, PageServer(world) as server:
        host, _, port = server.address.removeprefix("http://").partition(":")
        yield host, int(port)


def whole_request(place: tuple[str, int]) -> bytes:
    return WHOLE % f"{place[0]}:{place[1]}".encode()


def said_until_closed(connection: socket.socket) -> bytes:
    """Everything until the server hangs up; a test that waits for that in vain fails by its own time."""
    connection.settimeout(30)
    said = b""
    while more := connection.recv(65536):
        said += more
    return said


@pytest.mark.parametrize(
    "beginning",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n", id="half a head"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf", id="half a body"),
        pytest.param(
            b"WHOLE" + b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n", id="half behind a whole one"
        ),
    ],
)
def test_a_request_that_does_not_arrive_ends_its_connection(place: tuple[str, int], beginning: bytes) -> None:
    with socket.create_connection(place) as connection:
        connection.sendall(beginning.replace(b"WHOLE", whole_request(place)))
        with suppress(ConnectionResetError):
            said_until_closed(connection)


def test_drops_of_a_request_win_no_time(place: tuple[str, int]) -> None:
    with socket.create_connection(place) as connection:
        connection.settimeout(SHORT_SECONDS / 10)
        connection.sendall(b"GET / HTTP/1.1\r\n")
        assert any(is_ended_at_the_next_drop(connection) for _ in range(1_000))


def is_ended_at_the_next_drop(connection: socket.socket) -> bool:
    try:
        connection.sendall(b"a: b\r\n")
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def test_whole_requests_are_answered_one_after_the_other(place: tuple[str, int]) -> None:
    connection = http.client.HTTPConnection(*place, timeout=30)
    for _ in range(3):
        connection.request("GET", "/favicon.svg")
        response = connection.getresponse()
        assert (response.status, bool(response.read())) == (200, True)
    connection.close()


def test_no_more_connections_are_held_than_allowed(tmp_path: Path) -> None:
    with World(tmp_path) as world, PageServer(world) as server, ExitStack() as held:
        host, _, port = server.address.removeprefix("http://").partition(":")
        place = (host, int(port))
        callers = [held.enter_context(socket.create_connection(place)) for _ in range(MOST_CONNECTIONS + 20)]
        newest = callers[-1]
        newest.sendall(whole_request(place))
        newest.settimeout(30)
        assert newest.recv(15) == b"HTTP/1.1 200 OK"
        for oldest in callers[:10]:
            oldest.settimeout(30)
            with suppress(ConnectionResetError):
                assert oldest.recv(1) == b""


@pytest.mark.parametrize(("allowed", "expected"), [(64, 16), (20, 8), (1024, MOST_CONNECTIONS)])
def test_connections_take_a_part_of_the_descriptors_only(allowed: int, expected: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, before[1]))
        assert most_connections() == expected
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
