"""A question at world scope: asked here, answered anywhere, once."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.asking import answered_by_thread, askers_of, in_threads, only_pending, request_named
from support.commands import BOUNDS
from support.running import wait_for

from skillkit import (
    ApprovalUnavailableError,
    ConfigurationError,
    Option,
    OptionAnswer,
    RequestClosedError,
    StateUnavailableError,
    World,
)
from skillkit.core.store import request_rows
from skillkit.core.store.base import moment_now
from skillkit.core.store.requests import question_from
from skillkit.core.store.trust import StandingApprovals

YES_ONCE = ("yes_once",)

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path / "state") as world:
        yield world


def test_any_flow_can_offer_any_options_and_gets_the_chosen_one(world: World) -> None:
    def ask() -> OptionAnswer:
        options = (Option("blue", "Blue as the sea"), ("red", "Red"), "green")
        return world.ask("Which colour?", "Pick.", options, context={"n": [1, None]}, session_id="s", expires_in=60)

    before = time.time()
    with in_threads(1, ask) as (asking,):
        request = only_pending(world)
        assert request.options == (Option("blue", "Blue as the sea"), Option("red", "Red"), Option("green", "green"))
        assert (request.title, request.message, request.session_id) == ("Which colour?", "Pick.", "s")
        assert request.context == {"n": [1, None]}
        assert before <= request.created_at <= time.time()
        assert request.expires_at == pytest.approx(request.created_at + 60)
        given = world.answer(request.id, "red", "web")
        assert asking.result(30) == given
    assert (given.option_id, given.channel, given.request_id) == ("red", "web", request.id)
    assert world.pending() == []


def test_an_answer_through_another_connection_wakes_the_asker(world: World) -> None:
    with World(world.folder) as other, in_threads(1, lambda: world.ask("T?", "", ["a"])) as (asking,):
        other.answer(only_pending(other).id, "a", "cli")
        assert asking.result(30).channel == "cli"


def test_the_second_answer_is_told_who_was_first(world: World) -> None:
    with in_threads(1, lambda: world.ask("T?", "", ["a", "b"])):
        request = only_pending(world)
        world.answer(request.id, "a", "desktop")
    with pytest.raises(RequestClosedError, match=r"answered before: 'a' by desktop\. The first answer wins") as caught:
        world.answer(request.id, "b", "web")
    assert (caught.value.request_id, caught.value.option_id, caught.value.channel) == (request.id, "a", "desktop")


def test_an_option_that_is_not_offered_is_refused_and_the_question_stays_open(world: World) -> None:
    with in_threads(1, lambda: world.ask("T?", "", ["a", "b"])):
        request = only_pending(world)
        with pytest.raises(ConfigurationError, match=r"'yes' is no option .* Answer with one of: a, b\."):
            world.answer(request.id, "yes", "web")
        assert world.pending() == [request]
        world.answer(request.id, "b", "web")


@pytest.mark.own_file
def test_an_unknown_request_is_named_and_asking_makes_no_world(tmp_path: Path, world: World) -> None:
    with pytest.raises(RequestClosedError, match=r"There is no request 'x' in this world\. See what is waiting"):
        world.answer("x", "a", "web")
    assert (world.pending(), world.history()) == ([], [])
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_request_has_no_answer_and_takes_none(world: World) -> None:
    world.open(request_named("run"))
    with pytest.raises(RequestClosedError, match=r"There is no request 'x' in this world"):
        world.answer("x", "no", "web")
    with pytest.raises(RequestClosedError, match=r"There is no request 'x' in this world"):
        world.wait("x")
    assert world.collect("x") is None


def test_a_channel_needs_a_name(world: World) -> None:
    for channel in ("", "a\x1b[0m", "\udcff"):
        with pytest.raises(ConfigurationError, match="A channel's name"):
            world.answer("x", "a", channel)


def test_nobody_answers_in_time_means_not_approved_and_an_answer_comes_too_late(world: World) -> None:
    with pytest.raises(ApprovalUnavailableError, match=r"T\? Not approved: nobody answered in time") as caught:
        world.ask("T?", "", ["a"], expires_in=0.2)
    assert caught.value.reasons == ("nobody answered in time",)
    assert world.pending() == []
    (past,) = world.history()
    assert (past.outcome, past.answer) == ("expired", None)
    with pytest.raises(RequestClosedError, match="has expired"):
        world.answer(past.request.id, "a", "web")


def test_what_expired_is_closed_by_whoever_looks_first(world: World) -> None:
    def state_of(name: str) -> tuple[str, str]:
        with world._store.connection() as connection:
            row = connection.execute("select state, context from requests where id = ?", (name,)).fetchone()
        return tuple(row)

    for name in ("answered too late", "looked at"):
        world.open(request_named(name), expires_in=0.05)
        time.sleep(0.06)
        assert state_of(name) == ("pending", '{"digest": "d"}')
        if name == "looked at":
            assert [past.outcome for past in world.history()] == ["expired", "expired"]
        else:
            with pytest.raises(RequestClosedError, match="has expired"):
                world.answer(name, "no", "web")
        assert state_of(name) == ("expired", "{}"), "and what was shown is forgotten"


def test_who_is_interrupted_while_waiting_takes_the_question_along(world: World) -> None:
    def interrupt() -> None:
        only_pending(world)
        time.sleep(0.2)  # it is pending a moment before its asker waits
        # A real signal: it also ends a wait that nothing else would end before its time.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        with in_threads(1, interrupt), pytest.raises(KeyboardInterrupt):
            world.ask("T?", "", ["a"], expires_in=15)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [past.outcome for past in world.history()] == ["withdrawn"]
    with world._store.connection() as connection:
        assert connection.execute("select * from askers").fetchall() == []


def test_a_question_that_is_closed_again_and_again_is_asked_until_its_time_is_over_and_no_longer(world: World) -> None:
    def close_or_see_the_end() -> bool:
        with elsewhere._store.connection() as connection:
            connection.execute("update requests set state = 'abandoned' where state = 'pending'")
        return asking.done()

    # By a connection of its own, as another process has one: what changes through its own, an asker is told.
    with (
        World(world._store.folder) as elsewhere,
        in_threads(1, lambda: world.ask("T?", "", ["a"], expires_in=2)) as (asking,),
    ):
        assert wait_for(close_or_see_the_end, 30)
        assert isinstance(asking.exception(), ApprovalUnavailableError)
    assert len(world.history()) > 1


def test_who_is_woken_for_nothing_keeps_the_place(world: World) -> None:
    now = moment_now()
    with world._store.transaction() as connection:
        ticket = request_rows.join(connection, question_from(request_named("run"), 60, (), is_held=True), now)
    assert ticket.ends == now.steady + 60
    assert world._requests.settle(ticket, is_done=False) is ticket


def test_waiting_is_no_busy_loop(world: World) -> None:
    class Counting(threading.Event):
        looks = 0

        def is_set(self) -> bool:
            self.looks += 1
            return super().is_set()

    cancel = Counting()
    with pytest.raises(ApprovalUnavailableError):
        world.ask("T?", "", ["a"], expires_in=0.5, cancel=cancel)
    assert 2 < cancel.looks < 30


@pytest.mark.own_file
def test_a_closed_world_holds_no_file_and_opens_again(tmp_path: Path) -> None:
    log = tmp_path / "state/state.sqlite3-wal"
    with World(tmp_path / "state") as world:
        world.open(request_named("run"))
        assert log.exists()
    assert not log.exists(), "the last connection takes it along"
    assert [request.id for request in world.pending()] == ["run"]
    world.close()


def test_a_world_shows_and_ends_what_was_approved_for_sessions(world: World, tmp_path: Path) -> None:
    standing = StandingApprovals(world._store)
    given = [
        standing.approve_in_session(session, skill=skill, folder=tmp_path, digest="d", channel="web", walls=BOUNDS)
        for session, skill in (("one", "csv"), ("one", "pdf"), ("two", "csv"))
    ]
    assert world.session_approvals() == given
    assert world.end_session_approvals(skill="csv", session_id="one") == given[:1]
    assert world.session_approvals() == given[1:]


def test_a_cancelled_question_is_withdrawn(world: World) -> None:
    cancel = threading.Event()
    with in_threads(1, lambda: world.ask("T?", "", ["a"], cancel=cancel)) as (asking,):
        request = only_pending(world)
        cancel.set()
        with pytest.raises(ApprovalUnavailableError, match="the question was cancelled"):
            asking.result(30)
    assert [past.outcome for past in world.history()] == ["withdrawn"]
    with pytest.raises(RequestClosedError, match="was withdrawn"):
        world.answer(request.id, "a", "web")


@pytest.mark.parametrize("jump", [-40_000_000.0, 40_000_000.0], ids=["back", "forward"])
def test_a_clock_that_jumps_neither_answers_nor_ends_a_question(
    world: World, jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_threads(1, lambda: world.ask("T?", "", ["a"], expires_in=60)) as (asking,):
        request = only_pending(world)
        real = time.time
        monkeypatch.setattr("skillkit.core.store.base.time.time", lambda: real() + jump)
        time.sleep(0.3)
        assert not asking.done()
        assert world.pending() == [request]
        world.answer(request.id, "a", "web")
        assert asking.result(30).option_id == "a"


@pytest.mark.parametrize("jump", [-40_000_000.0, 40_000_000.0], ids=["back", "forward"])
def test_a_clock_that_jumps_does_not_keep_a_question_from_expiring(
    world: World, jump: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with in_threads(1, lambda: world.ask("T?", "", ["a"], expires_in=1)) as (asking,):
        only_pending(world)
        real = time.time
        monkeypatch.setattr("skillkit.core.store.base.time.time", lambda: real() + jump)
        with pytest.raises(ApprovalUnavailableError, match="in time"):
            asking.result(30)
    assert [past.outcome for past in world.history()] == ["expired"]


@pytest.mark.own_file
def test_a_request_of_an_earlier_boot_that_nobody_can_wait_for_is_gone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel = threading.Event()
    with in_threads(1, lambda: world.ask("T?", "", ["a"], cancel=cancel)):
        held = only_pending(world)
        kept = world.open(request_named("kept"), expires_in=3600)
        with monkeypatch.context() as patch:
            patch.setattr("skillkit.core.store.base.boot_id", lambda: "after a restart")
            assert [request.id for request in world.pending()] == [kept.id]
            with pytest.raises(RequestClosedError, match="has lost whoever asked"):
                world.answer(held.id, "a", "web")
        cancel.set()


def test_the_same_question_asked_twice_is_one_question_with_one_answer_for_both(world: World) -> None:
    with (
        World(world.folder) as other,
        in_threads(3, lambda: world.ask_request(request_named("run"), single_use=YES_ONCE)) as askers,
        in_threads(2, lambda: other.ask_request(request_named("run"), single_use=YES_ONCE)) as others,
    ):
        assert wait_for(lambda: askers_of(world) == 5)
        world.answer(only_pending(world).id, "no", "web")
        assert {asking.result(30).option_id for asking in [*askers, *others]} == {"no"}
    assert [past.outcome for past in world.history()] == ["answered"]


def test_an_answer_for_one_run_goes_to_one_asker_and_the_others_ask_again(world: World) -> None:
    with in_threads(4, lambda: world.ask_request(request_named("run"), single_use=YES_ONCE)) as askers:
        assert wait_for(lambda: askers_of(world) == 4)
        for done in (1, 2):
            world.answer(only_pending(world).id, "yes_once", "web")
            assert wait_for(lambda done=done: sum(asking.done() for asking in askers) == done)  # type: ignore[misc]
            assert wait_for(lambda done=done: askers_of(world) == 4 - done)  # type: ignore[misc]
        world.answer(only_pending(world).id, "yes_in_session", "web")
        answers = sorted(asking.result(30).option_id for asking in askers)
    assert answers == ["yes_in_session", "yes_in_session", "yes_once", "yes_once"]
    assert len(world.history()) == 3


def test_one_of_two_askers_who_goes_leaves_the_question_to_the_other(world: World) -> None:
    cancel = threading.Event()
    with (
        in_threads(1, lambda: world.ask_request(request_named("run"), cancel=cancel)) as (first,),
        in_threads(1, lambda: world.ask_request(request_named("run"))) as (second,),
    ):
        assert wait_for(lambda: askers_of(world) == 2)
        cancel.set()
        assert isinstance(first.exception(30), ApprovalUnavailableError)
        world.answer(only_pending(world).id, "no", "web")
        assert second.result(30).option_id == "no"


def test_an_asker_who_renews_its_lease_while_somebody_looks_is_seen(world: World) -> None:
    cancel = threading.Event()
    with in_threads(1, lambda: world.ask("T?", "", ["a"], cancel=cancel)):
        only_pending(world)
        now = world._store.now()
        with world._store.connection() as connection:
            (row,) = request_rows.pending_rows(connection)
            seen = [request_rows.is_alive(connection, row.life, now.after(seconds)) for seconds in (-1, 0, 1, 60)]
        cancel.set()
    assert seen == [True, True, True, False]


def test_a_later_asker_gives_the_question_more_time(world: World) -> None:
    with in_threads(1, lambda: world.ask_request(request_named("run"), expires_in=1)) as (first,):
        only_pending(world)
        with in_threads(1, lambda: world.ask_request(request_named("run"), expires_in=60)) as (second,):
            assert isinstance(first.exception(30), ApprovalUnavailableError)
            world.answer(only_pending(world).id, "no", "web")
            assert second.result(30).option_id == "no"


def test_an_answered_question_can_be_asked_again(world: World) -> None:
    def ask() -> OptionAnswer:
        return world.ask_request(request_named("run"), single_use=YES_ONCE)

    assert answered_by_thread(world, ask, "yes_once").option_id == "yes_once"
    assert answered_by_thread(world, ask, "no").option_id == "no"
    assert [past.answer.option_id for past in world.history() if past.answer] == ["no", "yes_once"]


def test_an_id_that_is_open_with_other_options_is_not_joined(world: World) -> None:
    world.open(request_named("run"))
    with pytest.raises(ConfigurationError, match="is open and has other options"):
        world.open(request_named("run", (Option("a", "A"),)))


def test_an_opened_request_waits_without_an_asker_and_its_answer_is_collected_once(world: World) -> None:
    opened = world.open(request_named("run"), expires_in=60, single_use=YES_ONCE)
    assert world.open(request_named("run"), expires_in=1).expires_at == opened.expires_at
    assert world.pending() == [opened]
    assert world.collect("run") is None
    given = world.answer("run", "yes_once", "web")
    assert world.collect("run") == given
    assert world.collect("run") is None
    with pytest.raises(RequestClosedError, match="answered before"):
        world.wait("run")


def test_whoever_comes_back_to_an_answered_request_need_not_wait(world: World) -> None:
    world.open(request_named("one"), single_use=YES_ONCE)
    world.open(request_named("two"), single_use=YES_ONCE)
    given = [world.answer(name, "yes_once", "web") for name in ("one", "two")]
    assert world.wait("one") == given[0]
    assert world.ask_request(request_named("two"), single_use=YES_ONCE) == given[1]


def test_an_answer_nobody_collected_in_time_is_worth_nothing(world: World) -> None:
    world.open(request_named("run"), expires_in=0.5)
    world.answer("run", "yes_once", "web")
    time.sleep(0.6)
    assert world.collect("run") is None
    with pytest.raises(ApprovalUnavailableError, match="nobody answered in time"):
        world.ask_request(request_named("run"), expires_in=0.2)


def test_waiting_for_an_opened_request_ends_when_it_expires(world: World) -> None:
    world.open(request_named("run"), expires_in=0.3)
    with pytest.raises(ApprovalUnavailableError, match="in time"):
        world.wait("run")


def test_an_answer_that_came_just_before_the_asker_gave_up_counts(world: World) -> None:
    cancel = threading.Event()
    cancel.set()
    world.open(request_named("run"))
    given = world.answer("run", "no", "web")
    assert world.wait("run", cancel=cancel) == given


def test_what_was_shown_is_forgotten_when_the_question_is_over(world: World) -> None:
    def ask() -> OptionAnswer:
        return world.ask("T?", "message", ["a"], context={"secret": "hunter2"})

    answered_by_thread(world, ask, "a")
    (past,) = world.history()
    assert (past.request.title, past.request.message, past.request.context) == ("T?", "message", {})


def test_text_that_is_no_unicode_comes_back_as_it_was(world: World) -> None:
    with in_threads(1, lambda: world.ask("T\udcff\0?", "m\ud800", [("a", "\udcfe")], context={"k": "\udcff"})):
        request = only_pending(world)
        world.answer(request.id, "a", "web")
    assert (request.title, request.message, request.options[0].label) == ("T\udcff\0?", "m\ud800", "\udcfe")
    assert request.context == {"k": "\udcff"}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"title": ""}, "title must not be empty"),
        ({"options": []}, "1 to 50 options, not 0"),
        ({"options": "abc"}, "Options are a list"),
        ({"context": {"x": float("nan")}}, "context must be JSON"),
        ({"expires_in": 0}, "above 0"),
    ],
)
def test_a_question_that_does_not_fit_is_refused_with_the_rule(
    world: World, changes: dict[str, object], says: str
) -> None:
    question: dict[str, object] = {"title": "T?", "message": "", "options": ["a"], **changes}
    with pytest.raises(ConfigurationError, match=says):
        world.ask(**question)  # type: ignore[arg-type]
    assert world.pending() == []


@pytest.mark.own_file
def test_a_file_that_cannot_be_used_is_an_error_and_no_answer(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state/state.sqlite3").write_bytes(b"hello " * 1000)
    with World(tmp_path / "state") as world, pytest.raises(StateUnavailableError, match="not a SQLite file"):
        world.ask("T?", "", ["a"])


@pytest.mark.own_file
def test_a_world_that_is_removed_while_somebody_waits_is_asked_anew(world: World) -> None:
    with in_threads(1, lambda: world.ask("T?", "", ["a"], expires_in=60)) as (asking,):
        request = only_pending(world)
        for path in world.folder.iterdir():
            path.unlink()
        assert wait_for(lambda: [found.id for found in world.pending()] == [request.id])
        world.answer(request.id, "a", "web")
        assert asking.result(30).option_id == "a"


def test_history_is_kept_within_bounds_and_what_is_pending_is_never_dropped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_rows, "KEPT_REQUESTS", 5)
    kept = world.open(request_named("kept"))
    for number in range(12):
        world.open(request_named(str(number)))
        world.answer(str(number), "no", "web")
    assert world.pending() == [kept]
    assert [past.request.id for past in world.history()] == ["11", "10", "9", "8", "7"]
    assert [past.request.id for past in world.history(2)] == ["11", "10"]


@pytest.mark.own_file
@pytest.mark.parametrize(
    "condition", ["state = 'pending'", "id = 'x' order by seq desc limit 1", "seq = 7"], ids=["all", "id", "seq"]
)
def test_looking_for_a_request_reads_no_whole_table(world: World, condition: str) -> None:
    with world._store.connection() as connection:
        plan = connection.execute(f"explain query plan select content from requests where {condition}").fetchall()
        whole = connection.execute("explain query plan select content from requests where channel = 'x'").fetchall()
    assert ["SCAN" in step[-1] for step in plan] == [False]
    assert ["SCAN" in step[-1] for step in whole] == [True]
