"""An answer is good for one question, and one for a single run is good once."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.approving import asking_manager, change, run, skill
from support.running import kinds, records_of

from skillkit import (
    TRUSTED,
    ApprovalUnavailableError,
    OptionAnswer,
    OptionRequest,
    ScriptNotFoundError,
    ScriptRefusedError,
    SkillNotFoundError,
)
from skillkit.approvers.callback import CallbackApprover
from skillkit.core.values.runs import Decision
from skillkit.testing import ScriptedApprover

OTHER_CALLS: dict[str, dict[str, Any]] = {
    "arguments": {"argv": ("other",)},
    "input": {"arguments": {"a": 1}},
    "stdin": {"stdin": "x"},
    "script": {"script_name": "other"},
    "session": {"session_id": "t"},
    "call": {"call_id": "2"},
    "workspace": {"workspace": "elsewhere"},
}


@pytest.mark.parametrize("name", OTHER_CALLS)
@pytest.mark.parametrize("option", ["yes_once", "yes_in_session"])
def test_an_answer_to_another_question_runs_nothing(tmp_path: Path, name: str, option: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    changes = dict(OTHER_CALLS[name])
    if "workspace" in changes:
        changes["workspace"] = tmp_path / changes["workspace"]
    with asking_manager(tmp_path) as manager:
        first = manager.prepare_skill_script("demo", "run", call_id="1")
        call: dict[str, Any] = {"script_name": "run", "call_id": "1", **changes}
        other = manager.prepare_skill_script("demo", **call)
        assert first.request is not None
        answer = OptionAnswer(option, "test", time.time(), first.request.id)
        with pytest.raises(ScriptRefusedError, match="belongs to another question"):
            manager.complete_skill_script(other, answer)
        assert kinds(tmp_path) == ["refused"]
        assert manager.complete_skill_script(first, answer).stdout == "ran\n", "it was good for its own"


def test_an_answer_for_the_content_before_a_change_runs_nothing(tmp_path: Path) -> None:
    with asking_manager(tmp_path) as manager:
        before = manager.prepare_skill_script("demo", "run")
        assert before.request is not None
        answer = OptionAnswer("yes_in_session", "test", time.time(), before.request.id)
        change(skill(tmp_path))
        with pytest.raises(ScriptRefusedError, match="changed after it was decided"):
            manager.complete_skill_script(before, answer)
        after = manager.prepare_skill_script("demo", "run")
        with pytest.raises(ScriptRefusedError, match="belongs to another question"):
            manager.complete_skill_script(after, answer)
    assert kinds(tmp_path) == ["refused", "refused"]


@pytest.mark.parametrize("option", ["", "yes", "YES_ONCE", "yes_once ", "always", "0"])
def test_an_option_that_was_not_offered_runs_nothing(tmp_path: Path, option: str) -> None:
    with asking_manager(tmp_path) as manager:
        prepared = manager.prepare_skill_script("demo", "run")
        assert prepared.request is not None
        with pytest.raises(ScriptRefusedError, match="no answer to this question"):
            manager.complete_skill_script(prepared, OptionAnswer(option, "test", time.time(), prepared.request.id))
    assert kinds(tmp_path) == ["refused"]


def test_an_answer_that_names_no_question_runs_nothing(tmp_path: Path) -> None:
    with asking_manager(tmp_path) as manager:
        prepared = manager.prepare_skill_script("demo", "run")
        with pytest.raises(ScriptRefusedError, match="belongs to another question"):
            manager.complete_skill_script(prepared, OptionAnswer("yes_once", "test", time.time()))


class Forger:
    """An approver that hands out the answer to some other question."""

    channel = "forged"

    def ask(self, request: OptionRequest, cancel: object = None) -> OptionAnswer:
        del request, cancel
        return OptionAnswer("yes_once", self.channel, time.time(), "another")


def test_an_approver_that_answers_another_question_runs_nothing(tmp_path: Path) -> None:
    with asking_manager(tmp_path, Forger()) as manager, pytest.raises(ScriptRefusedError, match="another question"):
        run(manager)
    assert kinds(tmp_path) == ["refused"]


def test_an_answer_for_one_run_runs_once_however_often_it_is_handed_in(tmp_path: Path) -> None:
    with asking_manager(tmp_path) as manager:
        prepared = manager.prepare_skill_script("demo", "run")
        assert prepared.request is not None
        answer = OptionAnswer("yes_once", "test", time.time(), prepared.request.id)
        assert manager.complete_skill_script(prepared, answer).stdout == "ran\n"
        for again in (prepared, manager.prepare_skill_script("demo", "run")):
            with pytest.raises(ScriptRefusedError, match="was for one run and has been used"):
                manager.complete_skill_script(again, answer)
        later = replace(answer, answered_at=answer.answered_at + 1)
        assert manager.complete_skill_script(prepared, later).stdout == "ran\n", "a new answer is a new run"
    assert Counter(kinds(tmp_path)) == {"started": 2, "finished": 2, "refused": 2}


def test_answers_to_two_questions_may_be_given_at_one_moment(tmp_path: Path) -> None:
    with asking_manager(tmp_path) as manager:
        for script in ("run", "other"):
            prepared = manager.prepare_skill_script("demo", script)
            assert prepared.request is not None
            answer = OptionAnswer("yes_once", "test", 5.0, prepared.request.id)
            assert manager.complete_skill_script(prepared, answer).success


def test_what_asks_nothing_has_no_answer(tmp_path: Path) -> None:
    with asking_manager(tmp_path, policy=TRUSTED) as manager:
        prepared = manager.prepare_skill_script("demo", "run")
        with pytest.raises(ApprovalUnavailableError):
            manager.flow.approvals.answer_for(prepared, ScriptedApprover("yes_once"))


def test_forty_threads_with_one_answer_for_one_run_run_once(tmp_path: Path) -> None:
    with asking_manager(tmp_path) as manager:
        prepared = manager.prepare_skill_script("demo", "run")
        assert prepared.request is not None
        answer = OptionAnswer("yes_once", "test", time.time(), prepared.request.id)

        def hand_in(_: int) -> None:
            with suppress(ScriptRefusedError):
                manager.complete_skill_script(prepared, answer)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(hand_in, range(40)))
    assert Counter(kinds(tmp_path)) == {"started": 1, "finished": 1, "refused": 39}


def test_where_every_run_is_asked_about_no_answer_is_good_for_two(tmp_path: Path) -> None:
    with asking_manager(tmp_path, policy=replace(TRUSTED, approval="always")) as manager:
        prepared = manager.prepare_skill_script("demo", "run")
        assert prepared.request is not None
        answer = OptionAnswer("yes_in_session", "test", time.time(), prepared.request.id)
        manager.complete_skill_script(prepared, answer)
        with pytest.raises(ScriptRefusedError, match="has been used"):
            manager.complete_skill_script(prepared, answer)
        assert manager.prepare_skill_script("demo", "run").decision is Decision.ASK


def test_an_approver_that_does_not_say_when_is_asked_for_every_run(tmp_path: Path) -> None:
    approver = CallbackApprover(lambda _: OptionAnswer("yes_once", "mine", 0.0))
    with asking_manager(tmp_path, approver) as manager:
        assert [run(manager).stdout for _ in range(3)] == ["ran\n"] * 3


@pytest.mark.parametrize(
    ("skill_name", "script", "error"),
    [("nope", "run", SkillNotFoundError), ("demo", "nope", ScriptNotFoundError)],
    ids=["no such skill", "no such script"],
)
def test_what_cannot_be_resolved_is_a_denial_that_the_second_half_records_and_raises(
    tmp_path: Path, skill_name: str, script: str, error: type[Exception]
) -> None:
    with asking_manager(tmp_path) as manager:
        secret = {"password": "hunter2"}
        with pytest.raises(error) as raised:
            manager.execute_skill_script(skill_name, script, secret)
        prepared = manager.prepare_skill_script(skill_name, script, secret)
        assert kinds(tmp_path) == ["refused"], "the first half records nothing"
        assert (prepared.decision, prepared.request, prepared.reasons) == (Decision.DENY, None, (str(raised.value),))
        with pytest.raises(error):
            _ = prepared.command
        for answer in (None, OptionAnswer("yes_once", "test", time.time(), "")):
            with pytest.raises(error):
                manager.complete_skill_script(prepared, answer)
    whole, *halves = (record.fields for record in records_of(tmp_path))
    assert halves == [whole, whole], "on record as by the call that does both"
    assert (whole["skill"], whole["script"], whole["error"]) == (skill_name, script, error.__name__)
    assert "hunter2" not in str(whole)
