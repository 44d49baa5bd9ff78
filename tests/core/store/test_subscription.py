"""Askers who sleep: each is woken for its own reasons, and one thread looks for all of them."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.asking import in_threads, request_named
from support.databases import Database
from support.running import wait_for

from skillkit import OptionAnswer, StateUnavailableError
from skillkit.core.store import request_rows as rows
from skillkit.core.store import subscription as watching
from skillkit.core.store.base import Connection, Store, steady_seconds
from skillkit.core.store.opening import open_store
from skillkit.core.store.request_rows import Question, Ticket
from skillkit.core.store.requests import Requests
from skillkit.core.store.shared import notices, postgres
from skillkit.core.store.shared.notices import Notices
from skillkit.core.store.subscription import Subscriber, Subscription

pytestmark = pytest.mark.usefixtures("each_database")

HELD = Question(request_named("run"), "{}", 60, (), is_held=True)
SOON = 8
"""Seconds, on a machine that has much else to do; far less than the sleeps and pauses in these tests."""


class Faults:
    """How often a store cannot be reached, and how often somebody tried."""

    def __init__(self) -> None:
        self.error: Exception = StateUnavailableError("gone")
        self.number = 0
        self.uses = 0

    def meet(self) -> None:
        self.uses += 1
        if self.number:
            self.number -= 1
            raise self.error


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
def store(tmp_path: Path, faults: Faults, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    store = open_store(tmp_path / "state")
    connect = store.connection

    @contextmanager
    def connection(**settings: bool) -> Iterator[Connection]:
        faults.meet()
        with connect(**settings) as connection:
            yield connection

    monkeypatch.setattr(store, "connection", connection)
    yield store
    assert wait_for(lambda: watch_threads() == [], SOON)
    store.close()


@pytest.fixture
def watcher(store: Store) -> Subscription:
    return Subscription(store, Requests(store))


def ticket_in(store: Store, name: str = "run") -> Ticket:
    with store.connection() as connection:
        return rows.join(connection, replace(HELD, request=request_named(name)), store.now())


def answer(store: Store, ticket: Ticket) -> None:
    with store.connection() as connection:
        rows.write_answer(connection, ticket.seq, OptionAnswer("no", "web", 1.0, "run"), store.now())


def waiter_for(ticket: Ticket, seconds: float = 30, cancel: threading.Event | None = None) -> Subscriber:
    return Subscriber(replace(ticket, ends=steady_seconds() + seconds), cancel)


def lease(store: Store, ticket: Ticket) -> float:
    with store.connection() as connection:
        found = connection.execute("select leased_until from askers where asker = ?", (ticket.asker,)).fetchone()
    return float(found[0])


def watch_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "skillkit-watch"]


def is_looking(watcher: Subscription) -> bool:
    """Whether it saw the file and has nothing left to do."""
    return watcher._mark is not None and not watcher._is_stale


@pytest.mark.parametrize(
    ("ends", "is_set", "done"),
    [(5.0, None, True), (5.1, None, False), (5.1, False, False), (5.1, True, True), (5.0, False, True)],
)
def test_an_asker_is_done_when_cancelled_or_out_of_time(
    monkeypatch: pytest.MonkeyPatch, ends: float, is_set: bool | None, done: bool
) -> None:
    monkeypatch.setattr(watching, "steady_seconds", lambda: 5.0)
    cancel = None if is_set is None else threading.Event()
    if cancel is not None and is_set:
        cancel.set()
    assert Subscriber(Ticket(1, 1, HELD, ends), cancel).is_done is done


def test_who_waits_sleeps_until_another_program_answers(store: Store, watcher: Subscription, tmp_path: Path) -> None:
    ticket, other = ticket_in(store), open_store(tmp_path / "state")
    with in_threads(1, lambda: watcher.sleep(waiter_for(ticket))) as (sleeping,):
        time.sleep(0.4)
        assert not sleeping.done()
        answer(other, ticket)
        sleeping.result(SOON)
    other.close()


def test_who_waits_for_what_is_over_does_not_wait_for_the_next_look(
    store: Store, watcher: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOOK_SECONDS", 25)
    ticket = ticket_in(store)
    answer(store, ticket)
    with in_threads(1, lambda: watcher.sleep(waiter_for(ticket))) as (sleeping,):
        sleeping.result(SOON)


def test_what_this_process_answers_is_seen_at_once(
    store: Store, watcher: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LOOK_SECONDS", 25)
    ticket = ticket_in(store)
    with in_threads(1, lambda: watcher.sleep(waiter_for(ticket))) as (sleeping,):
        assert wait_for(lambda: is_looking(watcher), SOON)
        time.sleep(0.1)  # until it waits for the next look
        answer(store, ticket)
        watcher.look_now()
        sleeping.result(SOON)
        assert wait_for(lambda: watch_threads() == [], SOON), "and nobody looks on for nobody"


def test_who_comes_later_is_looked_for_too(store: Store, watcher: Subscription) -> None:
    first, second = ticket_in(store, "first"), ticket_in(store, "second")
    cancel = threading.Event()
    with in_threads(1, lambda: watcher.sleep(waiter_for(first, cancel=cancel))) as (sleeping,):
        assert wait_for(lambda: is_looking(watcher), SOON)
        answer(store, second)
        started = time.monotonic()
        watcher.sleep(waiter_for(second, seconds=25))
        assert time.monotonic() - started < SOON
        assert not sleeping.done(), "whose question is still open"
        cancel.set()
        sleeping.result(SOON)


def test_one_thread_looks_for_all_and_ends_when_nobody_waits(store: Store, watcher: Subscription) -> None:
    for _ in range(2):
        cancel = threading.Event()
        tickets = iter([ticket_in(store, name) for name in "abc"])
        with in_threads(3, lambda: watcher.sleep(waiter_for(next(tickets), cancel=cancel))) as sleeping:  # noqa: B023
            assert wait_for(lambda: len(watcher._subscribers) == 3, SOON)
            (thread,) = watch_threads()
            assert thread.daemon, "a program that ends does not wait for it"
            cancel.set()
            for each in sleeping:
                each.result(SOON)
        assert wait_for(lambda: watch_threads() == [], SOON)


def test_a_sleep_ends_when_its_time_is_over(store: Store, watcher: Subscription) -> None:
    ticket = ticket_in(store)
    started = time.monotonic()
    watcher.sleep(waiter_for(ticket, seconds=0.3))
    watcher.sleep(waiter_for(ticket, seconds=-1))
    assert 0.25 < time.monotonic() - started < SOON


def test_waiting_costs_a_look_now_and_then(store: Store, faults: Faults, watcher: Subscription) -> None:
    ticket = ticket_in(store)
    faults.uses = 0
    watcher.sleep(waiter_for(ticket, seconds=0.6))
    assert 1 < faults.uses < 15


def test_a_look_reads_no_table_while_nothing_changed(store: Store, watcher: Subscription, tmp_path: Path) -> None:
    first, second, third = (waiter_for(ticket_in(store, name)) for name in "abc")
    both = (first, second, third)
    watcher._look(both, is_stale=False)
    assert not any(each.woken.is_set() for each in both)
    answer(store, first.ticket)
    watcher._look(both, is_stale=False)
    assert [each.woken.is_set() for each in both] == [True, False, False]
    other = open_store(tmp_path / "state")
    answer(other, second.ticket)
    other.close()
    watcher._look(both, is_stale=False)
    assert [each.woken.is_set() for each in both] == [True, True, False]
    answer(store, third.ticket)
    store.close()
    watcher._look(both, is_stale=False)
    assert third.woken.is_set(), "a new connection has seen nothing yet"


def test_a_look_that_finds_the_old_mark_reads_nothing_more(
    store: Store, watcher: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiter = waiter_for(ticket_in(store))
    watcher._look((waiter,), is_stale=False)
    reads: list[object] = []

    def note(_: Requests, seqs: Iterable[int]) -> set[int]:
        reads.append([*seqs])
        return set()

    monkeypatch.setattr(Requests, "seqs_over", note)
    watcher._look((waiter,), is_stale=False)
    assert reads == []
    watcher._look((waiter,), is_stale=True)
    assert reads == [[waiter.ticket.seq]]


@pytest.mark.parametrize(("seconds", "is_renewed"), [(1.9, False), (2.0, True), (9.0, True)])
def test_a_lease_is_renewed_every_two_seconds(
    store: Store, watcher: Subscription, monkeypatch: pytest.MonkeyPatch, seconds: float, is_renewed: bool
) -> None:
    ticket = ticket_in(store)
    waiter, before = waiter_for(ticket, seconds=1000), lease(store, ticket)
    later = store.now().after(50)
    watcher._renewed = 100.0
    monkeypatch.setattr(watching, "steady_seconds", lambda: 100.0 + seconds)
    monkeypatch.setattr(store, "now", lambda: later)
    watcher._look((waiter,), is_stale=False)
    assert (lease(store, ticket) == later.steady + rows.LEASE_SECONDS) is is_renewed
    assert (lease(store, ticket) == before) is not is_renewed
    assert watcher._renewed == (100.0 + seconds if is_renewed else 100.0)


@pytest.mark.parametrize(
    "error",
    [StateUnavailableError("gone"), pytest.param(sqlite3.ProgrammingError("closed"), marks=pytest.mark.own_file)],
    ids=["ours", "sqlite"],
)
def test_a_store_that_is_back_in_time_costs_nobody_the_place(
    store: Store, faults: Faults, watcher: Subscription, error: Exception, tmp_path: Path
) -> None:
    ticket, other = ticket_in(store), open_store(tmp_path / "state")
    faults.error = error
    with in_threads(1, lambda: watcher.sleep(waiter_for(ticket))) as (sleeping,):
        assert wait_for(lambda: is_looking(watcher), SOON)
        faults.number = 2
        watcher.look_now()
        assert wait_for(lambda: faults.number < 2, SOON), "no look from before is still under way"
        answer(other, ticket)
        sleeping.result(SOON)
    assert faults.number == 0
    other.close()


@pytest.mark.parametrize(
    "error",
    [StateUnavailableError("gone"), pytest.param(sqlite3.ProgrammingError("closed"), marks=pytest.mark.own_file)],
    ids=["ours", "sqlite"],
)
def test_a_store_that_stays_away_is_an_error_for_who_waits(
    store: Store, faults: Faults, watcher: Subscription, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(watching, "LEASE_SECONDS", 0.5)
    ticket = ticket_in(store)
    faults.error, faults.uses = error, 0
    faults.number = 1_000_000
    started = time.monotonic()
    with pytest.raises(type(error), match=str(error)):
        watcher.sleep(waiter_for(ticket))
    assert time.monotonic() - started < SOON
    assert faults.uses < 15, "tried now and then"
    faults.number = 0


def test_the_place_is_lost_when_the_lease_is(
    store: Store, watcher: Subscription, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiter, error = waiter_for(ticket_in(store)), StateUnavailableError("gone")
    watcher._reached = 100.0
    for seconds, problem in ((rows.LEASE_SECONDS - 0.1, None), (rows.LEASE_SECONDS, error)):
        monkeypatch.setattr(watching, "steady_seconds", lambda seconds=seconds: 100.0 + seconds)
        watcher._give_up_on((waiter,), error)
        assert waiter.problem is problem
        assert waiter.woken.is_set() is (problem is not None)


def test_a_problem_is_not_forgotten_when_there_is_a_second_reason_to_wake() -> None:
    waiter, error = Subscriber(Ticket(1, 1, HELD, 0.0), None), StateUnavailableError("gone")
    waiter.wake(error)
    waiter.wake_if_done()
    assert (waiter.problem, waiter.woken.is_set()) == (error, True)


def test_a_reason_to_stop_that_fails_is_the_problem_of_its_asker_alone(store: Store, watcher: Subscription) -> None:
    class Broken(threading.Event):
        def is_set(self) -> bool:
            raise ValueError("broken")

    cancel = threading.Event()
    broken, sound = ticket_in(store, "broken"), ticket_in(store, "sound")
    with in_threads(1, lambda: watcher.sleep(waiter_for(sound, cancel=cancel))) as (sleeping,):
        with pytest.raises(ValueError, match="broken"):
            watcher.sleep(waiter_for(broken, seconds=25, cancel=Broken()))
        cancel.set()
        sleeping.result(SOON)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    """No look of its own finds anything soon."""
    monkeypatch.setattr(watching, "TOLD_LOOK_SECONDS", 60.0)


@pytest.mark.shared_world
@pytest.mark.usefixtures("told")
def test_a_shared_world_tells_of_an_answer_and_is_hardly_looked_at(
    store: Store, faults: Faults, watcher: Subscription, tmp_path: Path
) -> None:
    ticket, other = ticket_in(store), open_store(tmp_path / "other")
    with in_threads(1, lambda: watcher.sleep(waiter_for(ticket, seconds=60))) as (sleeping,):
        assert wait_for(lambda: watcher._is_told and not watcher._is_stale, SOON)
        time.sleep(0.3)
        faults.uses, started = 0, time.monotonic()
        time.sleep(1.0)
        assert faults.uses <= 2 * (1 + (time.monotonic() - started) / watching.RENEW_SECONDS), "but to stay there"
        answer(other, ticket)
        sleeping.result(SOON)
    other.close()


@pytest.mark.shared_world
@pytest.mark.usefixtures("told")
def test_who_is_cut_off_from_what_is_told_looks_again_and_hears_again(
    store: Store, watcher: Subscription, tmp_path: Path, databases: Database
) -> None:
    ticket, other = ticket_in(store), open_store(tmp_path / "other")
    with in_threads(1, lambda: watcher.sleep(waiter_for(ticket, seconds=60))) as (sleeping,):
        assert wait_for(lambda: watcher._is_told, SOON)
        with databases.connect() as connection:
            connection.execute("select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen %'")
        assert wait_for(lambda: not watcher._is_told, SOON), "and goes on looking meanwhile"
        assert wait_for(lambda: watcher._is_told, SOON)
        answer(other, ticket)
        sleeping.result(SOON)
    other.close()


@pytest.mark.shared_world
@pytest.mark.usefixtures("told")
def test_behind_a_pooler_that_loses_what_is_told_who_waits_looks(
    store: Store, watcher: Subscription, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notices, "PROBE_SECONDS", 0.3)
    # Who listens in another place than where it is said hears as little as behind such a pooler.
    monkeypatch.setattr(postgres, "Notices", lambda channel, **ways: Notices(f"{channel}_lost", **ways))
    ticket, other = ticket_in(store), open_store(tmp_path / "other")
    with in_threads(1, lambda: watcher.sleep(waiter_for(ticket, seconds=60))) as (sleeping,):
        time.sleep(1.0)
        assert not watcher._is_told
        answer(other, ticket)
        sleeping.result(SOON)
    other.close()
