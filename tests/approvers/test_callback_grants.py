"""A function of the program's own ticks what the question offers, and nothing else."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from support.terminals import question

from skillkit import ApprovalUnavailableError, Grant, OptionAnswer
from skillkit.approvers.callback import CallbackApprover, FlagApprover
from skillkit.core.values.questions import Tick

ASKED = replace(question(), grants=(Tick("secret:API_KEY", "the key API_KEY"), Tick("again", "the same again")))


@pytest.mark.parametrize("grants", [(), ("again",), ("secret:API_KEY", "again"), (Grant("secret", "API_KEY"),)])
def test_what_it_ticks_is_passed_on_by_id(grants: tuple[str, ...]) -> None:
    answer = CallbackApprover(lambda _: OptionAnswer("yes_once", "", time.time(), grants=grants)).ask(ASKED)
    expected = tuple(getattr(each, "id", each) for each in grants)
    assert (answer.option_id, answer.channel, answer.grants) == ("yes_once", "callback", expected)


def test_an_id_alone_ticks_nothing_and_so_does_the_flag() -> None:
    assert CallbackApprover(lambda _: "yes_in_session").ask(ASKED).grants == ()
    assert FlagApprover().ask(ASKED).grants == ()


@pytest.mark.parametrize("grants", [("secret:OTHER",), ("secret:API_KEY", "host:*")])
def test_what_is_not_offered_is_no_approval(grants: tuple[str, ...]) -> None:
    with pytest.raises(ApprovalUnavailableError, match="The question offers"):
        CallbackApprover(lambda _: OptionAnswer("yes_once", "", time.time(), grants=grants)).ask(ASKED)


def test_a_no_may_say_why() -> None:
    assert CallbackApprover(lambda _: OptionAnswer("no", "", 1.0, reason="Not now.")).ask(ASKED).reason == "Not now."
