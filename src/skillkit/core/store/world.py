"""A question to whoever shares the world -> one answer, given by any process; the first one wins."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from skillkit.core.exceptions import ApprovalUnavailableError, StateUnavailableError
from skillkit.core.store.base import ChangeMark, steady_seconds
from skillkit.core.store.opening import open_store
from skillkit.core.store.processes import own_mark
from skillkit.core.store.request_rows import Ticket
from skillkit.core.store.requests import (
    OptionLike,
    PastRequest,
    Requests,
    options_from,
    question_from,
    require_channel,
    require_reason,
)
from skillkit.core.store.running import Output, RunningRun, RunningRuns
from skillkit.core.store.state import state_folder
from skillkit.core.store.subscription import LOOK_SECONDS, Subscriber, Subscription
from skillkit.core.store.trust import Approval, StandingApprovals
from skillkit.core.values.needs import Grant
from skillkit.core.values.questions import NO, ORDERED, Cancel, OptionAnswer, OptionRequest, grant_ids

__all__ = ["LIFETIME_SECONDS", "World"]

LIFETIME_SECONDS = 300.0


class World:
    """Everything that shares one state folder: whoever asks here can be answered by any of its processes."""

    def __init__(self, state_dir: str | Path | None = None, *, state: str | None = None) -> None:
        """`state` is the address of a shared world, else `$SKILLKIT_STATE`."""
        self.folder = state_folder(state_dir)
        self.state = state
        self._store = open_store(self.folder, state)
        self.place = self._store.place if self._store.is_shared else str(self.folder)
        """What people know it by."""
        self._requests = Requests(self._store)
        self._subscriptions: dict[int, Subscription] = {}

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
        question = question_from(request, expires_in, single_use, is_held=True)
        return self._answer_for(self._requests.join(question), cancel)

    def open(
        self,
        request: OptionRequest,
        *,
        expires_in: float = LIFETIME_SECONDS,
        single_use: Iterable[str] = (),
        ends_with_us: bool = False,
    ) -> OptionRequest:
        """Makes it pending until it expires, whether somebody waits or not; `collect` or `wait` gets the answer.

        With `ends_with_us` it ends with this process too: nobody else would take the answer, which is kept ten minutes.
        """
        owner = own_mark() if ends_with_us else ""
        return self._requests.open(question_from(request, expires_in, single_use, is_held=False, owner=owner))

    def wait(self, request_id: str, *, cancel: Cancel | None = None) -> OptionAnswer:
        """For the answer to a request that is open; it is there at once when it was given before."""
        return self._answer_for(self._requests.rejoin(request_id), cancel)

    def collect(self, request_id: str) -> OptionAnswer | None:
        """The answer to a request that was opened, once; None while there is none."""
        return self._requests.collect(request_id)

    def pending(self, limit: int | None = None, *, is_patient: bool = False) -> list[OptionRequest]:
        """What can be answered now, the oldest first; all of it, or so many.

        Of runs elsewhere as they may be shown: a question that does not show its run says so, and takes only a no.
        Where many are new, those that were not looked at yet say that, unless `is_patient`.
        """
        return self._shown(self._requests.pending(limit), is_list=not is_patient)

    def pending_ids(self) -> list[tuple[int, str]]:
        """Number and id of what can be answered now, the oldest first; cheap, whatever the requests carry."""
        return self._requests.pending_ids()

    def change_mark(self) -> ChangeMark:
        """Another value after every commit to the world's file, whoever made it; reads no table."""
        return self._store.change_mark()

    def wait_for_change(self, mark: ChangeMark | None, seconds: float, cancel: Cancel | None = None) -> ChangeMark:
        """The mark as soon as it is another than this one; the same when time is over or `cancel` is set.

        Time alone ends a request too, and no commit tells of it: who follows what is pending looks again now and then.
        """
        until = steady_seconds() + seconds
        while (now := self.change_mark()) == mark and (left := until - steady_seconds()) > 0:
            if cancel is not None and cancel.is_set():
                break
            time.sleep(min(left, LOOK_SECONDS))
        return now

    def find(self, request_id: str) -> OptionRequest | PastRequest | None:
        """The request while it can be answered, as it may be shown; then what became of it; the newest of its id."""
        found = self._requests.find(request_id)
        return self._shown([found], is_list=False)[0] if isinstance(found, OptionRequest) else found

    def pending_mark(self) -> object:
        """Another value when more of what is pending may be shown, though nothing in the store changed."""
        return _fleet("shown").news() if self._store.is_shared else 0

    def answer(
        self,
        request_id: str,
        option_id: str,
        channel: str,
        *,
        grants: Iterable[str | Grant] = (),
        reason: str = "",
        created_at: float | None = None,
    ) -> OptionAnswer:
        """The first answer wins; RequestClosedError says who was first, or why it is too late.

        `grants` are ticked of what the request offers; a `reason` with a no is told to the model. With `created_at`,
        the answer is for the question that was asked at that moment and for no later one.
        """
        require_channel(channel)
        require_reason(reason)
        ticked = grant_ids(grants)
        seen = self._seen_true(request_id) if request_id.startswith(ORDERED) and option_id != NO else None
        answer = self._requests.answer(
            request_id, option_id, channel, created_at, grants=ticked, reason=reason, seen=seen
        )
        self._subscription().look_now()
        return answer

    def history(self, limit: int = 100) -> list[PastRequest]:
        """What is over, the newest first."""
        return self._requests.past(limit)

    def session_approvals(self) -> list[Approval]:
        """What a person approved for a session and still holds."""
        return StandingApprovals(self._store).in_sessions()

    def end_session_approvals(self, *, skill: str | None = None, session_id: str | None = None) -> list[Approval]:
        """What does not hold any more: of one skill or all of them, in one session or in every one."""
        return StandingApprovals(self._store).end_in_sessions(skill=skill, session_id=session_id)

    def running(self, *, with_ended: bool = False) -> list[RunningRun]:
        """Runs of any process that go on and used a host or were approved on the page, with what they reached so far.

        With `with_ended` also those that ended within ten minutes and wrote something that the page shows.
        """
        return RunningRuns(self._store).all(with_ended=with_ended)

    def output_of(self, run: int) -> Output:
        """The last that a run of this number wrote; nothing unless it was approved on the page."""
        return RunningRuns(self._store).output_of(run)

    def close(self) -> None:
        """Lets go of the file; the next use opens it again."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _answer_for(self, ticket: Ticket, cancel: Cancel | None) -> OptionAnswer:
        """Sleeps until there is an answer this asker may take; goes with an error when its time is over."""
        while True:
            subscriber = Subscriber(ticket, cancel)
            try:
                self._subscription().sleep(subscriber)
                settled = self._requests.settle(ticket, is_done=subscriber.is_done)
            except BaseException:
                with suppress(StateUnavailableError):
                    self._requests.leave(ticket)
                raise
            if isinstance(settled, OptionAnswer):
                return settled
            if settled is None:
                reason = "the question was cancelled" if subscriber.is_cancelled else "nobody answered in time"
                remedy, about = "Ask again when somebody is there.", ticket.question.request.title
                raise ApprovalUnavailableError.because(reason, remedy, about=about)
            ticket = settled

    def _seen_true(self, request_id: str) -> OptionRequest | None:
        """Of a run elsewhere: the question, which shows what would run. Who answers looks, for who asks may lie."""
        asked = self._requests.find(request_id)
        if not isinstance(asked, OptionRequest) or not self._store.is_shared:
            return None
        _fleet("showing").require_true(self._store, asked)
        return asked

    def _shown(self, requests: list[OptionRequest], *, is_list: bool) -> list[OptionRequest]:
        """Who asks about runs elsewhere may lie, so nobody sees what was not looked at."""
        is_told = any(each.id.startswith(ORDERED) or each.is_about_scripts for each in requests)
        if not (self._store.is_shared and is_told):
            return requests
        shown: list[OptionRequest] = _fleet("shown").as_may_be_shown(self._store, requests, is_list=is_list)
        return shown

    def _subscription(self) -> Subscription:
        """Threads and locks do not come through a fork, so each process has one of its own."""
        return self._subscriptions.setdefault(os.getpid(), Subscription(self._store, self._requests))


def _fleet(module: str) -> Any:  # noqa: ANN401 - above the core, known by its name alone
    return import_module(f"skillkit.fleet.{module}")
