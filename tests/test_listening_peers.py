"""Who on this machine is at the other end of a connection."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from skillkit import World
from skillkit.listening import is_other_user, other_users_among
from skillkit.web.server import PageServer

CALL = """
import socket, sys
family = socket.AF_INET6 if ":" in sys.argv[2] else socket.AF_INET
with socket.socket(family) as connection:
    connection.connect((sys.argv[2], int(sys.argv[1])))
    connection.recv(1)
"""
WAYS = ("127.0.0.1", "::ffff:127.0.0.1")
"""To the same address: by a socket of the older protocol, and by one of the newer."""
SYSTEM_PYTHON = "/usr/bin/python3"  # which another user can run
as_root = pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists(SYSTEM_PYTHON), reason="only root can be somebody else"
)


def called_by(user: int | None, way: str) -> bool:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        subprocess.Popen(
            [SYSTEM_PYTHON if user else sys.executable, "-I", "-c", CALL, str(listening.getsockname()[1]), way],
            user=user,
            cwd="/",
        ) as process,
    ):
        listening.settimeout(30)
        connection, client = listening.accept()
        with connection:
            server = connection.getsockname()
            found = is_other_user(client, server)
        process.wait(30)
    return found


@pytest.mark.parametrize("way", WAYS)
def test_the_same_user_is_no_other(way: str) -> None:
    assert not called_by(None, way)


@as_root
@pytest.mark.parametrize("way", WAYS)
def test_another_user_is_one(way: str) -> None:
    assert called_by(65534, way)


@pytest.mark.parametrize("client", [("::1", 1), ("testclient", 50000)])
def test_of_what_is_no_such_address_the_system_says_nothing(client: tuple[str, int]) -> None:
    assert not is_other_user(client, ("127.0.0.1", 2))


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="the system names no owners")
def test_a_connection_that_nobody_holds_is_a_strangers() -> None:
    """Else who sends and closes at once would be nobody, or root."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        calling = socket.create_connection(listening.getsockname())
        connection, client = listening.accept()
        with connection:
            server = connection.getsockname()
            assert not is_other_user(client, server)
            calling.close()
            assert is_other_user(client, server)


@as_root
def test_of_many_connections_those_of_other_users_are_told_in_one_look() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_connection(listening.getsockname()) as own:
        command = [SYSTEM_PYTHON, "-I", "-c", CALL, str(listening.getsockname()[1]), "127.0.0.1"]
        with subprocess.Popen(command, user=65534, cwd="/") as process:
            accepted = [listening.accept() for _ in range(2)]
            clients = [client for _, client in accepted]
            assert other_users_among([*clients, ("127.0.0.1", 1)], listening.getsockname()) == {
                client for client in clients if client != own.getsockname()
            }
            for connection, _ in accepted:
                connection.close()
            process.wait(30)


def test_nobody_is_a_stranger_where_the_system_says_nothing() -> None:
    assert other_users_among([("::1", 1), ("testclient", 2)], ("127.0.0.1", 2)) == set()


LOG_IN = """
import sys, urllib.error, urllib.request
request = urllib.request.Request(sys.argv[1], headers={"X-Forwarded-For": "192.0.2.1", "Cookie": sys.argv[2]})
try:
    print(urllib.request.urlopen(request).status)
except urllib.error.HTTPError as error:
    print(error.code)
"""


@as_root
def test_another_user_who_saw_the_link_cannot_use_it(tmp_path: Path) -> None:
    with World(tmp_path) as world, PageServer(world) as server:
        link = server.login_url()
        assert status_for(65534, link) == 403
        assert httpx.get(link).status_code == 303, "its owner can, still"


@as_root
def test_another_user_who_got_the_cookie_cannot_use_it(tmp_path: Path) -> None:
    with World(tmp_path) as world, PageServer(world) as server:
        cookie = httpx.get(server.login_url()).headers["set-cookie"].partition(";")[0]
        assert status_for(65534, server.address, cookie) == 403
        assert status_for(0, server.address, cookie) == 200, "its owner can"


def status_for(user: int, address: str, cookie: str = "") -> int:
    command = [SYSTEM_PYTHON, "-I", "-c", LOG_IN, address, cookie]
    return int(subprocess.run(command, user=user, cwd="/", capture_output=True, check=True, timeout=60).stdout)
