"""The message brokers that tests start: private, killed and started again, and nothing of them left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.brokers import KINDS, Broker, redis

kombu = pytest.importorskip("kombu")
pytestmark = pytest.mark.slow
BUSY_SECONDS = 30


def send(broker: Broker, text: str) -> None:
    confirmed = {"confirm_publish": True} if broker.url.startswith("amqp") else {}
    with (
        kombu.Connection(broker.url, transport_options=confirmed) as connection,
        connection.SimpleQueue("skillkit-test") as queue,
    ):
        queue.put(text)


def waiting(broker: Broker, seconds: float = 1) -> list[str]:
    """What has not been fetched; it is fetched hereby. `seconds` are for the first of it, on a busy machine."""
    found: list[str] = []
    with kombu.Connection(broker.url) as connection, connection.SimpleQueue("skillkit-test") as queue:
        while True:
            try:
                message = queue.get(block=True, timeout=1 if found else seconds)
            except queue.Empty:
                return found
            message.ack()
            found.append(message.payload)


def running_with(text: str) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            told = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in told and int(entry.name) != os.getpid():
            found.append(told.decode(errors="replace"))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_broker_is_killed_wiped_and_gone(kind: str) -> None:
    with KINDS[kind]() as broker:
        folder = str(broker.folder)
        send(broker, "kept")
        assert waiting(broker, BUSY_SECONDS) == ["kept"]
        assert waiting(broker) == []

        send(broker, "lost")
        broker.kill()
        assert not broker.is_running
        assert not [each for each in running_with(folder) if "OF_BROKER" in each]
        with pytest.raises(kombu.exceptions.OperationalError, match="refused"):
            send(broker, "to nobody")
        broker.restart(with_data=False)
        assert waiting(broker) == []
    assert running_with(folder) == []
    assert not Path(folder).exists()


def test_what_rabbitmq_and_redis_keep_outlives_a_kill() -> None:
    for kind in KINDS.values():
        with kind() as broker:
            send(broker, "kept")
            broker.restart()
            assert waiting(broker, BUSY_SECONDS) == ["kept"]


def test_two_of_a_kind_are_two() -> None:
    with redis() as one, redis() as other:
        send(one, "for one")
        assert waiting(other) == []
        assert waiting(one, BUSY_SECONDS) == ["for one"]
