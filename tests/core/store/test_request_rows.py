"""Requests as rows: at given moments, what is open, who asks, and who may take an answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.asking import request_named

from skillkit import ConfigurationError, Option, OptionAnswer
from skillkit.core.store import request_rows as rows
from skillkit.core.store.base import Connection, Moment
from skillkit.core.store.opening import open_store
from skillkit.core.store.request_rows import LEASE_SECONDS, Question, Ticket

pytestmark = pytest.mark.usefixtures("each_database")

NOW = Moment("boot", 1_000.0, 50_000.0)
LATER = NOW.after(5)
AFTER_A_RESTART = Moment("another", 3.0, 50_010.0)
HELD = Question(request_named("run"), '{"shown": "all"}', 60, ("yes_once",), is_held=True)
KEPT = replace(HELD, is_held=False)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    store = open_store(tmp_path / "state")
    with store.connection() as connection:
        yield connection
    store.close()


def answered(connection: Connection, seq: int, option_id: str = "yes_once") -> None:
    rows.write_answer(connection, seq, OptionAnswer(option_id, "web", 50_001.0, "run"), NOW)


def row_of(connection: Connection, seq: int) -> rows.Row:
    row = rows.row_at(connection, seq)
    assert row is not None
    return row


def askers(connection: Connection) -> int:
    return int(connection.execute("select count(*) from askers").fetchone()[0])


def test_a_request_comes_back_with_all_that_was_asked(connection: Connection) -> None:
    row = row_of(connection, rows.open_row(connection, KEPT, NOW))
    request = replace(KEPT.request, context={"shown": "all"}, created_at=50_000.0, expires_at=50_060.0)
    assert (row.request, row.state, row.answer, row.is_taken) == (request, "pending", None, False)
    assert (row.life.is_held, row.life.created_at, row.life.deadline) == (False, 50_000.0, NOW.after(60))
    assert row.question() == replace(KEPT, request=request)


def test_what_does_not_exist_is_none(connection: Connection) -> None:
    assert rows.row_at(connection, 1) is None
    assert rows.newest_row(connection, "run") is None


def test_the_newest_of_several_with_one_id_counts(connection: Connection) -> None:
    first = rows.open_row(connection, KEPT, NOW)
    answered(connection, first)
    rows.take(connection, row_of(connection, first))
    second = rows.open_row(connection, KEPT, NOW)
    newest = rows.newest_row(connection, "run")
    assert second > first
    assert newest is not None
    assert newest.seq == second
    assert [row.seq for row in rows.pending_rows(connection)] == [second]
    assert [row.seq for row in rows.past_rows(connection, 5)] == [first]


def test_pending_is_the_oldest_first_and_past_the_newest_first(connection: Connection) -> None:
    def opened(name: str) -> int:
        return rows.open_row(connection, replace(KEPT, request=request_named(name)), NOW)

    seqs = [opened(name) for name in ("z", "a", "m")]
    assert [row.seq for row in rows.pending_rows(connection)] == seqs
    for seq in seqs:
        answered(connection, seq)
    assert [row.seq for row in rows.past_rows(connection, 5)] == seqs[::-1]
    assert [row.seq for row in rows.past_rows(connection, 1)] == seqs[-1:]
    assert rows.pending_rows(connection) == []


def test_a_question_that_is_open_is_joined_and_never_loses_time(connection: Connection) -> None:
    seq = rows.open_row(connection, HELD, NOW)
    rows.ticket_for(connection, seq, HELD, NOW, 0.0)
    for lifetime, ends in ((10, NOW.after(60)), (100, NOW.after(105))):
        assert rows.open_row(connection, replace(HELD, lifetime=lifetime), LATER) == seq
        row = row_of(connection, seq)
        assert row.life.deadline == ends
        assert row.life.is_held
    assert rows.open_row(connection, KEPT, LATER) == seq
    assert not row_of(connection, seq).life.is_held, "kept for one who comes back, it stays kept"
    assert rows.open_row(connection, HELD, LATER) == seq
    assert not row_of(connection, seq).life.is_held


def test_a_question_whose_askers_are_gone_is_not_joined(connection: Connection) -> None:
    lost = rows.join(connection, HELD, NOW).seq
    asked_again = rows.join(connection, HELD, NOW.after(LEASE_SECONDS)).seq
    assert asked_again != lost
    assert [row_of(connection, seq).state for seq in (lost, asked_again)] == ["abandoned", "pending"]


def test_a_question_joined_after_a_restart_counts_by_the_new_clock(connection: Connection) -> None:
    seq = rows.open_row(connection, KEPT, NOW)
    assert rows.open_row(connection, replace(KEPT, lifetime=70), AFTER_A_RESTART) == seq
    assert row_of(connection, seq).life.deadline == AFTER_A_RESTART.after(70)


def test_a_question_with_other_options_is_not_joined(connection: Connection) -> None:
    rows.open_row(connection, KEPT, NOW)
    other = replace(KEPT, request=request_named("run", (Option("a", "A"),)))
    with pytest.raises(ConfigurationError, match="'run' is open and has other options"):
        rows.open_row(connection, other, NOW)


def test_an_answer_nobody_took_is_there_for_who_comes_back_and_gets_no_more_time(
    connection: Connection,
) -> None:
    seq = rows.open_row(connection, KEPT, NOW)
    answered(connection, seq)
    assert rows.open_row(connection, replace(KEPT, lifetime=500), LATER) == seq
    assert row_of(connection, seq).life.deadline == NOW.after(60)


@pytest.mark.parametrize(
    ("question", "is_answered", "is_taken", "seconds", "waits"),
    [
        (KEPT, True, False, 59.9, True),
        (KEPT, True, False, 60, False),
        (KEPT, True, True, 1, False),
        (KEPT, False, False, 1, False),
        (HELD, True, False, 1, False),
    ],
    ids=["in time", "too late", "taken", "not answered", "for those who waited"],
)
def test_an_answer_waits_for_its_taker(
    connection: Connection, question: Question, is_answered: bool, is_taken: bool, seconds: float, waits: bool
) -> None:
    seq = rows.insert_row(connection, question, NOW)
    if is_answered:
        answered(connection, seq)
    if is_taken:
        rows.take(connection, row_of(connection, seq))
    assert row_of(connection, seq).waits_for_its_taker(NOW.after(seconds)) is waits


def test_what_is_left_of_a_life_is_counted_by_the_clock_that_can_be_believed(connection: Connection) -> None:
    life = row_of(connection, rows.insert_row(connection, KEPT, NOW)).life
    assert life.remaining(Moment("boot", 1_020.0, 99_999.0)) == 40
    assert life.remaining(AFTER_A_RESTART) == 50


@pytest.mark.parametrize(
    ("question", "seconds", "alive"),
    [
        (HELD, 0, True),
        (HELD, LEASE_SECONDS - 0.1, True),
        (HELD, LEASE_SECONDS, False),
        (HELD, -LEASE_SECONDS, True),
        (HELD, -LEASE_SECONDS - 0.1, False),
        (KEPT, LEASE_SECONDS, True),
        (KEPT, 59.9, True),
        (KEPT, 60, False),
    ],
)
def test_a_held_question_lives_as_long_as_a_lease_and_a_kept_one_until_it_expires(
    connection: Connection, question: Question, seconds: float, alive: bool
) -> None:
    ticket = rows.join(connection, question, NOW)
    life = row_of(connection, ticket.seq).life
    assert rows.is_alive(connection, life, NOW.after(seconds)) is alive


def test_the_lease_of_another_boot_is_none_and_one_of_several_is_enough(connection: Connection) -> None:
    first = rows.join(connection, HELD, NOW)
    life = row_of(connection, first.seq).life
    assert not rows.has_askers(connection, first.seq, replace(NOW, boot="another"))
    rows.ticket_for(connection, first.seq, HELD, LATER, 0.0)
    assert rows.is_alive(connection, life, NOW.after(LEASE_SECONDS)), "the second asker is there"
    assert not rows.has_askers(connection, first.seq + 1, NOW), "of another question"


def test_a_question_with_a_lease_is_over_when_its_time_is(connection: Connection) -> None:
    question = replace(HELD, lifetime=2)
    ticket = rows.join(connection, question, NOW)
    assert not rows.is_alive(connection, row_of(connection, ticket.seq).life, NOW.after(2))


def test_a_lease_is_renewed_while_the_question_is_open_and_only_then(connection: Connection) -> None:
    ticket = rows.join(connection, HELD, NOW)
    rows.renew(connection, [ticket], LATER)
    assert askers(connection) == 1
    assert rows.has_askers(connection, ticket.seq, NOW.after(LEASE_SECONDS + 1))
    answered(connection, ticket.seq)
    rows.renew(connection, [replace(ticket, asker=7)], LATER)
    assert askers(connection) == 1


def test_what_is_dead_is_closed_with_its_reason_and_what_was_shown_is_forgotten(
    connection: Connection,
) -> None:
    def opened(name: str, **changes: object) -> int:
        question = replace(HELD, request=request_named(name), **changes)  # type: ignore[arg-type]
        return rows.join(connection, question, NOW).seq

    expired, abandoned, kept = opened("e", lifetime=3), opened("a"), opened("k", is_held=False)
    rows.close_dead(connection, NOW.after(LEASE_SECONDS))
    found = {seq: row_of(connection, seq) for seq in (expired, abandoned, kept)}
    assert {seq: row.state for seq, row in found.items()} == {
        expired: "expired",
        abandoned: "abandoned",
        kept: "pending",
    }
    assert [row.context for row in found.values()] == ["{}", "{}", '{"shown": "all"}']
    assert askers(connection) == 0, "leases that ran out are gone"
    assert rows.seqs_over(connection, [expired, abandoned, kept]) == {expired, abandoned}


def test_leases_that_hold_stay_and_those_of_another_boot_go(connection: Connection) -> None:
    rows.join(connection, HELD, NOW)
    rows.close_dead(connection, NOW.after(LEASE_SECONDS - 0.1))
    assert askers(connection) == 1
    rows.close_dead(connection, replace(NOW, boot="another"))
    assert askers(connection) == 0


def test_the_oldest_of_what_is_over_is_dropped(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rows.KEPT_REQUESTS == 500
    monkeypatch.setattr(rows, "KEPT_REQUESTS", 2)
    pending = rows.insert_row(connection, replace(KEPT, request=request_named("pending")), NOW)
    for number in range(4):
        answered(connection, rows.insert_row(connection, replace(KEPT, request=request_named(str(number))), NOW))
    rows.close_dead(connection, NOW)
    assert [row.request.id for row in rows.past_rows(connection, 9)] == ["3", "2"]
    assert [row.seq for row in rows.pending_rows(connection)] == [pending]


def test_the_first_answer_is_kept_and_no_later_one(connection: Connection) -> None:
    seq = rows.insert_row(connection, HELD, NOW)
    answered(connection, seq, "no")
    answered(connection, seq, "yes_once")
    row = row_of(connection, seq)
    assert row.answer == OptionAnswer("no", "web", 50_001.0, "run")
    assert (row.state, row.context) == ("answered", "{}")


def test_what_was_shown_is_kept_for_who_comes_back_until_the_answer_is_taken(connection: Connection) -> None:
    seq = rows.insert_row(connection, KEPT, NOW)
    answered(connection, seq)
    assert row_of(connection, seq).context == '{"shown": "all"}'
    rows.take(connection, row_of(connection, seq))
    assert (row_of(connection, seq).context, row_of(connection, seq).is_taken) == ("{}", True)


@pytest.mark.parametrize(
    ("option_id", "single_use", "takers"),
    [
        ("yes_once", (), [True, False, False]),
        ("no", (), [True, True, True]),
        ("yes_in_session", (), [True, True, True]),
        ("yes_in_session", ("yes_in_session",), [True, False, False]),
    ],
)
def test_an_answer_for_one_is_taken_by_one(
    connection: Connection, option_id: str, single_use: tuple[str, ...], takers: list[bool]
) -> None:
    seq = rows.insert_row(connection, HELD, NOW)
    answered(connection, seq, option_id)
    row = row_of(connection, seq)
    assert [rows.take(connection, row, single_use) == row.answer for _ in range(3)] == takers


def test_an_answer_that_others_share_is_for_one_to_whoever_says_so(connection: Connection) -> None:
    seq = rows.insert_row(connection, HELD, NOW)
    answered(connection, seq, "yes_in_session")
    row = row_of(connection, seq)
    assert rows.take(connection, row) is not None
    assert rows.take(connection, row, ("yes_in_session",)) is None
    assert rows.take(connection, row) is not None


def test_there_is_nothing_to_take_before_the_answer(connection: Connection) -> None:
    row = row_of(connection, rows.insert_row(connection, HELD, NOW))
    assert rows.take(connection, row) is None
    assert row_of(connection, row.seq) == row


@pytest.mark.parametrize(
    ("question", "seconds", "state"),
    [(HELD, 1, "withdrawn"), (HELD, 60, "expired"), (KEPT, 1, "pending"), (KEPT, 60, "expired")],
)
def test_the_last_asker_who_goes_takes_a_held_question_along(
    connection: Connection, question: Question, seconds: float, state: str
) -> None:
    ticket = rows.join(connection, question, NOW)
    rows.leave(connection, ticket, NOW.after(seconds))
    assert row_of(connection, ticket.seq).state == state
    assert askers(connection) == 0


def test_who_goes_leaves_the_question_to_the_other_and_an_answer_as_it_is(connection: Connection) -> None:
    first, second = rows.join(connection, HELD, NOW), rows.join(connection, HELD, NOW)
    assert (first.seq, first.question) == (second.seq, HELD)
    rows.leave(connection, first, NOW)
    assert row_of(connection, first.seq).state == "pending"
    answered(connection, first.seq)
    rows.leave(connection, second, NOW)
    assert row_of(connection, first.seq).state == "answered"
    rows.leave(connection, Ticket(99, 1, HELD, 0.0), NOW)
