"""Bytes between two connections: all of them, in order, both ways, however they come; and what it takes is given back."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from skillkit.core.run.hosts import relay as relays
from skillkit.core.run.hosts.relay import MOST_PIPES, Moved, relay

MEGABYTE = 1 << 20
WITHOUT = """
import os, select, sys
for module, names in ((select, [each for each in dir(select) if "poll" in each.lower()]), (os, ["splice"])):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
sys.modules["fcntl"] = None
import skillkit.core.run.hosts.relay
"""


def pair() -> tuple[socket.socket, socket.socket]:
    """Over TCP, as in a run."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname(), timeout=60)
        far, _ = server.accept()
    far.settimeout(60)
    return near, far


@contextmanager
def relayed() -> Iterator[tuple[socket.socket, socket.socket, Moved]]:
    """A client and a server that know nothing of what lies between them."""
    (client, inner_client), (server, inner_server) = pair(), pair()
    moved = Moved()

    def run() -> None:
        with inner_client, inner_server:
            relay(inner_client, inner_server, moved)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    with client, server:
        yield client, server, moved
    thread.join(30)
    assert not thread.is_alive()


def read_all(connection: socket.socket, pause: float = 0) -> bytes:
    data = bytearray()
    while piece := connection.recv(MEGABYTE):
        data += piece
        time.sleep(pause)
    return bytes(data)


def send_all(connection: socket.socket, data: bytes, seed: int) -> None:
    """In pieces of any size, a few of them apart."""
    order, at = random.Random(seed), 0
    while at < len(data):
        size = order.choice((1, 100, 5_000, 16_000, 70_000, 500_000))
        connection.sendall(data[at : at + size])
        at += size
        if order.random() < 0.02:
            time.sleep(0.005)
    connection.shutdown(socket.SHUT_WR)


@pytest.fixture(params=["spliced", "copied"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "copied":
        monkeypatch.setattr(relays, "_CAN_SPLICE", False)
    elif not hasattr(os, "splice"):
        pytest.skip("this system moves no bytes by itself")
    return str(request.param)


@pytest.mark.parametrize("pause", [0, 0.002])
def test_all_bytes_arrive_in_order_both_ways_at_once_and_are_counted(pause: float) -> None:
    there, back = random.Random(1).randbytes(8 * MEGABYTE), random.Random(2).randbytes(6 * MEGABYTE)
    got: dict[str, bytes] = {}
    with relayed() as (client, server, moved):
        threads = [
            threading.Thread(target=send_all, args=(client, there, 3)),
            threading.Thread(target=send_all, args=(server, back, 4)),
            threading.Thread(target=lambda: got.update(there=read_all(server, pause))),
            threading.Thread(target=lambda: got.update(back=read_all(client, pause))),
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join(60)
    assert [hashlib.sha256(got[name]).digest() for name in ("there", "back")] == [
        hashlib.sha256(data).digest() for data in (there, back)
    ]
    assert (moved.sent, moved.received) == (len(there), len(back))


def test_a_little_after_much_is_not_kept_back() -> None:
    with relayed() as (client, server, _):
        for _ in range(3):
            threading.Thread(target=client.sendall, args=(bytes(4 * MEGABYTE),)).start()
            left = 4 * MEGABYTE
            while left:
                left -= len(server.recv(min(left, MEGABYTE)))
            client.sendall(b"last")
            assert server.recv(100) == b"last"
            server.sendall(b"said")
            assert client.recv(100) == b"said"


def test_what_a_connection_took_is_given_back() -> None:
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(3):
        with relayed() as (client, server, _):
            sender = threading.Thread(target=send_all, args=(client, bytes(3 * MEGABYTE), 5))
            sender.start()
            assert len(read_all(server)) == 3 * MEGABYTE
            sender.join()
    assert relays._pipes._value == MOST_PIPES
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


def test_one_that_gets_no_pipe_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relays, "_pipes", threading.BoundedSemaphore(1))
    with relayed() as (client, server, _), relayed() as (other, beyond, _):
        for near, far in ((client, server), (other, beyond)):
            threading.Thread(target=near.sendall, args=(bytes(3 * MEGABYTE),)).start()
            left = 3 * MEGABYTE
            while left:
                left -= len(far.recv(min(left, MEGABYTE)))


def test_one_side_that_hangs_up_in_the_middle_ends_both() -> None:
    with relayed() as (client, server, _):
        client.sendall(bytes(MEGABYTE))
        server.recv(100)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        with contextlib.suppress(ConnectionError):  # a reset is an end, too
            read_all(server)


def test_it_can_be_loaded_where_the_system_has_neither_poll_nor_splice() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT], check=True)
