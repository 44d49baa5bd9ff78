"""Asking through a function of the program that uses skillkit."""

from __future__ import annotations

import threading

import pytest
from asking import request_named

from skillkit import ApprovalUnavailableError, OptionAnswer, OptionRequest
from skillkit.approvers.callback import CallbackApprover
from skillkit.core.questions import Approver

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
