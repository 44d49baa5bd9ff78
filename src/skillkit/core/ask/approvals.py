"""A decision that asks -> a person's answer, valid for one question and kept as long as they meant it to hold.

Theory of operation. `answer_for` puts the question. While it is open, three things can end it without an answer of its
own: the caller's `cancel`; an equal question that is being put already, whose answer is shared unless it is a yes for
one run; and a word for the session, given meanwhile in this process or another one, that covers this run too.
`require_approved` then judges the answer, and `keep` spends a yes for one run, or keeps one for the session: in the
world's store, and for a session without a name in this object alone. A channel that stores its questions joins equal
ones of several processes in the same way (`store.requests`); those of one process never get that far.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from skillkit.core.exceptions import (
    ApprovalDeclinedError,
    ApprovalUnavailableError,
    ApprovalWaitingError,
    ScriptRefusedError,
    StateUnavailableError,
)
from skillkit.core.store.base import Store
from skillkit.core.store.trust import Approval, StandingApprovals, first_covering
from skillkit.core.values.bounds import Bounds, walls_digest
from skillkit.core.values.questions import (
    ANSWER_SECONDS,
    IN_SESSION,
    KEEPS,
    WALLS,
    Approver,
    Cancel,
    OptionAnswer,
    OptionRequest,
)
from skillkit.core.values.runs import Decision, PreparedRun, ScriptCommand, digest_of_commands
from skillkit.core.values.text import visible

__all__ = [
    "NO",
    "Approvals",
    "Cancellation",
    "declined",
    "in_time",
    "is_whole_list",
    "require_approved",
    "require_bounds",
    "unavailable",
    "with_what_is_kept",
]

LOOK_SECONDS = 0.02
STORE_LOOK_SECONDS = 0.5
REMEMBERED_ANSWERS = 10_000
ONCE, NO = "yes_once", "no"


class Cancellation:
    """Several reasons to stop asking as one."""

    def __init__(self, *reasons: Cancel | None) -> None:
        self._reasons = [reason for reason in reasons if reason is not None]

    def is_set(self) -> bool:
        return any(reason.is_set() for reason in self._reasons)


class _Coverage:
    """Whether a word for the session answers an open question; looked up now and then, and when one was given here."""

    def __init__(self, look: Callable[[], bool]) -> None:
        self._look = look
        self._is_found = False
        self._next_look = 0.0

    def look_again(self) -> None:
        self._next_look = 0.0

    def is_set(self) -> bool:
        if not self._is_found and time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + STORE_LOOK_SECONDS
            self._is_found = self._look()
        return self._is_found


class _Question:
    """One that is being asked; others with the same id wait for its answer."""

    def __init__(self) -> None:
        self.is_over = threading.Event()
        self.answer: OptionAnswer | None = None
        self.unavailable: ApprovalUnavailableError | None = None


class _EqualQuestions:
    """Equal questions at one time are put once. A yes for one run is for one of them, once; a no is for all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[tuple[str, object], _Question] = {}
        self._spent: dict[int, None] = {}

    def put(
        self, request: OptionRequest, approver: Approver, cancel: Cancel, is_for_one: Callable[[OptionAnswer], bool]
    ) -> OptionAnswer:
        key = _key_of(request)
        while True:
            with self._lock:
                earlier = self._asked.get(key)
                question = self._asked.setdefault(key, earlier or _Question())
            if earlier is None:
                return self._ask(request, question, approver, cancel)
            while not question.is_over.wait(LOOK_SECONDS):
                if cancel.is_set():
                    raise ApprovalUnavailableError("Not approved: the call was cancelled.", reasons=["cancelled"])
            if (problem := question.unavailable) is not None:
                raise _same_kind(problem)(str(problem), reasons=problem.reasons)
            if question.answer is not None and not is_for_one(question.answer):
                return question.answer

    def _ask(self, request: OptionRequest, question: _Question, approver: Approver, cancel: Cancel) -> OptionAnswer:
        try:
            answer = approver.ask(request, cancel)
            question.answer = replace(
                answer,
                request_id=answer.request_id or request.id,
                answered_at=answer.answered_at or time.time(),
            )
        except ApprovalUnavailableError as error:
            if not cancel.is_set():  # somebody else's cancellation is not a reason for those who wait
                question.unavailable = error
            raise
        else:
            return question.answer
        finally:
            with self._lock:
                del self._asked[_key_of(request)]
            question.is_over.set()

    def spend(self, answer: OptionAnswer) -> None:
        """Two answers to the same question differ in when they were given; handed in again, it is the same one.

        What is kept of each is a number, which is small; where two ever had the same one, the second is refused.
        """
        spent = hash((answer.request_id, answer.answered_at))
        with self._lock:
            if spent in self._spent:
                raise ScriptRefusedError.because("The answer was for one run and has been used", "Ask again.")
            self._spent[spent] = None
            if len(self._spent) > REMEMBERED_ANSWERS:
                del self._spent[next(iter(self._spent))]


def _key_of(request: OptionRequest) -> tuple[str, object]:
    """Equal questions are about the same places too, which their ids do not tell."""
    return request.id, request.context.get(WALLS)


class Approvals:
    """What one manager asks and remembers; what holds for a session is in the world's store."""

    def __init__(self, store: Store) -> None:
        self._is_shared = store.is_shared
        self.standing = StandingApprovals(store)
        self._questions = _EqualQuestions()
        self._lock = threading.Lock()
        self._coverable: set[_Coverage] = set()
        self._unnamed_session: dict[tuple[str, Path], Approval] = {}
        self._unnamed_on_load: dict[tuple[str, Path], tuple[str, Approval]] = {}

    def covering(self, command: ScriptCommand, bounds: Bounds) -> Approval | None:
        """The approval under which this content may run within these bounds, and what was ticked with it."""
        return first_covering(self._of_content(command), bounds, command.grants)

    def walls_of_content(self, command: ScriptCommand) -> list[Bounds | None]:
        """Within which this content was approved: where there are any, only they can be why a run is not covered."""
        return [each.walls for each in self._of_content(command)]

    def left_in_session(self, command: ScriptCommand) -> tuple[str, ...]:
        """What a person was offered for this content with a yes for the session, and did not tick."""
        return tuple(name for each in self._of_content(command) for name in each.left)

    def last_approved(self, command: ScriptCommand) -> Approval | None:
        """What a person approved last for longer than one run, to show what changed since."""
        kept = self._in_unnamed_session(command)
        return kept or self.standing.last_approved(command.skill_name, command.base_directory)

    def last_approved_digest(self, command: ScriptCommand) -> str | None:
        found = self.last_approved(command)
        return found.digest if found else None

    def answer_for(
        self, prepared: PreparedRun, approver: Approver | None, cancel: Cancel | None = None
    ) -> OptionAnswer | None:
        """A person's answer; None when, while they were asked, another one came to cover this too."""
        if approver is None or prepared.request is None:
            raise unavailable(prepared)
        request = prepared.request.asked(time.time(), getattr(approver, "expires_in", ANSWER_SECONDS))
        if self._is_shared:
            request = with_what_is_kept(request, prepared)
        covered = _Coverage(partial(self._is_covered, prepared))
        if prepared.is_coverable:
            with self._lock:
                self._coverable.add(covered)
        try:
            is_for_one = partial(_is_for_one_run, prepared)
            return self._questions.put(request, approver, Cancellation(covered, cancel), is_for_one)
        except ApprovalUnavailableError as error:
            if covered.is_set():
                return None
            raise unavailable(prepared, error) from error
        finally:
            with self._lock:
                self._coverable.discard(covered)

    def keep(self, prepared: PreparedRun, answer: OptionAnswer) -> None:
        """A word for one run is used up; one for the session is kept, and answers open questions about the same."""
        command = prepared.command
        if _is_for_one_run(prepared, answer):
            self._questions.spend(answer)
        if answer.option_id != IN_SESSION or prepared.within is None:
            return
        skill, folder, digest, channel = command.skill_name, command.base_directory, command.digest, answer.channel
        left = tuple(each for each in prepared.offered if each not in answer.grants)
        walls, ticks, when = prepared.within, prepared.ticks, answer.answered_at
        if command.session_id is None:
            word = Approval("session", None, skill, str(folder), digest, channel, when, walls, ticks, left)
            self._unnamed_session[skill, folder] = word
            if command.from_instructions:
                self._unnamed_on_load[skill, folder] = (command.from_instructions, word)
        elif not self._is_kept(prepared):
            self.standing.approve_in_session(
                command.session_id,
                skill=skill,
                folder=folder,
                digest=digest,
                channel=channel,
                walls=walls,
                ticks=ticks,
                left=left,
                on_load=command.from_instructions,
            )
        with self._lock:
            for question in self._coverable:
                question.look_again()

    def _is_kept(self, prepared: PreparedRun) -> bool:
        """In a shared world who answered has kept it already, and who asked may have no right to."""
        if not self._is_shared or prepared.bounds is None:
            return False
        content = (prepared.command.session_id, prepared.command.skill_name, prepared.command.digest)
        return self.standing.covering(*content, prepared.bounds) is not None

    def end_unnamed_session(self, skill: str | None) -> None:
        """Forgets the word for a session without a name, about one skill or all."""
        for name, folder in [*self._unnamed_session]:
            if skill in (None, name):
                self._unnamed_session.pop((name, folder), None)
                self._unnamed_on_load.pop((name, folder), None)

    def _in_unnamed_session(self, command: ScriptCommand) -> Approval | None:
        if command.session_id is not None:
            return None
        return self._unnamed_session.get((command.skill_name, command.base_directory))

    def _of_content(self, command: ScriptCommand) -> Iterator[Approval]:
        """What a person approved of this content in this session, within whichever walls.

        What a skill's text asks for is covered only by a word that was given when exactly these commands were shown.
        """
        kept, together = self._in_unnamed_session(command), command.from_instructions
        if together:
            place = (command.skill_name, command.base_directory)
            shown, word = self._unnamed_on_load.get(place, ("", None)) if kept else ("", None)
            kept = word if shown == together else None
        if kept is not None and kept.digest == command.digest:
            yield kept
        if together:
            yield from self.standing.on_load(command.session_id, command.skill_name, command.digest, together)
        else:
            yield from self.standing.of_content(command.session_id, command.skill_name, command.digest)

    def _is_covered(self, prepared: PreparedRun) -> bool:
        if prepared.bounds is None or not prepared.is_coverable:
            return False
        try:
            return self.covering(prepared.command, prepared.bounds) is not None
        except StateUnavailableError:
            return False


def with_what_is_kept(request: OptionRequest, prepared: PreparedRun, *, is_alone: bool = True) -> OptionRequest:
    """Who answers in a shared world keeps a yes for the session, where the question is about this run alone.

    Of a list of commands that a skill's text asks for, such a question shows one: unless that is the whole list, or it
    was shown together (not `is_alone`), the yes is no word about the list.
    """
    bounds, command = prepared.bounds, prepared.command
    if bounds is None or not prepared.is_coverable or request.context.get(WALLS) != walls_digest([bounds]):
        return request
    kept: dict[str, Any] = {
        "skill": command.skill_name,
        "digest": command.digest,
        "walls": bounds.to_text(),
        "on_load": command.from_instructions if not is_alone or is_whole_list(command) else "",
        "offered": {tick: [grant.id for grant in grants] for tick, grants in prepared.offered.items()},
    }
    return replace(request, context={**request.context, KEEPS: kept})


def is_whole_list(command: ScriptCommand) -> bool:
    """Whether the list of commands that it is part of has no other."""
    return command.from_instructions == digest_of_commands([(command.script_name, *command.script_arguments)])


def _is_for_one_run(prepared: PreparedRun, answer: OptionAnswer) -> bool:
    """What must be asked about every time is answered for one run, whatever else the answer is good for."""
    return answer.option_id == ONCE or (answer.option_id == IN_SESSION and not prepared.is_coverable)


def require_bounds(prepared: PreparedRun, bounds_of: Callable[[ScriptCommand], Bounds]) -> None:
    """What a person said yes to is a run within what they were shown; walls that became wider are another question."""
    if prepared.within is not None and not prepared.within.hold(bounds_of(prepared.command)):
        about = f"{prepared.command.skill_name}: {prepared.command.script_name} may not run."
        raise ScriptRefusedError.because("The walls are wider than those that were shown", "Ask again.", about=about)


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
        raise declined(prepared, answer)
    if answer.option_id not in (ONCE, IN_SESSION):
        reason = f"{answer.option_id!r} is no answer to this question"
        raise ScriptRefusedError.because(reason, f"Answer with one of: {ONCE}, {IN_SESSION}, {NO}.")


def declined(prepared: PreparedRun, answer: OptionAnswer) -> ApprovalDeclinedError:
    """What the person said with it stands at the end, for the model."""
    command, reason = prepared.command, f"Declined by a person ({answer.channel})."
    message = f"{command.skill_name}: {command.script_name} may not run. {reason}"
    said = visible(answer.reason.strip())
    told = f"{message} They said: {said}" if said else message
    return ApprovalDeclinedError(told, reasons=[reason, *([said] if said else [])], said=said)


def in_time(prepared: PreparedRun, answer: OptionAnswer | None) -> PreparedRun:
    """The same, refused where the answer came after the question had expired."""
    if answer is None or prepared.request is None or answer.answered_at <= prepared.request.expires_at:
        return prepared
    error = ScriptRefusedError.because("The answer came after the question had expired", "Ask again.")
    return replace(prepared, decision=Decision.DENY, reasons=error.reasons, error=error)


def unavailable(prepared: PreparedRun, problem: ApprovalUnavailableError | None = None) -> ApprovalUnavailableError:
    command = prepared.command
    why = "Nobody can be asked here." if problem is None else str(problem)
    return _same_kind(problem)(
        f"{command.skill_name}: {command.script_name} needs a person's approval. {why} {' '.join(prepared.reasons)}",
        reasons=prepared.reasons,
    )


def _same_kind(problem: ApprovalUnavailableError | None) -> type[ApprovalUnavailableError]:
    """A question that still waits is told from one that nobody will answer."""
    return ApprovalWaitingError if isinstance(problem, ApprovalWaitingError) else ApprovalUnavailableError
