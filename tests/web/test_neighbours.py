"""Who on this machine is at the other end of a connection."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from skillkit.web.neighbours import is_stranger, owner_of

CALL = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    connection.recv(1)
"""


def called_by(user: int | None) -> tuple[int | None, bool]:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        subprocess.Popen(
            ["/usr/bin/python3" if user else sys.executable, "-I", "-c", CALL, str(listening.getsockname()[1])],
            user=user,
            cwd="/",
        ) as process,
    ):
        listening.settimeout(30)
        connection, client = listening.accept()
        with connection:
            server = connection.getsockname()
            found = owner_of(client, server), is_stranger(client, server)
        process.wait(30)
    return found


def test_the_same_user_is_none() -> None:
    assert called_by(None) == (os.geteuid(), False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_another_user_is_one() -> None:
    assert called_by(65534) == (65534, True)


@pytest.mark.parametrize("client", [("127.0.0.1", 1), ("::1", 1), ("testclient", 50000)])
def test_whom_the_system_does_not_know_is_none(client: tuple[str, int]) -> None:
    assert owner_of(client, ("127.0.0.1", 2)) is None
    assert not is_stranger(client, ("127.0.0.1", 2))
