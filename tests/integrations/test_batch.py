"""Several runs under one question: what an answer is for, and what one run's end does to the others."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

from support.running import kinds, made_manager, records_of

from skillkit import GUARDED, ApprovalUnavailableError, OptionAnswer, OptionRequest, SkillManager
from skillkit.approvers.callback import CallbackApprover
from skillkit.core.resolve import CallArguments
from skillkit.core.values.questions import Approver
from skillkit.core.values.runs import RunControl, ScriptExecutionResult
from skillkit.integrations.batch import Outcome, execute_batch
from skillkit.testing import ScriptedApprover

ASKING = replace(GUARDED, sandbox="off")
FILES = {f"scripts/{name}.sh": f"echo {name}\n" for name in "abc"}


def manager_at(folder: Path) -> SkillManager:
    return made_manager(folder, FILES, policy=ASKING)


def together(manager: SkillManager, approver: Approver | None, *names: str) -> list[Outcome | None]:
    calls = [CallArguments(name, session_id="s") for name in names]
    return execute_batch(manager.flow, manager.load_skill("demo"), calls, approver=approver)


def told(outcomes: list[Outcome | None]) -> list[str]:
    return [
        each.stdout.strip() if isinstance(each, ScriptExecutionResult) else type(each).__name__ for each in outcomes
    ]


def test_outcomes_come_in_the_order_of_the_calls_whatever_they_are(tmp_path: Path) -> None:
    with manager_at(tmp_path) as manager:
        outcomes = together(manager, ScriptedApprover("yes_once"), "b", "gone", "../x", "a")
    assert told(outcomes) == ["b", "ScriptNotFoundError", "PathSecurityError", "a"]
    assert sorted(kinds(tmp_path)) == ["finished", "finished", "refused", "refused", "started", "started"]


def test_one_run_is_asked_about_as_if_it_were_alone(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_once", "no")
    with manager_at(tmp_path) as manager:
        together(manager, approver, "a")
        prepared = manager.prepare_skill_script("demo", "a", session_id="s")
    assert prepared.request is not None
    assert approver.requests[0].id == prepared.request.id


def test_nothing_to_run_asks_nobody(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_once")
    with manager_at(tmp_path) as manager:
        assert together(manager, approver) == []
    assert approver.requests == []


def test_an_answer_for_one_time_is_good_once(tmp_path: Path) -> None:
    given = list[OptionAnswer]()

    def answer(request: OptionRequest) -> OptionAnswer:
        given.append(given[0] if given else OptionAnswer("yes_once", "test", time.time(), request.id))
        return given[0]

    with manager_at(tmp_path) as manager:
        assert told(together(manager, CallbackApprover(answer), "a", "b")) == ["a", "b"]
        assert told(together(manager, CallbackApprover(answer), "a", "b")) == ["ScriptRefusedError"] * 2


def test_an_answer_about_some_runs_is_none_about_others(tmp_path: Path) -> None:
    asked = ScriptedApprover("yes_once")
    with manager_at(tmp_path) as manager:
        together(manager, asked, "a", "b")

        class Replayed(ScriptedApprover):
            def ask(self, request: OptionRequest, cancel: object = None) -> OptionAnswer:  # noqa: ARG002
                return OptionAnswer("yes_once", "replayed", time.time(), asked.requests[0].id)

        assert told(together(manager, Replayed(), "a", "c")) == ["ScriptRefusedError"] * 2
        assert told(together(manager, Replayed(), "a", "b")) == ["a", "b"]


def test_a_word_for_the_session_given_meanwhile_covers_all_of_them(tmp_path: Path) -> None:
    with manager_at(tmp_path) as manager:

        def elsewhere(_: OptionRequest) -> str:
            manager.execute_skill_script("demo", "c", session_id="s")
            raise ApprovalUnavailableError("The page was closed.")

        manager.approver = ScriptedApprover("yes_in_session")
        assert told(together(manager, CallbackApprover(elsewhere), "a", "b")) == ["a", "b"]
    allowed = [record.fields["decision"] for record in records_of(tmp_path) if record.kind == "started"]
    assert allowed == ["ask", "allow", "allow"]


def test_a_call_that_is_cancelled_starts_nothing_more(tmp_path: Path) -> None:
    cancel = threading.Event()
    with manager_at(tmp_path) as manager:
        calls = [CallArguments(name, session_id="s") for name in "abc"]
        outcomes = execute_batch(
            manager.flow,
            manager.load_skill("demo"),
            calls,
            approver=ScriptedApprover("yes_once"),
            control=RunControl(cancel, on_output=lambda _, __: cancel.set()),
        )
    assert told(outcomes)[1:] == ["ScriptRefusedError"] * 2
    assert kinds(tmp_path) == ["started", "finished", "refused", "refused"]
