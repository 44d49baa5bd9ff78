"""A question to whoever shares the world -> one answer, given by any process; the first one wins."""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from skillkit.core.decide import request_rows as rows
from skillkit.core.decide.deadlines import moment_now
from skillkit.core.decide.question_checks import (
    OptionLike,
    options_from,
    require_channel,
    require_lifetime,
    require_storable,
    written_context,
)
from skillkit.core.decide.request_rows import Question, Row
from skillkit.core.decide.trust import Approval, StandingApprovals
from skillkit.core.decide.watching import Waiter, Watcher
from skillkit.core.exceptions import (
    ApprovalUnavailableError,
    ConfigurationError,
    RequestClosedError,
    StateUnavailableError,
)
from skillkit.core.questions import Cancel, OptionAnswer, OptionRequest
from skillkit.core.state import StateStore, state_folder

__all__ = ["LIFETIME_SECONDS", "PastRequest", "World", "require_offered"]

LIFETIME_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class PastRequest:
    """A request that is over; what it carried as context is not kept."""

    request: OptionRequest
    outcome: str
    """answered, expired, withdrawn (the asker went on) or abandoned (the asker died)."""
    answer: OptionAnswer | None


class World:
    """Everything that shares one state folder: whoever asks here can be answered by any of its processes."""

    def __init__(self, state_dir: str | Path | None = None) -> None:
        self.folder = state_folder(state_dir)
        self._store = StateStore(self.folder)
        self._watchers: dict[int, Watcher] = {}

    def ask(
        self,
        title: str,
        message: str,
        options: Iterable[OptionLike],
        *,
        context: Mapping[str, Any] | None = None,
        session_id: str | None = None,
        expires_in: float = LIFETIME_SECONDS,
        cancel: Cancel | None = None,
    ) -> OptionAnswer:
        """Waits for a person's choice; ApprovalUnavailableError when nobody makes one in time."""
        name = secrets.token_hex(16)
        request = OptionRequest(name, title, message, options_from(options), context or {}, session_id)
        return self.ask_request(request, expires_in=expires_in, cancel=cancel)

    def ask_request(
        self,
        request: OptionRequest,
        *,
        expires_in: float = LIFETIME_SECONDS,
        single_use: Iterable[str] = (),
        cancel: Cancel | None = None,
    ) -> OptionAnswer:
        """Whoever asks the same id meanwhile waits for the same answer.

        An option in `single_use` goes to one of them; for the others the question is open again.
        """
        question = checked_question(request, expires_in, single_use, is_held=True)
        with self._store.transaction() as connection:
            now = moment_now()
            ticket = rows.joined(connection, question, now)
        return self._answer_for(Waiter(ticket, now.steady + expires_in, cancel))

    def open(
        self, request: OptionRequest, *, expires_in: float = LIFETIME_SECONDS, single_use: Iterable[str] = ()
    ) -> OptionRequest:
        """Makes it pending until it expires, whether somebody waits or not; `collect` or `wait` gets the answer."""
        question = checked_question(request, expires_in, single_use, is_held=False)
        with self._store.transaction() as connection:
            row = rows.row_at(connection, rows.opened(connection, question, moment_now()))
        return row.request if row is not None else request

    def wait(self, request_id: str, *, cancel: Cancel | None = None) -> OptionAnswer:
        """For the answer to a request that is open; it is there at once when it was given before."""
        with self._store.transaction() as connection:
            now = moment_now()
            row = rows.newest_row(connection, request_id)
            if row is None or not (row.state == rows.PENDING or row.waits_for_its_taker(now)):
                raise closed(request_id, row)
            ticket = rows.ticket_for(connection, row.seq, row.question(), now)
        return self._answer_for(Waiter(ticket, now.steady + row.life.remaining(now), cancel))

    def collect(self, request_id: str) -> OptionAnswer | None:
        """The answer to a request that was opened, once; None while there is none."""
        with self._erasing() as connection:
            row = rows.newest_row(connection, request_id)
            if row is None or not row.waits_for_its_taker(moment_now()):
                return None
            return rows.take(connection, row)

    def pending(self) -> list[OptionRequest]:
        """What can be answered now, the oldest first."""
        if not self._store.path.exists():
            return []
        with self._store.connection() as connection:
            now = moment_now()
            found = rows.pending_rows(connection)
            return [row.request for row in found if rows.is_alive(connection, row.life, now)]

    def pending_ids(self) -> list[tuple[int, str]]:
        """Number and id of what can be answered now, the oldest first; cheap, whatever the requests carry."""
        if not self._store.path.exists():
            return []
        with self._store.connection() as connection:
            return rows.pending_ids(connection, moment_now())

    def change_mark(self) -> tuple[int, int, int]:
        """Another value after every commit to the world's file, whoever made it; reads no table."""
        if not self._store.path.exists():
            return 0, 0, 0
        with self._store.connection() as connection:
            version = connection.execute("pragma data_version").fetchone()[0]
            return id(connection), version, connection.total_changes

    def find(self, request_id: str) -> OptionRequest | PastRequest | None:
        """The request while it can be answered, then what became of it; the newest of its id."""
        if not self._store.path.exists():
            return None
        with self._erasing() as connection:
            rows.close_dead(connection, moment_now())
            row = rows.newest_row(connection, request_id)
        if row is None or row.state == rows.PENDING:
            return None if row is None else row.request
        return PastRequest(row.request, row.state, row.answer)

    def answer(self, request_id: str, option_id: str, channel: str, *, created_at: float | None = None) -> OptionAnswer:
        """The first answer wins; RequestClosedError says who was first, or why it is too late.

        With `created_at`, the answer is for the question that was asked at that moment and for no later one.
        """
        require_channel(channel)
        if not self._store.path.exists():
            raise closed(request_id, None)
        with self._erasing() as connection:
            rows.close_dead(connection, moment_now())
            row = rows.newest_row(connection, request_id)
            if row is None or row.state != rows.PENDING:
                connection.execute("commit")
                raise closed(request_id, row)
            if created_at not in (None, row.request.created_at):
                raise RequestClosedError(
                    f"The request {request_id!r} was asked anew meanwhile. Look at it again.", request_id=request_id
                )
            require_offered(row.request, option_id)
            answer = OptionAnswer(option_id, channel, time.time(), request_id)
            rows.write_answer(connection, row.seq, answer)
        self._watcher().look_now()
        return answer

    def history(self, limit: int = 100) -> list[PastRequest]:
        """What is over, the newest first."""
        if not self._store.path.exists():
            return []
        with self._erasing() as connection:
            rows.close_dead(connection, moment_now())
            past = rows.past_rows(connection, limit)
        return [PastRequest(row.request, row.state, row.answer) for row in past]

    def session_approvals(self) -> list[Approval]:
        """What a person approved for a session and still holds."""
        return StandingApprovals(self._store).in_sessions()

    def end_session_approvals(self, *, skill: str | None = None, session_id: str | None = None) -> list[Approval]:
        """What does not hold any more: of one skill or all of them, in one session or in every one."""
        return StandingApprovals(self._store).end_in_sessions(skill=skill, session_id=session_id)

    def close(self) -> None:
        """Lets go of the file; the next use opens it again."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _erasing(self) -> Iterator[sqlite3.Connection]:
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

    def _answer_for(self, waiter: Waiter) -> OptionAnswer:
        """Sleeps until there is an answer this asker may take; goes with an error when its time is over."""
        while True:
            try:
                self._watcher().sleep(waiter)
                settled = self._settled(waiter)
            except BaseException:
                with suppress(StateUnavailableError), self._erasing() as connection:
                    rows.leave(connection, waiter.ticket, moment_now())
                raise
            if settled is None:
                raise unanswered(waiter.ticket.question.request, is_cancelled=waiter.is_cancelled)
            if isinstance(settled, OptionAnswer):
                return settled
            waiter = settled

    def _settled(self, waiter: Waiter) -> OptionAnswer | Waiter | None:
        """The answer; or a new place in the queue when another asker took what was for one; or None: time to go."""
        ticket, ends, is_done = waiter.ticket, waiter.ends, waiter.is_done
        with self._erasing() as connection:
            now = moment_now()
            row = rows.row_at(connection, ticket.seq)
            if row is not None and row.answer is not None:
                answer = rows.take(connection, row, ticket.question.single_use)
                ends = now.steady + ticket.question.lifetime
            else:
                answer = None
            if answer is None and row is not None and row.state == rows.PENDING and not is_done:
                return Waiter(ticket, ends, waiter.cancel)
            rows.leave(connection, ticket, now)
            if answer is not None or is_done:
                return answer
            return Waiter(rows.joined(connection, ticket.question, now), ends, waiter.cancel)

    def _watcher(self) -> Watcher:
        """Threads and locks do not come through a fork, so each process has one of its own."""
        return self._watchers.setdefault(os.getpid(), Watcher(self._store))


def checked_question(
    request: OptionRequest, expires_in: float, single_use: Iterable[str], *, is_held: bool
) -> Question:
    require_storable(request)
    require_lifetime(expires_in)
    return Question(request, written_context(request.context), expires_in, tuple(single_use), is_held)


def require_offered(request: OptionRequest, option_id: str) -> None:
    offered = [option.id for option in request.options]
    if option_id not in offered:
        raise ConfigurationError(
            f"{option_id!r} is no option of the request {request.id}. Answer with one of: {', '.join(offered)}."
        )


def closed(request_id: str, row: Row | None) -> RequestClosedError:
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


def unanswered(request: OptionRequest, *, is_cancelled: bool) -> ApprovalUnavailableError:
    reason = "the question was cancelled" if is_cancelled else "nobody answered in time"
    return ApprovalUnavailableError(
        f"{request.title} Not approved: {reason}. Ask again when somebody is there.", reasons=[reason]
    )
