"""Several runs that one skill asks for -> one question to a person, then each run by itself.

Where a question is about one run alone, as it is where runs happen on workers, each is asked about by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from skillkit.core.ask.approvals import NO, declined, unavailable
from skillkit.core.ask.questions import joint_request
from skillkit.core.exceptions import ApprovalUnavailableError, ContentChangedError, ScriptRefusedError, SkillKitError
from skillkit.core.models import Skill
from skillkit.core.resolve import CallArguments
from skillkit.core.values.questions import Approver, OptionAnswer, OptionRequest, Prompt
from skillkit.core.values.runs import NO_CONTROL, Decision, PreparedRun, RunControl, ScriptExecutionResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.flow import Flow

__all__ = ["Outcome", "batch_question", "execute_batch"]

Outcome = ScriptExecutionResult | SkillKitError
"""How a run ended, or why there was none."""

Result = TypeVar("Result")


def execute_batch(
    flow: Flow,
    skill: Skill,
    calls: Sequence[CallArguments],
    control: RunControl = NO_CONTROL,
    *,
    approver: Approver | None = None,
    answer: OptionAnswer | None = None,
    may_ask: bool = True,
) -> list[Outcome | None]:
    """One outcome for each call, in order; whatever happens to one, the others go on.

    With an `answer` to the question about them, nobody is asked. Without `may_ask`, what needs a person's word is left
    out: its outcome is None.
    """
    if answer is None and not flow.asks_together:
        alone = partial(_execute_alone, flow, skill, control=control, approver=approver, may_ask=may_ask)
        return [_result_or_error(partial(alone, call)) for call in calls]
    answers: dict[str, OptionAnswer] | None = {}
    problem = None
    runs: list[PreparedRun | SkillKitError | None] = [*_prepare_all(flow, skill, calls)]
    if not may_ask:
        runs = [None if isinstance(run, PreparedRun) and run.decision is Decision.ASK else run for run in runs]
    try:
        answers = _ask(flow, runs, approver or flow.approver, control, answer)
        if answers is None:  # somebody's word for the session covers them by now
            runs = [*_prepare_all(flow, skill, calls)]
    except SkillKitError as error:
        problem = error

    # What is ticked is given to the skill, whichever of its scripts needs it.
    asked = [run for run in runs if isinstance(run, PreparedRun)]
    offered = {name: grants for run in asked for name, grants in run.offered.items()}

    def complete(run: PreparedRun) -> ScriptExecutionResult:
        if control.is_set():
            flow.record_refusal(_cancelled(run), run)
        if answer is not None and answer.option_id == NO and run.decision is not Decision.DENY:
            flow.record_refusal(declined(run, answer), run, answer)  # a no needs no question to be one
        own = (answers or {}).get(run.request.id) if run.request is not None else None
        if run.decision is Decision.ASK and own is None:
            flow.record_refusal(_unanswered(run, problem), run)
        return flow.complete(replace(run, offered=offered), own, control)

    return [_result_or_error(partial(complete, run)) if isinstance(run, PreparedRun) else run for run in runs]


def _execute_alone(
    flow: Flow,
    skill: Skill,
    call: CallArguments,
    *,
    control: RunControl,
    approver: Approver | None,
    may_ask: bool,
) -> ScriptExecutionResult | None:
    """With a question of its own; None where there would be one and nobody is to be asked."""
    if not may_ask:
        found = _result_or_error(partial(flow.prepare, skill, call))
        if isinstance(found, PreparedRun) and found.decision is Decision.ASK:
            return None
    return flow.execute(skill, call, control, approver=approver)


def batch_question(flow: Flow, skill: Skill, calls: Sequence[CallArguments]) -> OptionRequest | None:
    """What a person is asked before these run; None where there is nothing to ask. Nothing is recorded."""
    asking = _asking([_result_or_error(partial(flow.prepare, skill, call)) for call in calls])
    request = _question(flow, asking).request if asking else None
    return None if request is None else request.asked(time.time())


def _result_or_error(act: Callable[[], Result]) -> Result | SkillKitError:
    try:
        return act()
    except SkillKitError as error:
        return error


def _prepare_all(flow: Flow, skill: Skill, calls: Sequence[CallArguments]) -> list[PreparedRun | SkillKitError]:
    """Without effects, but for the record of what cannot even be resolved."""

    def prepare(call: CallArguments) -> PreparedRun:
        try:
            return flow.prepare(skill, call)
        except SkillKitError as error:
            flow.record_unresolved(error, skill.name, call)

    return [_result_or_error(partial(prepare, call)) for call in calls]


def _asking(runs: Sequence[PreparedRun | SkillKitError | None]) -> list[PreparedRun]:
    return [run for run in runs if isinstance(run, PreparedRun) and run.decision is Decision.ASK]


def _ask(
    flow: Flow,
    runs: Sequence[PreparedRun | SkillKitError | None],
    approver: Approver | None,
    control: RunControl,
    given: OptionAnswer | None,
) -> dict[str, OptionAnswer] | None:
    """For each run that asks, the answer under its own request's id; None where all are covered meanwhile."""
    asking = _asking(runs)
    if not asking:
        return {}
    question = _question(flow, asking)
    answer = given or flow.approvals.answer_for(question, approver, control)
    if answer is None:
        return None
    ids = [run.request.id for run in asking if run.request is not None]
    if question.request is None or answer.request_id != question.request.id:
        # An answer to something else, and be it to one of these alone, is none: each is refused.
        return dict.fromkeys(ids, replace(answer, request_id=""))
    return {request_id: replace(answer, request_id=request_id) for request_id in ids}


def _question(flow: Flow, runs: Sequence[PreparedRun]) -> PreparedRun:
    """The first run with the question about all of them, and every reason once."""
    if len(runs) == 1:
        return runs[0]
    if len({run.command.digest for run in runs}) > 1:
        reason = f"{runs[0].command.skill_name} changed while it was looked at"
        raise ContentChangedError(f"{reason}, so nobody was asked. Load it again.", reasons=[reason])
    reasons = tuple(dict.fromkeys(reason for run in runs for reason in run.reasons))
    prompts = [Prompt.from_context(run.request.context) for run in runs if run.request is not None]
    needs = {(need.kind, need.name): need for prompt in prompts if prompt for need in prompt.needs}
    had = next((prompt.had for prompt in prompts if prompt), ())
    asked = flow.prompt([run.command for run in runs], reasons)
    request = joint_request(runs, replace(asked, needs=tuple(needs.values()), had=had))
    return replace(runs[0], reasons=reasons, request=request, is_coverable=all(run.is_coverable for run in runs))


def _unanswered(run: PreparedRun, problem: SkillKitError | None) -> SkillKitError:
    """Why this one does not run; what kept the question from being asked is the same for all."""
    if problem is not None and not isinstance(problem, ApprovalUnavailableError):
        return problem
    cause = problem.__cause__ if problem is not None else None
    return unavailable(run, cause if isinstance(cause, ApprovalUnavailableError) else None)


def _cancelled(run: PreparedRun) -> ScriptRefusedError:
    reason = "the call was cancelled before it started"
    command = run.command
    return ScriptRefusedError(f"{command.skill_name}: {command.script_name} did not run: {reason}.", reasons=[reason])
