"""Asking through a function of the program that uses skillkit."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from support.approving import asking_manager, run
from support.asking import request_named
from support.running import kinds

from skillkit import ApprovalUnavailableError, OptionAnswer, OptionRequest, ScriptRefusedError
from skillkit.approvers.callback import CallbackApprover
from skillkit.core.resolve import CallArguments
from skillkit.core.values.questions import Approver
from skillkit.integrations.batch import execute_batch

REQUEST = request_named("run")


def test_the_function_sees_the_request_and_its_choice_is_the_answer() -> None:
    seen: list[OptionRequest] = []

    def choose(request: OptionRequest) -> str:
        seen.append(request)
        return "yes_in_session"

    approver: Approver = CallbackApprover(choose)
    got = approver.ask(REQUEST)
    assert (got.option_id, got.channel, got.request_id) == ("yes_in_session", "callback", "run")
    assert seen == [REQUEST]


def test_the_request_says_when_it_was_asked_and_until_when_it_can_be_answered(tmp_path: Path) -> None:
    seen: list[OptionRequest] = []

    def choose(request: OptionRequest) -> str:
        seen.append(request)
        return "yes_once"

    before = time.time()
    for approver, seconds in ((CallbackApprover(choose), 3600), (CallbackApprover(choose, expires_in=60), 60)):
        with asking_manager(tmp_path, approver) as manager:
            run(manager)
            prepared = manager.prepare_skill_script("demo", "run")
        asked = seen.pop()
        assert before <= asked.created_at <= time.time()
        assert asked.expires_at == pytest.approx(asked.created_at + seconds)
        assert prepared.request is not None
        assert before <= prepared.request.created_at <= time.time()
        assert prepared.request.expires_at > prepared.request.created_at


def test_several_scripts_asked_about_at_once_are_asked_at_that_moment(tmp_path: Path) -> None:
    seen: list[OptionRequest] = []

    def choose(request: OptionRequest) -> str:
        seen.append(request)
        return "no"

    before = time.time()
    with asking_manager(tmp_path, CallbackApprover(choose)) as manager:
        calls = [CallArguments(script_name=name, session_id="s") for name in ("run.sh", "other.sh")]
        execute_batch(manager.flow, manager.load_skill("demo"), calls)
    (asked,) = seen
    assert before <= asked.created_at < asked.expires_at


@pytest.mark.parametrize(("said", "is_late"), [("yes_once", True), ("yes_in_session", True), ("no", False)])
def test_a_yes_that_comes_after_the_question_expired_is_none(said: str, is_late: bool) -> None:
    request = REQUEST.asked(time.time() - 10, 5)
    if not is_late:
        assert CallbackApprover(lambda _: said).ask(request).option_id == said
        return
    assert CallbackApprover(lambda _: said).ask(REQUEST.asked(time.time(), 5)).option_id == said
    with pytest.raises(ApprovalUnavailableError, match="expired before it was answered"):
        CallbackApprover(lambda _: said).ask(request)


def test_a_late_answer_completes_nothing(tmp_path: Path) -> None:
    with asking_manager(tmp_path) as manager:
        prepared = manager.prepare_skill_script("demo", "run")
        assert prepared.request is not None
        late, good = prepared.request.expires_at + 1, prepared.request.expires_at - 1
        with pytest.raises(ScriptRefusedError, match="after the question had expired"):
            manager.complete_skill_script(prepared, OptionAnswer("yes_once", "x", late, prepared.request.id))
        done = manager.complete_skill_script(prepared, OptionAnswer("yes_once", "x", good, prepared.request.id))
    assert done.stdout == "ran\n"
    assert kinds(tmp_path) == ["refused", "started", "finished"]


def test_a_whole_answer_keeps_its_channel() -> None:
    got = CallbackApprover(lambda _: OptionAnswer("no", "slack", 5.0), channel="chat").ask(REQUEST)
    assert got == OptionAnswer("no", "slack", 5.0, "run")


@pytest.mark.parametrize(
    "said",
    [True, None, "yes", "", 1, ["yes_once"], OptionAnswer("maybe", "x", 0.0), OptionAnswer("no", "x", 0.0, "other")],
    ids=repr,
)
def test_anything_but_an_offered_option_is_not_approved(said: object) -> None:
    with pytest.raises(ApprovalUnavailableError, match=r"Return one of these ids: yes_once, yes_in_session, no\."):
        CallbackApprover(lambda _: said).ask(REQUEST)  # type: ignore[arg-type, return-value]


def test_an_async_function_is_not_approved_and_named() -> None:
    async def choose(_: OptionRequest) -> str:
        return "yes_once"

    with pytest.raises(ApprovalUnavailableError, match="must not be async"):
        CallbackApprover(choose).ask(REQUEST)  # type: ignore[arg-type]


def test_a_function_that_fails_is_not_approved() -> None:
    def fail(_: OptionRequest) -> str:
        raise OSError("no network")

    with pytest.raises(ApprovalUnavailableError, match="the callback raised OSError: no network"):
        CallbackApprover(fail).ask(REQUEST)


class PauseError(Exception):
    """As frameworks use to leave and come back."""


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, PauseError, ApprovalUnavailableError])
def test_control_flow_passes_through_unchanged(error: type[BaseException]) -> None:
    raised = error("stop")

    def leave(_: OptionRequest) -> str:
        raise raised

    with pytest.raises(error) as caught:
        CallbackApprover(leave, control_flow=(PauseError,)).ask(REQUEST)
    assert caught.value is raised


def test_an_answer_to_a_question_that_was_cancelled_meanwhile_does_not_count() -> None:
    cancel = threading.Event()

    def choose(_: OptionRequest) -> str:
        cancel.set()
        return "yes_once"

    assert CallbackApprover(choose).ask(REQUEST, threading.Event()).option_id == "yes_once"
    cancel.clear()
    with pytest.raises(ApprovalUnavailableError, match="was cancelled"):
        CallbackApprover(choose).ask(REQUEST, cancel)


def test_a_question_that_is_cancelled_already_is_not_asked() -> None:
    cancel = threading.Event()
    cancel.set()
    asked: list[OptionRequest] = []

    def choose(request: OptionRequest) -> str:
        asked.append(request)
        return "yes_once"

    with pytest.raises(ApprovalUnavailableError, match="was cancelled"):
        CallbackApprover(choose).ask(REQUEST, cancel)
    assert asked == []
