"""Requests as rows of the world's file: who asks, what came back, and who may take it. Callers hold the transaction."""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from skillkit.core.decide.deadlines import Moment, is_over
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.questions import Option, OptionAnswer, OptionRequest

__all__ = [
    "ANSWERED",
    "KEPT_REQUESTS",
    "LEASE_SECONDS",
    "PENDING",
    "Question",
    "Row",
    "Ticket",
    "close_dead",
    "is_alive",
    "joined",
    "leave",
    "newest_row",
    "no_longer_pending",
    "opened",
    "past_rows",
    "pending_ids",
    "pending_rows",
    "renew",
    "row_at",
    "take",
    "ticket_for",
    "write_answer",
]

PENDING = "pending"
ANSWERED = "answered"
EXPIRED = "expired"
WITHDRAWN = "withdrawn"
ABANDONED = "abandoned"
LEASE_SECONDS = 6.0
KEPT_REQUESTS = 500

_LIFE = "select seq, is_held, created_at, expires_at, boot, deadline"
_COLUMNS = f"""{_LIFE}, state, option_id, channel, answered_at, is_taken, content, context, single_use
    from requests"""
_INSERT = """insert into requests (id, content, context, single_use, is_held, created_at, expires_at, boot, deadline)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_RENEW = """insert into askers (asker, request, boot, leased_until)
    select ?, seq, ?, ? from requests where seq = ? and state = 'pending'
    on conflict (asker) do update set boot = excluded.boot, leased_until = excluded.leased_until"""
# What a person was shown may hold secrets: it is kept only while somebody can still be shown it.
_CLOSE = "update requests set state = ?, context = '{}' where seq = ? and state = 'pending'"


@dataclass(frozen=True, slots=True)
class Question:
    """A request and how it is asked."""

    request: OptionRequest
    context: str
    """The request's context as JSON."""
    lifetime: float
    single_use: tuple[str, ...]
    """Options that one asker alone may take."""
    is_held: bool
    """Lives only as long as somebody waits for it."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """One asker's place at one request."""

    seq: int
    asker: int
    question: Question


@dataclass(frozen=True, slots=True)
class Life:
    """How long an open request lasts."""

    seq: int
    is_held: bool
    created_at: float
    deadline: Moment

    def is_over(self, now: Moment) -> bool:
        return is_over(self.deadline, self.created_at, now)

    def remaining(self, now: Moment) -> float:
        """In seconds."""
        is_same_boot = self.deadline.boot == now.boot
        return self.deadline.steady - now.steady if is_same_boot else self.deadline.wall - now.wall


@dataclass(frozen=True, slots=True)
class Row:
    """A request with all that became of it."""

    life: Life
    request: OptionRequest
    context: str
    single_use: tuple[str, ...]
    state: str
    answer: OptionAnswer | None
    is_taken: bool

    @property
    def seq(self) -> int:
        return self.life.seq

    def waits_for_its_taker(self, now: Moment) -> bool:
        """An answer that came while nobody waited for it."""
        is_untaken = self.state == ANSWERED and not self.is_taken
        return is_untaken and not self.life.is_held and not self.life.is_over(now)

    def question(self) -> Question:
        lifetime = self.request.expires_at - self.request.created_at
        return Question(self.request, self.context, lifetime, self.single_use, self.life.is_held)


def row_from(values: Sequence[Any]) -> Row:
    state, option_id, channel, answered_at, is_taken, content, context, single_use = values[6:]
    life = life_from(values[:6])
    kept = json.loads(content)
    request = OptionRequest(
        id=kept["id"],
        title=kept["title"],
        message=kept["message"],
        options=tuple(Option(**option) for option in kept["options"]),
        context=json.loads(context),
        session_id=kept["session_id"],
        created_at=life.created_at,
        expires_at=life.deadline.wall,
    )
    answer = OptionAnswer(option_id, channel, answered_at, request.id) if state == ANSWERED else None
    return Row(life, request, context, tuple(json.loads(single_use)), state, answer, bool(is_taken))


def life_from(values: Sequence[Any]) -> Life:
    seq, is_held, created_at, expires_at, boot, deadline = values
    return Life(seq, bool(is_held), created_at, Moment(boot, deadline, expires_at))


def row_at(connection: sqlite3.Connection, seq: int) -> Row | None:
    values = connection.execute(f"{_COLUMNS} where seq = ?", (seq,)).fetchone()
    return None if values is None else row_from(values)


def newest_row(connection: sqlite3.Connection, request_id: str) -> Row | None:
    values = connection.execute(f"{_COLUMNS} where id = ? order by seq desc limit 1", (request_id,)).fetchone()
    return None if values is None else row_from(values)


def pending_rows(connection: sqlite3.Connection) -> list[Row]:
    found = connection.execute(f"{_COLUMNS} where state = 'pending'").fetchall()
    return sorted((row_from(values) for values in found), key=lambda row: row.seq)


def pending_ids(connection: sqlite3.Connection, now: Moment) -> list[tuple[int, str]]:
    """Number and id of what can be answered; what it carries is not read."""
    found = connection.execute(f"{_LIFE}, id from requests where state = 'pending'").fetchall()
    alive = [(values[0], values[6]) for values in found if is_alive(connection, life_from(values[:6]), now)]
    return sorted(alive)


def past_rows(connection: sqlite3.Connection, limit: int) -> list[Row]:
    """The newest first."""
    statement = f"{_COLUMNS} where state <> 'pending' order by seq desc limit ?"
    return [row_from(values) for values in connection.execute(statement, (limit,)).fetchall()]


def is_alive(connection: sqlite3.Connection, life: Life, now: Moment) -> bool:
    """Whether an answer to this pending request would still reach somebody."""
    return not life.is_over(now) and (not life.is_held or has_askers(connection, life.seq, now))


def has_askers(connection: sqlite3.Connection, seq: int, now: Moment) -> bool:
    found = connection.execute("select boot, leased_until from askers where request = ?", (seq,)).fetchall()
    # A lease may be renewed after `now` was read; one that ends much later is from before a restart.
    return any(boot == now.boot and 0 < until - now.steady <= 2 * LEASE_SECONDS for boot, until in found)


def close_dead(connection: sqlite3.Connection, now: Moment) -> None:
    """Requests that expired or whose askers are all gone; and the oldest of what is over."""
    for values in connection.execute(f"{_LIFE} from requests where state = 'pending'").fetchall():
        life = life_from(values)
        if not is_alive(connection, life, now):
            connection.execute(_CLOSE, (EXPIRED if life.is_over(now) else ABANDONED, life.seq))
    connection.execute(
        "delete from requests where seq <= (select max(seq) from requests) - ? and state <> 'pending'", (KEPT_REQUESTS,)
    )
    connection.execute("delete from askers where boot <> ? or leased_until <= ?", (now.boot, now.steady))


def opened(connection: sqlite3.Connection, question: Question, now: Moment) -> int:
    """The request's row: the one that is open already, else a new one."""
    close_dead(connection, now)
    row = newest_row(connection, question.request.id)
    if row is None or not (row.state == PENDING or row.waits_for_its_taker(now)):
        return inserted(connection, question, now)
    if row.request.options != question.request.options:
        raise ConfigurationError(
            f"Another question with the id {row.request.id!r} is open and has other options. Use an id of its own."
        )
    if row.state == PENDING:
        ends = now.after(question.lifetime)
        connection.execute(
            """update requests set is_held = is_held and ?, expires_at = max(expires_at, ?),
            deadline = case boot when ? then max(deadline, ?) else ? end, boot = ? where seq = ?""",
            (question.is_held, ends.wall, ends.boot, ends.steady, ends.steady, ends.boot, row.seq),
        )
    return row.seq


def inserted(connection: sqlite3.Connection, question: Question, now: Moment) -> int:
    request, ends = question.request, now.after(question.lifetime)
    content = {
        "id": request.id,
        "title": request.title,
        "message": request.message,
        "options": [asdict(option) for option in request.options],
        "session_id": request.session_id,
    }
    values = (
        request.id,
        json.dumps(content),
        question.context,
        json.dumps(question.single_use),
        question.is_held,
        now.wall,
        ends.wall,
        now.boot,
        ends.steady,
    )
    return int(connection.execute(_INSERT, values).lastrowid or 0)


def joined(connection: sqlite3.Connection, question: Question, now: Moment) -> Ticket:
    """A place at the request, made pending if it is not."""
    return ticket_for(connection, opened(connection, question, now), question, now)


def ticket_for(connection: sqlite3.Connection, seq: int, question: Question, now: Moment) -> Ticket:
    ticket = Ticket(seq, secrets.randbits(62), question)
    renew(connection, [ticket], now)
    return ticket


def renew(connection: sqlite3.Connection, tickets: Iterable[Ticket], now: Moment) -> None:
    """Say that these askers still wait."""
    until = now.steady + LEASE_SECONDS
    connection.executemany(_RENEW, [(ticket.asker, now.boot, until, ticket.seq) for ticket in tickets])


def no_longer_pending(connection: sqlite3.Connection, seqs: Iterable[int]) -> set[int]:
    """Which of these are over; the index holds only what is pending."""
    still = {seq for (seq,) in connection.execute("select seq from requests where state = 'pending'").fetchall()}
    return set(seqs) - still


def write_answer(connection: sqlite3.Connection, seq: int, answer: OptionAnswer) -> None:
    connection.execute(
        """update requests set state = ?, option_id = ?, channel = ?, answered_at = ?,
        context = case is_held when 1 then '{}' else context end where seq = ? and state = 'pending'""",
        (ANSWERED, answer.option_id, answer.channel, answer.answered_at, seq),
    )


def take(connection: sqlite3.Connection, row: Row) -> OptionAnswer | None:
    """The answer, unless it was for one asker alone and another took it."""
    taken = connection.execute(
        "update requests set is_taken = 1, context = '{}' where seq = ? and state = ? and is_taken = 0",
        (row.seq, ANSWERED),
    )
    is_shared = row.answer is not None and row.answer.option_id not in row.single_use
    return row.answer if is_shared or taken.rowcount == 1 else None


def leave(connection: sqlite3.Connection, ticket: Ticket, now: Moment) -> None:
    """The last asker who goes takes the question along, unless it is kept for somebody who comes back."""
    connection.execute("delete from askers where asker = ?", (ticket.asker,))
    row = row_at(connection, ticket.seq)
    if row is not None and row.state == PENDING and not is_alive(connection, row.life, now):
        connection.execute(_CLOSE, (EXPIRED if row.life.is_over(now) else WITHDRAWN, row.seq))
