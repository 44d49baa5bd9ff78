"""Several runs that one skill asks for -> one question to a person, then each run by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

from skillkit.core.approving import Cancellation, unavailable
from skillkit.core.decide import joint_request
from skillkit.core.exceptions import ApprovalUnavailableError, ContentChangedError, ScriptRefusedError, SkillKitError
from skillkit.core.flow import Flow, OnOutput
from skillkit.core.models import Skill
from skillkit.core.questions import Approver, OptionAnswer
from skillkit.core.resolve import CallArguments
from skillkit.core.runs import Decision, PreparedRun, ScriptExecutionResult

__all__ = ["Outcome", "execute_together"]

Outcome = ScriptExecutionResult | SkillKitError
"""How a run ended, or why there was none."""


def execute_together(
    flow: Flow,
    skill: Skill,
    calls: Sequence[CallArguments],
    *,
    approver: Approver | None = None,
    cancel: threading.Event | None = None,
    on_output: OnOutput | None = None,
    wakeup_fd: int | None = None,
) -> list[Outcome]:
    """One outcome for each call, in order; whatever happens to one, the others go on."""
    stop = Cancellation(cancel, wakeup_fd=wakeup_fd)
    runs = [prepared_or_error(flow, skill, call) for call in calls]
    try:
        answers = answers_to(flow, runs, approver or flow.approver, stop)
        if answers is None:  # somebody's word for the session covers them by now
            runs = [prepared_or_error(flow, skill, call) for call in calls]
            answers = {}
        problem = None
    except SkillKitError as error:
        answers, problem = {}, error
    outcomes: list[Outcome] = []
    for run in runs:
        try:
            if isinstance(run, SkillKitError):
                raise run
            if stop.is_set():
                flow.record_refusal(cancelled(run), run)
            answer = None if run.request is None else answers.get(run.request.id)
            if run.decision is Decision.ASK and answer is None:
                flow.record_refusal(unanswered(run, problem), run)
            outcomes.append(flow.complete(run, answer, cancel=cancel, on_output=on_output, wakeup_fd=wakeup_fd))
        except SkillKitError as error:
            outcomes.append(error)
    return outcomes


def unanswered(run: PreparedRun, problem: SkillKitError | None) -> SkillKitError:
    """Why this one does not run; what kept the question from being asked is the same for all."""
    if problem is not None and not isinstance(problem, ApprovalUnavailableError):
        return problem
    cause = problem.__cause__ if problem is not None else None
    return unavailable(run, cause if isinstance(cause, ApprovalUnavailableError) else None)


def prepared_or_error(flow: Flow, skill: Skill, call: CallArguments) -> PreparedRun | SkillKitError:
    try:
        return flow.prepare(skill, call)
    except SkillKitError as error:
        try:
            flow.record_unresolved(error, skill.name, call)
        except SkillKitError as recorded:
            return recorded


def answers_to(
    flow: Flow, runs: Sequence[PreparedRun | SkillKitError], approver: Approver | None, stop: Cancellation
) -> dict[str, OptionAnswer] | None:
    """For each run that asks, the answer under its own request's id; None where all are covered meanwhile."""
    asking = [run for run in runs if isinstance(run, PreparedRun) and run.decision is Decision.ASK]
    if not asking:
        return {}
    question = asking[0] if len(asking) == 1 else joint_question(flow, asking)
    answer = flow.approving.answer_for(question, approver, stop)
    if answer is None:
        return None
    if question.request is None or answer.request_id != question.request.id:
        return {}  # an answer to something else is none
    return dict(derived(asking, answer))


def derived(runs: Sequence[PreparedRun], answer: OptionAnswer) -> Iterator[tuple[str, OptionAnswer]]:
    for run in runs:
        if run.request is not None:
            yield run.request.id, replace(answer, request_id=run.request.id)


def joint_question(flow: Flow, runs: Sequence[PreparedRun]) -> PreparedRun:
    """The first run with the question about all of them, and every reason once."""
    if len({run.command.digest for run in runs}) > 1:
        reason = f"{runs[0].command.skill_name} changed while it was looked at"
        raise ContentChangedError(f"{reason}, so nobody was asked. Load it again.", reasons=[reason])
    reasons = tuple(dict.fromkeys(reason for run in runs for reason in run.reasons))
    prompt = flow.prompt([run.command for run in runs], reasons)
    return replace(
        runs[0],
        reasons=reasons,
        request=joint_request(runs, prompt),
        is_coverable=all(run.is_coverable for run in runs),
    )


def cancelled(run: PreparedRun) -> ScriptRefusedError:
    reason = "the call was cancelled before it started"
    command = run.command
    return ScriptRefusedError(f"{command.skill_name}: {command.script_name} did not run: {reason}.", reasons=[reason])
