"""What a person was shown may hold secrets: once the question is over, nothing of it is left on disk."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.running import wait_for

from skillkit import ApprovalUnavailableError, World
from skillkit.core.store.state import StateStore
from skillkit.core.values.questions import Option, OptionRequest

# Long enough for pages of its own, and repeated so that every part of it would be found.
SECRET = "hunter2-" * 20_000
MARK = b"hunter2-"
OPTIONS = (Option("yes", "Yes"), Option("no", "No"))


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """With another program that has the same file open: the last to close would tidy up by itself."""
    with World(tmp_path / "state") as world, World(tmp_path / "state") as other:
        other.history()
        world.history()
        yield world
        other.history()


def on_disk(world: World) -> dict[str, int]:
    """How often the secret stands in which file."""
    found = {path.name: path.read_bytes().count(MARK) for path in world.folder.iterdir() if path.is_file()}
    return {name: count for name, count in found.items() if count}


def opened(world: World, name: str = "q") -> OptionRequest:
    request = OptionRequest(name, "Run?", "Really?", OPTIONS, {"source": SECRET})
    return world.open(request, expires_in=60)


def test_control_an_open_question_is_on_disk(world: World) -> None:
    opened(world)
    assert on_disk(world)


def test_control_plain_sqlite_leaves_what_was_removed(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "plain")
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma secure_delete = off")
    connection.execute("create table t (x)")
    connection.execute("insert into t values (?)", (SECRET,))
    connection.commit()
    connection.execute("delete from t")
    connection.commit()
    assert MARK in (tmp_path / "plain-wal").read_bytes()
    connection.execute("pragma wal_checkpoint(truncate)")
    assert MARK in (tmp_path / "plain").read_bytes()
    connection.close()


def test_an_answer_that_was_taken_leaves_nothing(world: World) -> None:
    opened(world)
    world.answer("q", "yes", "test")
    assert world.collect("q") is not None
    assert on_disk(world) == {}


def test_an_answer_to_somebody_who_waits_leaves_nothing(world: World) -> None:
    request = OptionRequest("q", "Run?", "Really?", OPTIONS, {"source": SECRET})
    answers: list[str] = []
    asking = threading.Thread(target=lambda: answers.append(world.ask_request(request, expires_in=60).option_id))
    asking.start()
    assert wait_for(world.pending_ids)
    assert on_disk(world)
    with World(world.folder) as other:
        other.answer("q", "no", "test")
        asking.join()
        assert on_disk(world) == {}
    assert answers == ["no"]


def test_a_question_that_was_withdrawn_leaves_nothing(world: World) -> None:
    cancel = threading.Event()
    cancel.set()
    request = OptionRequest("q", "Run?", "Really?", OPTIONS, {"source": SECRET})
    with pytest.raises(ApprovalUnavailableError):
        world.ask_request(request, expires_in=60, cancel=cancel)
    assert on_disk(world) == {}


def test_a_question_that_expired_leaves_nothing_when_somebody_looks(world: World) -> None:
    request = OptionRequest("q", "Run?", "Really?", OPTIONS, {"source": SECRET})
    world.open(request, expires_in=0.01)
    assert wait_for(lambda: not world.pending())
    assert world.history()[0].outcome == "expired"
    assert on_disk(world) == {}


def test_a_reader_in_between_does_not_keep_it_for_ever(world: World) -> None:
    opened(world)
    opened(world, "later")
    reader = sqlite3.connect(world.folder / "state.sqlite3", isolation_level=None)
    reader.execute("begin")
    reader.execute("select count(*) from requests").fetchone()
    world.answer("q", "yes", "test")
    world.collect("q")
    reader.execute("rollback")
    reader.close()
    world.answer("later", "no", "test")
    world.collect("later")
    assert on_disk(world) == {}


def test_records_are_appended_without_emptying_the_file_each_time(tmp_path: Path) -> None:
    from skillkit.core.record import AuditLog

    store = StateStore(tmp_path / "state")
    log = AuditLog(store)
    for _ in range(5):
        log.append("started", {"skill": "demo"})
    assert os.stat(tmp_path / "state/state.sqlite3-wal").st_size > 0
    store.close()
