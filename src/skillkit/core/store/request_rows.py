"""Requests as rows of the world's file: who asks, what came back, and who may take it. Callers hold the transaction.

Theory of operation. A request is one row for all who ask the same id while it is open; each asker has a row in
`askers` with a lease, which it renews while it waits. A request that is held lives as long as somebody's lease does,
any other until it expires; both end at once with the processes that would take the answer. The answer to a request that
has such an owner is kept ten minutes. Time is told by two clocks: the steady one, which nobody can set and which all
processes of the machine share, decides; the wall clock counts after a restart. The first answer is written and no later
one. An answer for one asker alone goes to the first who takes it; for the others the question is opened again.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any, TypeAlias

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.store.base import Connection, Moment
from skillkit.core.store.processes import Mark
from skillkit.core.values.questions import NO, WALLS, Option, OptionAnswer, OptionRequest, Tick

__all__ = [
    "AFTER_ALL",
    "EXPIRED",
    "LEASE_SECONDS",
    "PENDING",
    "WITHDRAWN",
    "Question",
    "Row",
    "Ticket",
    "close_dead",
    "ids_that_order",
    "is_alive",
    "join",
    "leases",
    "leave",
    "newest_row",
    "open_row",
    "past_rows",
    "pending_ids",
    "pending_rows",
    "renew",
    "row_at",
    "seqs_over",
    "take",
    "ticket_for",
    "write_answer",
]

PENDING, ANSWERED, EXPIRED, WITHDRAWN, ABANDONED = "pending", "answered", "expired", "withdrawn", "abandoned"
LEASE_SECONDS = 6.0
KEPT_ANSWER_SECONDS = 600.0
KEPT_REQUESTS = 500
AFTER_ALL = 2**63 - 1
UNREADABLE_TITLE = "A question that cannot be read"
UNREADABLE = "It is not written as skillkit writes questions. Only no can be answered. Look at who asks."

_LIFE = "select seq, is_held, created_at, expires_at, boot, deadline, owner"
_COLUMNS = f"""{_LIFE}, state, option_id, channel, answered_at, grants, reason, is_taken, content, context, single_use,
    id from requests"""
_INSERT = """insert into requests
    (id, content, context, single_use, is_held, created_at, expires_at, boot, deadline, owner)
    values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
_EXTEND = """update requests set is_held = is_held * ?, expires_at = max(expires_at, ?),
    deadline = case boot when ? then max(deadline, ?) else ? end, boot = ?,
    owner = case owner when '' then '' else ? end where seq = ?"""
_RENEW = """insert into askers (asker, request, process, boot, leased_until)
    select ?, seq, ?, ?, ? from requests where seq = ? and state = 'pending'
    on conflict (asker) do update set boot = excluded.boot, leased_until = excluded.leased_until"""
_ANSWER = """update requests set state = 'answered', option_id = ?, channel = ?, answered_at = ?,
    grants = ?, reason = ?,
    expires_at = case owner when '' then expires_at else max(expires_at, ?) end,
    deadline = case when owner <> '' and boot = ? then max(deadline, ?) else deadline end,
    context = case is_held when 1 then '{}' else context end where seq = ? and state = 'pending'"""
# A login that is gone runs nothing.
_ORDERING = """select id from requests where state = 'pending' and id = any(?) and not coalesce(
    pg_has_role(to_regrole(quote_ident(login))::oid, (current_schema() || '_worker')::name, 'member'), false)"""
# What a person was shown may hold secrets: it is kept only while somebody can still be shown it.
_CLOSE = "update requests set state = ?, context = '{}' where seq = ? and state = 'pending'"
_TAKE = "update requests set is_taken = 1, context = '{}' where seq = ? and state = 'answered' and is_taken = 0"
_FORGET = "delete from requests where seq <= (select max(seq) from requests) - ? and state <> 'pending'"


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
    owner: Mark = ""
    """The process without which nobody would take the answer; empty where any may come for it."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """One asker's place at one request."""

    seq: int
    asker: int
    question: Question
    ends: float
    """When the asker gives up, by the steady clock."""


@dataclass(frozen=True, slots=True)
class Life:
    """How long an open request lasts."""

    seq: int
    is_held: bool
    created_at: float
    deadline: Moment
    owner: Mark = ""

    def is_over(self, now: Moment) -> bool:
        """The steady clock decides; after a restart, or where starts cannot be told apart, the other counts too."""
        is_same_boot = self.deadline.boot == now.boot
        if is_same_boot and (now.steady >= self.deadline.steady or now.boot):
            return now.steady >= self.deadline.steady
        # A clock that stands before the beginning cannot be believed.
        return not self.created_at <= now.wall < self.deadline.wall

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

    def is_open(self, now: Moment) -> bool:
        """Whether one who asks the same gets its answer."""
        return self.state == PENDING or self.waits_for_its_taker(now)

    def question(self) -> Question:
        lifetime = self.request.expires_at - self.request.created_at
        return Question(self.request, self.context, lifetime, self.single_use, self.life.is_held, self.life.owner)


def _life_from(values: Sequence[Any]) -> Life:
    seq, is_held, created_at, expires_at, boot, deadline, owner = values
    return Life(seq, bool(is_held), created_at, Moment(boot, deadline, expires_at), owner)


def _row_from(values: Sequence[Any]) -> Row:
    life = _life_from(values[:7])
    state, option_id, channel, answered_at, grants, reason, is_taken, content, context, single_use, name = values[7:]
    try:
        request = _request_from(name, json.loads(content), json.loads(context))
        uses = tuple(map(str, json.loads(single_use)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        request, uses = OptionRequest(name, UNREADABLE_TITLE, UNREADABLE, (Option(NO, "No"),)), ()
    request = replace(request, created_at=life.created_at, expires_at=life.deadline.wall)
    answer = None
    if state == ANSWERED:
        answer = OptionAnswer(option_id, channel, answered_at, request.id, tuple(json.loads(grants)), reason)
    return Row(life, request, context, uses, state, answer, bool(is_taken))


def _request_from(name: str, kept: dict[str, Any], context: dict[str, Any]) -> OptionRequest:
    """Of a row that anybody may have written who can ask: one that is not as we write them hides no other."""
    kept["options"] = tuple(Option(**option) for option in kept["options"])
    kept["grants"] = tuple(Tick(**tick) for tick in kept.get("grants", ()))
    request = OptionRequest(**kept, context=context)
    parts: list[Option | Tick] = [*request.options, *request.grants]
    texts = [
        request.title,
        request.message,
        request.session_id or "",
        *(word for each in parts for word in astuple(each)),
    ]
    is_plain = all(isinstance(each, str) for each in texts)
    if (request.id, type(context), is_plain) != (name, dict, True):
        raise ValueError("it is not as skillkit writes one")
    return request


def _rows(connection: Connection, which: str, *values: object) -> list[Row]:
    return [_row_from(each) for each in connection.execute(f"{_COLUMNS} where {which}", values).fetchall()]


def row_at(connection: Connection, seq: int) -> Row | None:
    return next(iter(_rows(connection, "seq = ?", seq)), None)


def newest_row(connection: Connection, request_id: str) -> Row | None:
    return next(iter(_rows(connection, "id = ? order by seq desc limit 1", request_id)), None)


def ids_that_order(connection: Connection, ids: Sequence[str]) -> set[str]:
    """Of a shared world: which of these open questions come from logins that run nothing themselves."""
    return {name for (name,) in connection.execute(_ORDERING, ([*ids],)).fetchall()}


def pending_rows(connection: Connection, up_to: int = AFTER_ALL) -> list[Row]:
    """With all that they carry, the oldest first, none that was asked after the one of this number."""
    return sorted(_rows(connection, "state = 'pending' and seq <= ?", up_to), key=lambda row: row.seq)


def past_rows(connection: Connection, limit: int) -> list[Row]:
    """The newest first."""
    return _rows(connection, "state <> 'pending' order by seq desc limit ?", limit)


def pending_ids(connection: Connection, now: Moment) -> list[tuple[int, str]]:
    """Number and id of what can be answered; what it carries is not read."""
    found = connection.execute(f"{_LIFE}, id from requests where state = 'pending'").fetchall()
    known = leases(connection) if len(found) > 1 else None
    return sorted((each[0], each[7]) for each in found if is_alive(connection, _life_from(each[:7]), now, known))


def seqs_over(connection: Connection, seqs: Iterable[int]) -> set[int]:
    """Which of these are not pending any more; the index holds only what is."""
    still = {seq for (seq,) in connection.execute("select seq from requests where state = 'pending'").fetchall()}
    return set(seqs) - still


Lease: TypeAlias = tuple[Mark, str, float]
_LEASES = "select request, process, boot, leased_until from askers"


def leases(connection: Connection) -> dict[int, list[Lease]]:
    """Of all requests in one look: many are open where many machines ask."""
    found: dict[int, list[Lease]] = {}
    for seq, *lease in connection.execute(_LEASES).fetchall():
        found.setdefault(seq, []).append(tuple(lease))
    return found


def is_alive(connection: Connection, life: Life, now: Moment, known: dict[int, list[Lease]] | None = None) -> bool:
    """Whether an answer to this pending request would still reach somebody; `known` leases need not be read again."""
    if life.is_over(now) or (life.owner and not now.is_running(life.owner)):
        return False
    if not life.is_held:
        return True
    return has_askers(connection, life.seq, now) if known is None else _hold(known.get(life.seq, ()), now)


def has_askers(connection: Connection, seq: int, now: Moment) -> bool:
    return _hold([row[1:] for row in connection.execute(f"{_LEASES} where request = ?", (seq,)).fetchall()], now)


def _hold(found: Iterable[Lease], now: Moment) -> bool:
    # A lease may be renewed after `now` was read; one that ends much later is from before a restart.
    leased = [mark for mark, boot, until in found if boot == now.boot and 0 < until - now.steady <= 2 * LEASE_SECONDS]
    return any(not mark or now.is_running(mark) for mark in leased)


def close_dead(connection: Connection, now: Moment) -> None:
    """Requests that expired or whose askers are all gone; and the oldest of what is over."""
    pending = connection.execute(f"{_LIFE} from requests where state = 'pending'").fetchall()
    known = leases(connection) if len(pending) > 1 else None
    for values in pending:
        life = _life_from(values)
        if not is_alive(connection, life, now, known):
            connection.execute(_CLOSE, (EXPIRED if life.is_over(now) else ABANDONED, life.seq))
    connection.execute(_FORGET, (KEPT_REQUESTS,))
    connection.execute("delete from askers where boot <> ? or leased_until <= ?", (now.boot, now.steady))


def open_row(connection: Connection, question: Question, now: Moment) -> int:
    """The request's row: the one that is open already, else a new one."""
    close_dead(connection, now)
    row = newest_row(connection, question.request.id)
    if row is None or not row.is_open(now):
        return insert_row(connection, question, now)
    if _offer_of(row.request) != _offer_of(question.request):
        raise ConfigurationError(
            f"Another question with the id {row.request.id!r} is open and has other options, or is about another "
            "place. Answer that one first, or use an id of its own."
        )
    if row.state == PENDING:
        ends = now.after(question.lifetime)
        times = (ends.wall, ends.boot, ends.steady, ends.steady, ends.boot)
        values = (int(question.is_held), *times, now.mark(question.owner), row.seq)
        connection.execute(_EXTEND, values)
    return row.seq


def _offer_of(request: OptionRequest) -> tuple[object, ...]:
    """What two questions of one id must have in common, so that one answer is for both."""
    return request.options, request.grants, request.context.get(WALLS)


def insert_row(connection: Connection, question: Question, now: Moment) -> int:
    request, ends = question.request, now.after(question.lifetime)
    content = {name: getattr(request, name) for name in ("id", "title", "message")}
    content |= {"options": [asdict(option) for option in request.options], "session_id": request.session_id}
    content |= {"grants": [asdict(tick) for tick in request.grants]}
    texts = (request.id, json.dumps(content), question.context, json.dumps(question.single_use))
    values = (*texts, int(question.is_held), now.wall, ends.wall, now.boot, ends.steady, now.mark(question.owner))
    connection.execute(_INSERT, values)
    return int(connection.execute("select max(seq) from requests").fetchone()[0])  # all other writers wait


def join(connection: Connection, question: Question, now: Moment, ends: float | None = None) -> Ticket:
    """A place at the request, made pending if it is not; its asker gives up when the question expires, or at `ends`."""
    seq = open_row(connection, question, now)
    return ticket_for(connection, seq, question, now, now.here(question.lifetime) if ends is None else ends)


def ticket_for(connection: Connection, seq: int, question: Question, now: Moment, ends: float) -> Ticket:
    ticket = Ticket(seq, secrets.randbits(62), question, ends)
    renew(connection, [ticket], now)
    return ticket


def renew(connection: Connection, tickets: Iterable[Ticket], now: Moment) -> None:
    """Say that these askers still wait."""
    until, mark = now.steady + LEASE_SECONDS, now.mark()
    connection.executemany(_RENEW, [(ticket.asker, mark, now.boot, until, ticket.seq) for ticket in tickets])


def write_answer(connection: Connection, seq: int, answer: OptionAnswer, now: Moment) -> None:
    kept = now.after(KEPT_ANSWER_SECONDS)
    said = (answer.option_id, answer.channel, answer.answered_at, json.dumps(answer.grants), answer.reason)
    connection.execute(_ANSWER, (*said, kept.wall, kept.boot, kept.steady, seq))


def take(connection: Connection, row: Row, single_use: Sequence[str] = ()) -> OptionAnswer | None:
    """The answer, unless it was for one asker alone, or is for one to this asker, and another took it."""
    taken = connection.execute(_TAKE, (row.seq,))
    is_shared = row.answer is not None and row.answer.option_id not in (*row.single_use, *single_use)
    return row.answer if is_shared or taken.rowcount == 1 else None


def leave(connection: Connection, ticket: Ticket, now: Moment) -> None:
    """The last asker who goes takes the question along, unless it is kept for somebody who comes back."""
    connection.execute("delete from askers where asker = ?", (ticket.asker,))
    row = row_at(connection, ticket.seq)
    if row is not None and row.state == PENDING and not is_alive(connection, row.life, now):
        connection.execute(_CLOSE, (EXPIRED if row.life.is_over(now) else WITHDRAWN, row.seq))
