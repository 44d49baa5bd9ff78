"""Requests that are not even shown, and moving in a long text; what is shown stands in tests/e2e."""

from __future__ import annotations

import threading
import time

import pytest
from support.terminals import question

from skillkit.approvers.terminal import TerminalApprover, _page, _top_after
from skillkit.core.exceptions import ApprovalUnavailableError
from skillkit.core.values.questions import Approver, Option


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


@pytest.mark.parametrize(
    ("key", "top", "then"),
    [
        pytest.param("down", 0, 1, id="a line on"),
        pytest.param("up", 0, 0, id="nothing above the first"),
        pytest.param(" ", 0, 9, id="a page on, one line shared"),
        pytest.param("page up", 50, 41, id="a page back"),
        pytest.param("end", 0, 90, id="the last page is full"),
        pytest.param(" ", 88, 90, id="not beyond the end"),
        pytest.param("home", 77, 0, id="the beginning"),
        pytest.param("1", 5, 5, id="a key without meaning"),
    ],
)
def test_keys_move_the_view(key: str, top: int, then: int) -> None:
    assert _top_after(key, top, height=10, count=100) == then


def test_a_text_shorter_than_the_view_does_not_move() -> None:
    assert _top_after("end", 0, height=10, count=3) == 0


def test_a_line_is_cleared_before_it_is_written_so_that_a_full_one_keeps_its_last_character() -> None:
    assert _page(["x" * 20, "y"], 0, "Source", 20, 5).startswith(f"\x1b[H\x1b[K{'x' * 20}\n\x1b[Ky\n\x1b[J")
