"""A broker for the session, and a fleet for each module or test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.brokers import Broker, redis
from support.databases import Database
from support.fleets import MEMORY, Fleet, fleet_at

LONGEST = (
    "test_storm_rabbitmq.py",
    "test_storm_redis.py",
    "test_fleet_demo.py",
    "test_failures.py",
    "test_two_machines.py",
    "test_leftovers.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files begin first: with one file for each process, nobody waits for them alone at the end."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with redis() as running:
        yield running


@pytest.fixture(scope="module")
def fleet(databases: Database, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """With a worker that runs; all tests of a module share it."""
    with fleet_at(databases, broker.url, tmp_path_factory.mktemp("fleet")) as made:
        made.start_worker()
        yield made


@pytest.fixture
def quiet(databases: Database, tmp_path: Path) -> Iterator[Fleet]:
    """Without a broker: ids are handed to workers of this process by the test."""
    with fleet_at(databases, MEMORY, tmp_path) as made:
        yield made
