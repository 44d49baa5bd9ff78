"""Requests that are not even shown; those that are stand in tests/e2e."""

from __future__ import annotations

import threading
import time

import pytest
from terminals import question

from skillkit.approvers.terminal import TerminalApprover
from skillkit.core.exceptions import ApprovalUnavailableError
from skillkit.core.questions import Approver, Option


def test_it_is_an_approver_whose_channel_is_the_terminal() -> None:
    approver: Approver = TerminalApprover()
    assert approver.channel == "terminal"


@pytest.mark.parametrize("count", [0, 10])
def test_a_question_that_digits_cannot_answer_is_not_asked(count: int) -> None:
    options = tuple(Option(str(number), "Choice") for number in range(count))
    with pytest.raises(ApprovalUnavailableError, match=f"{count} options"):
        TerminalApprover().ask(question(options=options))


def test_a_withdrawn_question_is_not_asked() -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(ApprovalUnavailableError, match="withdrawn") as caught:
        TerminalApprover().ask(question(), cancel)
    assert caught.value.reasons == ("the question was withdrawn",)


def test_an_expired_question_is_not_asked() -> None:
    with pytest.raises(ApprovalUnavailableError, match="expired"):
        TerminalApprover().ask(question(expires_at=time.time() - 1))
