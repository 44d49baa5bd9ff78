"""Asking through the world's store."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.asking import answered_by_thread, askers_of, in_threads, only_pending, request_named
from support.running import wait_for

from skillkit import ApprovalUnavailableError, World
from skillkit.approvers.store import StoreApprover
from skillkit.core.values.questions import SINGLE_USE, Approver

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path / "state") as world:
        yield world


def test_the_answer_names_the_channel_of_whoever_gave_it(world: World) -> None:
    approver: Approver = StoreApprover(world)
    got = answered_by_thread(world, lambda: approver.ask(request_named("run")), "yes_in_session")
    assert (got.option_id, got.channel, got.request_id, approver.channel) == ("yes_in_session", "test", "run", "store")


def test_yes_once_is_for_one_of_two_runs_that_ask_the_same(world: World) -> None:
    approver = StoreApprover(world)
    with in_threads(2, lambda: approver.ask(request_named("run"))) as askers:
        for done in (1, 2):
            world.answer(only_pending(world).id, "yes_once", "web")
            assert wait_for(lambda done=done: sum(asking.done() for asking in askers) == done)  # type: ignore[misc]
    assert len(world.history()) == 2


def test_what_the_request_says_is_for_one_run_is_for_one_asker_alone(world: World) -> None:
    request = replace(request_named("run"), context={SINGLE_USE: ["yes_once", "yes_in_session"]})
    with (
        World(world.folder) as other,
        in_threads(1, lambda: StoreApprover(world).ask(request)) as (here,),
        in_threads(1, lambda: StoreApprover(other).ask(request)) as (there,),
    ):
        assert wait_for(lambda: askers_of(world) == 2)
        world.answer(only_pending(world).id, "yes_in_session", "web")
        assert wait_for(lambda: here.done() != there.done() and len(world.pending()) == 1)
        world.answer(only_pending(world).id, "no", "web")
        assert sorted(asking.result(30).option_id for asking in (here, there)) == ["no", "yes_in_session"]


def test_silence_and_cancelling_are_not_approved(world: World) -> None:
    cancel = threading.Event()
    with pytest.raises(ApprovalUnavailableError, match="nobody answered in time"):
        StoreApprover(world, expires_in=0.2).ask(request_named("run"))
    cancel.set()
    with pytest.raises(ApprovalUnavailableError, match="was cancelled"):
        StoreApprover(world).ask(request_named("run"), cancel)
    assert world.pending() == []


@pytest.mark.own_file
def test_a_store_that_cannot_be_used_is_an_unavailable_way_to_ask(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    unusable = r"cannot be stored\. The state file .* cannot be used"
    with World(tmp_path / "state") as world, pytest.raises(ApprovalUnavailableError, match=unusable):
        StoreApprover(world).ask(request_named("run"))


def test_who_announces_a_question_is_told_of_it_before_it_is_asked(world: World) -> None:
    told: list[tuple[str, int]] = []
    approver = StoreApprover(world, announce=lambda request: told.append((request.id, len(world.pending()))))
    answered_by_thread(world, lambda: approver.ask(request_named("run")), "no")
    assert told == [("run", 0)]
