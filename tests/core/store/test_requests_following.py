"""What a page needs to follow a world: cheap looks, one request by its id, answers bound to a moment."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from support.asking import in_threads, request_named

from skillkit import OptionRequest, RequestClosedError, World
from skillkit.core.store.requests import PastRequest

pytestmark = pytest.mark.usefixtures("each_database")


def test_the_mark_changes_with_every_commit_of_anybody(tmp_path: Path, each_database: str) -> None:
    with World(tmp_path) as world, World(tmp_path) as other:
        assert each_database == "postgresql" or world.change_mark() == (0, 0, 0), "looking makes no file"
        world.open(request_named("own"))
        marks = [world.change_mark()]
        assert world.change_mark() == marks[0]
        other.open(request_named("theirs"))
        marks.append(world.change_mark())
        other.answer("own", "no", "test")
        marks.append(world.change_mark())
        world.answer("theirs", "no", "test")
        marks.append(world.change_mark())
        assert len(set(marks)) == 4


def test_who_waits_for_a_change_is_told_of_a_commit_and_else_waits_the_time(tmp_path: Path) -> None:
    with World(tmp_path) as world, World(tmp_path) as other:
        mark, started = world.change_mark(), time.monotonic()
        assert world.wait_for_change(mark, 0.2) == mark
        assert time.monotonic() - started > 0.19, "by another clock"
        assert world.wait_for_change(None, 30) == mark, "who has seen nothing yet waits for nothing"
        with in_threads(1, lambda: world.wait_for_change(mark, 30)) as (waiting,):
            other.open(request_named("theirs"))
            assert waiting.result(8) != mark
        changed = world.change_mark()  # to make the file and to write to it are two changes
        cancel = threading.Event()
        cancel.set()
        assert world.wait_for_change(changed, 30, cancel) == changed


@pytest.mark.own_file
def test_a_mark_of_another_connection_is_another_mark(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        world.open(request_named("own"))
        marks = []
        for _ in range(3):
            world.pending()
            marks.append(world.change_mark())
            world.close()
        assert len(set(marks)) == 3


def test_ids_come_without_what_the_requests_carry(tmp_path: Path) -> None:
    with World(tmp_path / "none") as empty:
        assert empty.pending_ids() == []
    with World(tmp_path) as world:
        for name in ("first", "second"):
            world.open(request_named(name))
        world.open(request_named("short"), expires_in=0.001)
        time.sleep(0.01)
        assert [name for _, name in world.pending_ids()] == ["first", "second"]
        before = world.pending_ids()
        world.answer("first", "no", "test")
        world.open(request_named("first"))
        assert world.pending_ids() != before, "asked anew, it is another request"


def test_one_request_is_found_by_its_id_before_and_after(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        assert world.find("one") is None
        world.open(request_named("one"))
        found = world.find("one")
        assert isinstance(found, OptionRequest)
        assert found.context == {"digest": "d"}
        world.answer("one", "yes_once", "test")
        past = world.find("one")
        assert isinstance(past, PastRequest)
        assert past.answer is not None
        assert (past.outcome, past.answer.option_id) == ("answered", "yes_once")
        world.open(request_named("short"), expires_in=0.001)
        time.sleep(0.01)
        over = world.find("short")
        assert isinstance(over, PastRequest)
        assert over.outcome == "expired"


def test_an_answer_to_an_earlier_question_is_not_one_to_the_next(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        first = world.open(request_named("one"))
        world.answer("one", "yes_once", "test", created_at=first.created_at)
        world.collect("one")
        second = world.open(request_named("one"))
        with pytest.raises(RequestClosedError, match="asked anew"):
            world.answer("one", "yes_once", "test", created_at=first.created_at)
        assert world.answer("one", "yes_once", "test", created_at=second.created_at).option_id == "yes_once"
