"""What callers ask -> requests that fit into the store, and what becomes of them; each step is one transaction."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from skillkit.core.exceptions import ConfigurationError, RequestClosedError
from skillkit.core.store import request_rows as rows
from skillkit.core.store.base import Connection, Moment, Store
from skillkit.core.store.request_rows import Question, Row, Ticket
from skillkit.core.store.trust import StandingApprovals
from skillkit.core.values.bounds import Bounds, walls_digest
from skillkit.core.values.needs import Grant
from skillkit.core.values.questions import (
    IN_SESSION,
    KEEPS,
    NO,
    ORDERED,
    REASON_CHARACTERS,
    WALLS,
    Option,
    OptionAnswer,
    OptionRequest,
)
from skillkit.core.values.text import grouped

__all__ = [
    "OptionLike",
    "PastRequest",
    "Requests",
    "options_from",
    "question_from",
    "require_channel",
    "require_offered",
    "require_reason",
]

OptionLike = Option | tuple[str, str] | str

TITLE_CHARACTERS = 1_000
MESSAGE_CHARACTERS = 20_000
NAME_CHARACTERS = 256
CONTEXT_CHARACTERS = 4_000_000
MOST_OPTIONS = 50
MOST_TICKS = 100
TICK_CHARACTERS = 5_000  # a path may be as long as the kernel takes
LONGEST_LIFE_SECONDS = 30 * 86_400
SAME_CLOCK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class PastRequest:
    """A request that is over; what it carried as context is not kept."""

    request: OptionRequest
    outcome: str
    """answered, expired, withdrawn (the asker went on) or abandoned (the asker died)."""
    answer: OptionAnswer | None


class Requests:
    """The requests of a world. Those that only look make no file."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, question: Question) -> OptionRequest:
        """Makes it pending; gives what is open now."""
        with self._store.transaction() as connection:
            row = rows.row_at(connection, rows.open_row(connection, question, self._store.now()))
        return row.request if row is not None else question.request

    def join(self, question: Question) -> Ticket:
        """A place at the request, made pending if it is not."""
        with self._store.transaction() as connection:
            return rows.join(connection, question, self._store.now())

    def rejoin(self, request_id: str) -> Ticket:
        """A place at a request that is open, or was answered while nobody waited."""
        with self._store.transaction() as connection:
            now = self._store.now()
            row = rows.newest_row(connection, request_id)
            if row is None or not row.is_open(now):
                raise _closed_error(request_id, row)
            return rows.ticket_for(connection, row.seq, row.question(), now, now.here(row.life.remaining(now)))

    def settle(self, ticket: Ticket, *, is_done: bool) -> OptionAnswer | Ticket | None:
        """The answer; or where to wait on, elsewhere when another asker took what was for one; or None: time to go."""
        with self._erasing() as connection:
            now, question, answer = self._store.now(), ticket.question, None
            row = rows.row_at(connection, ticket.seq)
            is_answered = row is not None and row.answer is not None
            if row is not None and is_answered:
                answer = rows.take(connection, row, question.single_use)
            elif row is not None and row.state == rows.PENDING and not is_done:
                return ticket
            rows.leave(connection, ticket, now)
            if answer is not None or is_done:
                return _as_here(answer, now)
            return rows.join(connection, question, now, None if is_answered else ticket.ends)

    def leave(self, ticket: Ticket) -> None:
        with self._erasing() as connection:
            rows.leave(connection, ticket, self._store.now())

    def renew(self, tickets: Iterable[Ticket]) -> None:
        """Say that these askers still wait."""
        with self._store.transaction() as connection:
            rows.renew(connection, tickets, self._store.now())

    def seqs_over(self, seqs: Iterable[int]) -> set[int]:
        """Which of these numbers are not pending any more."""
        with self._store.connection() as connection:
            return rows.seqs_over(connection, seqs)

    def collect(self, request_id: str) -> OptionAnswer | None:
        """An answer that waits for its taker, once."""
        with self._erasing() as connection:
            row = rows.newest_row(connection, request_id)
            now = self._store.now()
            is_waiting = row is not None and row.waits_for_its_taker(now)
            return _as_here(rows.take(connection, row), now) if row is not None and is_waiting else None

    def answer(
        self,
        request_id: str,
        option_id: str,
        channel: str,
        created_at: float | None = None,
        *,
        grants: tuple[str, ...] = (),
        reason: str = "",
        seen: OptionRequest | None = None,
    ) -> OptionAnswer:
        """With `seen`, to exactly that: who asks can put another question of the same id and moment in its place."""
        if not self._store.exists():
            raise _closed_error(request_id, None)
        with self._erasing() as connection:
            now = self._store.now()
            rows.close_dead(connection, now)
            row = rows.newest_row(connection, request_id)
            if row is None or row.state != rows.PENDING:
                connection.execute("commit")
                raise _closed_error(request_id, row)
            is_another = seen is not None and row.request != seen
            if is_another or created_at not in (None, row.request.created_at):
                raise RequestClosedError(
                    f"The request {request_id!r} was asked anew meanwhile. Look at it again.", request_id=request_id
                )
            if not (option_id == NO and request_id.startswith(ORDERED)):  # a false question need not offer it
                require_offered(row.request, option_id, grants)
            if self._store.is_shared and option_id != NO:
                _require_looked_at(connection, row)
            answer = OptionAnswer(option_id, channel, now.wall, request_id, grants=grants, reason=reason)
            rows.write_answer(connection, row.seq, answer, now)
            if self._store.is_shared:
                keep_for_session(StandingApprovals(self._store), row, answer)
        return answer

    def pending(self, limit: int | None = None) -> list[OptionRequest]:
        """What can be answered now, the oldest first; of many, only so many are read."""
        if not self._store.exists():
            return []
        with self._store.connection() as connection:
            now = self._store.now()
            ids = rows.pending_ids(connection, now) if limit is not None else []
            found = rows.pending_rows(connection, ids[:limit][-1][0] if ids else rows.AFTER_ALL)
            known = rows.leases(connection) if len(found) > 1 else None
            return [row.request for row in found if rows.is_alive(connection, row.life, now, known)]

    def pending_ids(self) -> list[tuple[int, str]]:
        if not self._store.exists():
            return []
        with self._store.connection() as connection:
            return rows.pending_ids(connection, self._store.now())

    def find(self, request_id: str) -> OptionRequest | PastRequest | None:
        """The newest of its id."""
        if not self._store.exists():
            return None
        with self._erasing() as connection:
            rows.close_dead(connection, self._store.now())
            row = rows.newest_row(connection, request_id)
        if row is None or row.state == rows.PENDING:
            return None if row is None else row.request
        return PastRequest(row.request, row.state, row.answer)

    def past(self, limit: int) -> list[PastRequest]:
        """The newest first."""
        if not self._store.exists():
            return []
        with self._erasing() as connection:
            rows.close_dead(connection, self._store.now())
            found = rows.past_rows(connection, limit)
        return [PastRequest(row.request, row.state, row.answer) for row in found]

    @contextmanager
    def _erasing(self) -> Iterator[Connection]:
        """A transaction that ends questions: nothing of what they showed is left on disk after it."""
        changes = 0
        try:
            with self._store.transaction() as connection:
                before = connection.total_changes
                try:
                    yield connection
                finally:
                    changes = connection.total_changes - before
        finally:
            if changes:
                self._store.scrub()


def _as_here(answer: OptionAnswer | None, now: Moment) -> OptionAnswer | None:
    """When it was given by the clock of who takes it, where that goes otherwise than the one of all."""
    ahead = time.time() - now.wall if now.host else 0.0
    if answer is None or abs(ahead) < SAME_CLOCK_SECONDS:
        return answer
    return replace(answer, answered_at=answer.answered_at + ahead)


def _require_looked_at(connection: Connection, row: Row) -> None:
    """Who runs nothing itself asks about orders, which are looked at: another script question may show anything."""
    request = row.request
    if not request.is_about_scripts or request.id.startswith(ORDERED):
        return
    if request.id in rows.ids_that_order(connection, [request.id]):
        raise ConfigurationError(
            f"The request {request.id!r} is about no order, and who asks may not run scripts: what it shows cannot be "
            "checked, so nothing is approved by it. Answer it with no, and look at who asks."
        )


def keep_for_session(approvals: StandingApprovals, row: Row, answer: OptionAnswer) -> None:
    """In a shared world who answers keeps a yes for the session, for who asks may not approve anything."""
    request, kept = row.request, row.request.context.get(KEEPS)
    if answer.option_id != IN_SESSION or IN_SESSION in row.single_use or not kept or not request.session_id:
        return
    walls = Bounds.from_text(kept["walls"])
    prompt = request.context.get("prompt", {})
    told = (prompt.get("skill"), prompt.get("digest"), request.context.get(WALLS))
    if walls is None or told != (kept["skill"], kept["digest"], walls_digest([walls])):
        raise ConfigurationError(
            f"The request {request.id!r} shows another skill or other walls than it would keep. Answer it with no."
        )
    ticks = tuple(Grant.from_id(each) for tick in answer.grants for each in kept["offered"].get(tick, ()))
    approvals.approve_in_session(
        request.session_id,
        skill=kept["skill"],
        folder="",
        digest=kept["digest"],
        channel=answer.channel,
        walls=walls.with_grants(ticks),
        on_load=kept["on_load"],
        ticks=ticks,
        left=tuple(each for each in kept["offered"] if each not in answer.grants),
    )


def _closed_error(request_id: str, row: Row | None) -> RequestClosedError:
    if row is None:
        return RequestClosedError(
            f"There is no request {request_id!r} in this world. See what is waiting, or name another state folder.",
            request_id=request_id,
        )
    if row.answer is not None:
        return RequestClosedError(
            f"The request {request_id!r} was answered before: {row.answer.option_id!r} by {row.answer.channel}. "
            "The first answer wins.",
            request_id=request_id,
            option_id=row.answer.option_id,
            channel=row.answer.channel,
        )
    why = {rows.EXPIRED: "has expired", rows.WITHDRAWN: "was withdrawn"}.get(row.state, "has lost whoever asked")
    return RequestClosedError(f"The request {request_id!r} {why}. Let it be asked again.", request_id=request_id)


def question_from(
    request: OptionRequest, expires_in: float, single_use: Iterable[str], *, is_held: bool, owner: str = ""
) -> Question:
    """Checked: nothing is cut, since a person must see the whole of what they answer."""
    _require_storable(request)
    _require_lifetime(expires_in)
    return Question(request, _context_text(request.context), expires_in, tuple(single_use), is_held, owner)


def require_offered(request: OptionRequest, option_id: str, grants: Iterable[str] = ()) -> None:
    """One of its options, and of its ticks none that it does not have."""
    offered = [option.id for option in request.options]
    if option_id not in offered:
        raise ConfigurationError(
            f"{option_id!r} is no option of the request {request.id}. Answer with one of: {', '.join(offered)}."
        )
    ticks = [tick.id for tick in request.grants]
    if unknown := [each for each in grants if each not in ticks]:
        what = f"It offers: {', '.join(ticks)}." if ticks else "It offers nothing."
        raise ConfigurationError(f"{unknown[0]!r} is not offered by the request {request.id}. {what}")


def options_from(given: Iterable[OptionLike]) -> tuple[Option, ...]:
    """A text stands for an option whose label is its id."""
    if isinstance(given, str):
        raise ConfigurationError(f"Options are a list; {given!r} is one text. Write [{given!r}].")
    return tuple(map(_option_from, given))


def _option_from(given: object) -> Option:
    match given:
        case Option():
            return given
        case str():
            return Option(given, given)
        case (str() as name, str() as label):
            return Option(name, label)
        case _:
            raise ConfigurationError(f"An option is an Option, an (id, label) pair or a text; {given!r} is none.")


def _require_storable(request: OptionRequest) -> None:
    _require_name(request.id, "A request's id")
    _require_text(request.title, "A request's title", TITLE_CHARACTERS)
    _require_text(request.message, "A request's message", MESSAGE_CHARACTERS, may_be_empty=True)
    _require_text(request.session_id or "", "A session's id", NAME_CHARACTERS, may_be_empty=True)
    if not 0 < len(request.options) <= MOST_OPTIONS:
        raise ConfigurationError(f"A request has 1 to {MOST_OPTIONS} options, not {len(request.options)}.")
    for option in request.options:
        _require_name(option.id, "An option's id")
        _require_text(option.label, "An option's label", NAME_CHARACTERS)
    _require_unlike("option", [option.id for option in request.options])
    if len(request.grants) > MOST_TICKS:
        raise ConfigurationError(f"A request offers at most {MOST_TICKS} grants, not {len(request.grants)}.")
    for tick in request.grants:
        for text, what in ((tick.id, "A tick's id"), (tick.label, "A tick's label")):
            _require_text(text, what, TICK_CHARACTERS)
        _require_text(tick.warning, "A tick's warning", TICK_CHARACTERS, may_be_empty=True)
    _require_unlike("tick", [tick.id for tick in request.grants])


def _require_unlike(what: str, names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise ConfigurationError(f"Each {what} has an id of its own; these do not: {', '.join(names)}.")


def _require_text(text: object, what: str, limit: int, *, may_be_empty: bool = False) -> None:
    if not isinstance(text, str):
        raise ConfigurationError(f"{what} is a text; {text!r} is none.")
    if not text and not may_be_empty:
        raise ConfigurationError(f"{what} must not be empty.")
    if len(text) > limit:
        raise ConfigurationError(
            f"{what} has at most {grouped(limit)} characters, not {grouped(len(text))}. Shorten it."
        )


def _require_name(text: object, what: str) -> None:
    _require_text(text, what, NAME_CHARACTERS)
    if not str(text).isprintable():
        raise ConfigurationError(f"{what} has only characters that can be seen; {text!r} has others.")


def require_reason(reason: str) -> None:
    _require_text(reason, "A reason", REASON_CHARACTERS, may_be_empty=True)


def require_channel(channel: str) -> None:
    _require_name(channel, "A channel's name")


def _require_lifetime(seconds: object) -> None:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool) and math.isfinite(seconds)
    if not is_number or not 0 < seconds <= LONGEST_LIFE_SECONDS:  # type: ignore[operator]  # a number by now
        raise ConfigurationError(
            f"A request expires after a number of seconds above 0 and at most {LONGEST_LIFE_SECONDS}; "
            f"{seconds!r} is not."
        )


def _context_text(context: Mapping[str, Any]) -> str:
    if not isinstance(context, Mapping):
        raise ConfigurationError(f"A request's context is a mapping; {type(context).__name__} is none.")
    try:
        text = json.dumps(dict(context), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"A request's context must be JSON: {error}.") from error
    if len(text) > CONTEXT_CHARACTERS:
        raise ConfigurationError(
            f"A request's context has at most {grouped(CONTEXT_CHARACTERS)} characters as JSON, "
            f"not {grouped(len(text))}. Shorten it."
        )
    return text
