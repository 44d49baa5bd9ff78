"""A decision that asks -> a person's answer, valid for one question and kept as long as they meant it to hold."""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from skillkit.core.bounds import Bounds
from skillkit.core.decide import StandingApprovals
from skillkit.core.exceptions import (
    ApprovalDeclinedError,
    ApprovalUnavailableError,
    ScriptRefusedError,
    StateUnavailableError,
)
from skillkit.core.questions import ANSWER_SECONDS, Approver, Cancel, OptionAnswer, OptionRequest
from skillkit.core.runs import Decision, PreparedRun, ScriptCommand
from skillkit.core.state import StateStore

__all__ = ["Approving", "Cancellation", "in_time", "require_approved", "require_bounds", "unavailable"]

LOOK_SECONDS = 0.02
STORE_LOOK_SECONDS = 0.5
REMEMBERED_ANSWERS = 10_000
ONCE, IN_SESSION, NO = "yes_once", "yes_in_session", "no"


class Cancellation:
    """Several reasons to stop asking as one."""

    def __init__(self, *reasons: Cancel | None, wakeup_fd: int | None = None) -> None:
        self._reasons = [reason for reason in reasons if reason is not None]
        self._wakeup_fd = wakeup_fd

    def is_set(self) -> bool:
        if any(reason.is_set() for reason in self._reasons):
            return True
        return self._wakeup_fd is not None and is_readable(self._wakeup_fd)


class _Coverage:
    """Whether a word for the session, given meanwhile in this process or another one, answers an open question."""

    def __init__(self, look: Callable[[], bool]) -> None:
        self._look = look
        self._is_found = threading.Event()
        self._next_look = 0.0

    def found(self) -> None:
        self._is_found.set()

    def is_set(self) -> bool:
        if not self._is_found.is_set() and time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + STORE_LOOK_SECONDS
            if self._look():
                self._is_found.set()
        return self._is_found.is_set()


class _Question:
    """One that is being asked; others with the same id wait for its answer."""

    def __init__(self) -> None:
        self.is_over = threading.Event()
        self.answer: OptionAnswer | None = None
        self.unavailable: ApprovalUnavailableError | None = None


class Approving:
    """What one manager asks and remembers; what holds for a session is in the world's store."""

    def __init__(self, store: StateStore) -> None:
        self.standing = StandingApprovals(store)
        self._lock = threading.Lock()
        self._asked: dict[str, _Question] = {}
        self._coverable: dict[_Coverage, PreparedRun] = {}
        self._unnamed_session: dict[tuple[str, Path], tuple[str, str, Bounds]] = {}
        self._spent: dict[tuple[str, float], None] = {}

    def covering(self, command: ScriptCommand, bounds: Bounds) -> tuple[str, str] | None:
        """The kind of approval under which this content may run within these bounds, and its channel."""
        kept = self._unnamed_session.get(place(command)) if command.session_id is None else None
        if kept is not None and kept[0] == command.digest and kept[2].hold(bounds):
            return "session", kept[1]
        found = self.standing.covering(command.session_id, command.skill_name, command.digest, bounds)
        return (found.kind, found.channel) if found else None

    def walls_of_content(self, command: ScriptCommand) -> list[Bounds | None]:
        """Within which this content was approved: where there are any, only they can be why a run is not covered."""
        kept = self._unnamed_session.get(place(command)) if command.session_id is None else None
        own = [kept[2]] if kept is not None and kept[0] == command.digest else []
        found = self.standing.of_content(command.session_id, command.skill_name, command.digest)
        return [*own, *(each.walls for each in found)]

    def last_approved_digest(self, command: ScriptCommand) -> str | None:
        """Of what a person approved last for longer than one run, to show what changed since."""
        kept = self._unnamed_session.get(place(command)) if command.session_id is None else None
        return kept[0] if kept else self.standing.last_approved_digest(command.skill_name, command.base_directory)

    def answer_for(
        self, prepared: PreparedRun, approver: Approver | None, cancel: Cancel | None = None
    ) -> OptionAnswer | None:
        """A person's answer; None when, while they were asked, another one came to cover this too."""
        if approver is None or prepared.request is None:
            raise unavailable(prepared)
        request = prepared.request.asked(time.time(), getattr(approver, "expires_in", ANSWER_SECONDS))
        with self._covered_meanwhile(prepared) as covered:
            stop = Cancellation(covered, cancel)
            try:
                return self._joined(prepared, request, lambda: approver.ask(request, stop), stop)
            except ApprovalUnavailableError as error:
                if covered.is_set():
                    return None
                raise unavailable(prepared, error) from error

    def keep(self, prepared: PreparedRun, answer: OptionAnswer) -> None:
        """A word for one run is used up; one for the session is kept, and answers open questions about the same."""
        command = prepared.command
        if is_for_one_run(prepared, answer):
            self._spend(answer)
        if answer.option_id != IN_SESSION or prepared.bounds is None:
            return
        if command.session_id is None:
            self._unnamed_session[place(command)] = (command.digest, answer.channel, prepared.bounds)
        else:
            self.standing.approve_in_session(
                command.session_id,
                skill=command.skill_name,
                folder=command.base_directory,
                digest=command.digest,
                channel=answer.channel,
                walls=prepared.bounds,
            )
        with self._lock:
            for open_question, asking in self._coverable.items():
                if is_about_the_same(asking, prepared):
                    open_question.found()

    def end_unnamed_session(self, skill: str | None) -> None:
        """Forgets the word for a session without a name, about one skill or all."""
        for name, folder in [*self._unnamed_session]:
            if skill in (None, name):
                self._unnamed_session.pop((name, folder), None)

    def _spend(self, answer: OptionAnswer) -> None:
        """Two answers to the same question differ in when they were given; handed in again, it is the same one."""
        spent = (answer.request_id, answer.answered_at)
        with self._lock:
            if spent in self._spent:
                reason = "The answer was for one run and has been used"
                raise ScriptRefusedError(f"{reason}. Ask again.", reasons=[reason])
            self._spent[spent] = None
            if len(self._spent) > REMEMBERED_ANSWERS:
                del self._spent[next(iter(self._spent))]

    @contextmanager
    def _covered_meanwhile(self, prepared: PreparedRun) -> Iterator[_Coverage]:
        bounds = prepared.bounds if prepared.is_coverable else None

        def look() -> bool:
            if bounds is None:
                return False
            try:
                return self.covering(prepared.command, bounds) is not None
            except StateUnavailableError:
                return False

        covered = _Coverage(look)
        if prepared.is_coverable:
            with self._lock:
                self._coverable[covered] = prepared
        try:
            yield covered
        finally:
            with self._lock:
                self._coverable.pop(covered, None)

    def _joined(
        self, prepared: PreparedRun, request: OptionRequest, ask: Callable[[], OptionAnswer], cancel: Cancel
    ) -> OptionAnswer:
        """Equal questions at one time are put once. A yes for one run is for one of them; a no is for all."""
        while True:
            with self._lock:
                earlier = self._asked.get(request.id)
                question = self._asked.setdefault(request.id, earlier or _Question())
            if earlier is None:
                return self._asked_once(request, question, ask, cancel)
            while not question.is_over.wait(LOOK_SECONDS):
                if cancel.is_set():
                    raise ApprovalUnavailableError("Not approved: the call was cancelled.", reasons=["cancelled"])
            if question.unavailable is not None:
                raise ApprovalUnavailableError(str(question.unavailable), reasons=question.unavailable.reasons)
            if question.answer is not None and not is_for_one_run(prepared, question.answer):
                return question.answer

    def _asked_once(
        self, request: OptionRequest, question: _Question, ask: Callable[[], OptionAnswer], cancel: Cancel
    ) -> OptionAnswer:
        try:
            answer = ask()
            question.answer = replace(
                answer,
                request_id=answer.request_id or request.id,
                answered_at=answer.answered_at or time.time(),
            )
        except ApprovalUnavailableError as error:
            if not cancel.is_set():  # somebody else's cancellation is no reason for those who wait
                question.unavailable = error
            raise
        else:
            return question.answer
        finally:
            with self._lock:
                del self._asked[request.id]
            question.is_over.set()


def is_readable(descriptor: int) -> bool:
    """Whatever its number, which `select` cannot say."""
    if not hasattr(select, "poll"):  # Windows cannot look at a pipe
        return False
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    return bool(poller.poll(0))


def is_for_one_run(prepared: PreparedRun, answer: OptionAnswer) -> bool:
    """What must be asked about every time is answered for one run, whatever else the answer is good for."""
    return answer.option_id == ONCE or (answer.option_id == IN_SESSION and not prepared.is_coverable)


def place(command: ScriptCommand) -> tuple[str, Path]:
    return command.skill_name, command.base_directory


def is_about_the_same(asking: PreparedRun, approved: PreparedRun) -> bool:
    """Whether a word for the session about one answers the other too."""
    if asking.bounds is None or approved.bounds is None or not approved.bounds.hold(asking.bounds):
        return False
    ours, theirs = asking.command, approved.command
    is_same_content = (place(ours), ours.digest) == (place(theirs), theirs.digest)
    return is_same_content and ours.session_id == theirs.session_id


def require_bounds(prepared: PreparedRun, bounds_of: Callable[[ScriptCommand], Bounds]) -> None:
    """What a person said yes to is a run within what they were shown; walls that became wider are another question."""
    if prepared.bounds is not None and not prepared.bounds.hold(bounds_of(prepared.command)):
        command, reason = prepared.command, "The walls are wider than those that were shown"
        raise ScriptRefusedError(
            f"{command.skill_name}: {command.script_name} may not run. {reason}. Ask again.", reasons=[reason]
        )


def require_approved(prepared: PreparedRun, answer: OptionAnswer | None) -> None:
    """ALLOW needs no answer, DENY has none; else a yes of a person to exactly this question."""
    if prepared.decision is Decision.ALLOW:
        return
    if prepared.decision is Decision.DENY:
        raise prepared.error or ScriptRefusedError(f"Refused. {' '.join(prepared.reasons)}", reasons=prepared.reasons)
    if answer is None:
        raise unavailable(prepared)
    if prepared.request is None or answer.request_id != prepared.request.id:
        reason = "The answer belongs to another question"
        raise ScriptRefusedError(
            f"{reason}: skill, script, arguments or walls are not those that were shown. Ask again.", reasons=[reason]
        )
    if answer.option_id == NO:
        command, reason = prepared.command, f"Declined by a person ({answer.channel})."
        raise ApprovalDeclinedError(
            f"{command.skill_name}: {command.script_name} may not run. {reason}", reasons=[reason]
        )
    if answer.option_id not in (ONCE, IN_SESSION):
        reason = f"{answer.option_id!r} is no answer to this question"
        raise ScriptRefusedError(f"{reason}. Answer with one of: {ONCE}, {IN_SESSION}, {NO}.", reasons=[reason])


def in_time(prepared: PreparedRun, answer: OptionAnswer | None) -> PreparedRun:
    """The same, refused where the answer came after the question had expired."""
    if answer is None or prepared.request is None or answer.answered_at <= prepared.request.expires_at:
        return prepared
    reason = "The answer came after the question had expired"
    error = ScriptRefusedError(f"{reason}. Ask again.", reasons=[reason])
    return replace(prepared, decision=Decision.DENY, reasons=(reason,), error=error)


def unavailable(prepared: PreparedRun, problem: ApprovalUnavailableError | None = None) -> ApprovalUnavailableError:
    command = prepared.command
    why = "Nobody can be asked here." if problem is None else str(problem)
    return ApprovalUnavailableError(
        f"{command.skill_name}: {command.script_name} needs a person's approval. {why} {' '.join(prepared.reasons)}",
        reasons=prepared.reasons,
    )
