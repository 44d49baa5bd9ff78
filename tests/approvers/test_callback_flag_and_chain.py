"""A yes that was given beforehand, and several ways to ask in order."""

from __future__ import annotations

import threading

import pytest
from support.asking import request_named

from skillkit import ApprovalUnavailableError, Option
from skillkit.approvers.callback import ChainApprover, FlagApprover
from skillkit.core.values.questions import Approver
from skillkit.testing import ScriptedApprover

REQUEST = request_named("run")


def test_the_flag_says_yes_once_to_every_request() -> None:
    approver: Approver = FlagApprover()
    for _ in range(2):
        got = approver.ask(REQUEST)
        assert (got.option_id, got.channel, got.request_id) == ("yes_once", "flag", "run")


def test_the_flag_says_nothing_to_other_questions() -> None:
    with pytest.raises(ApprovalUnavailableError, match="does not offer 'yes_once'"):
        FlagApprover().ask(request_named("colour", (Option("red", "Red"),)))


def test_a_chain_goes_on_when_a_way_is_unavailable_and_stops_at_an_answer() -> None:
    away, here, unused = ScriptedApprover(), ScriptedApprover("no"), FlagApprover()
    chain: Approver = ChainApprover(away, here, unused)
    got = chain.ask(REQUEST)
    assert (got.option_id, got.channel) == ("no", "scripted")
    assert (away.requests, here.requests) == ([REQUEST], [REQUEST])
    assert chain.channel == "scripted, scripted, flag"


def test_a_chain_that_reaches_nobody_says_why_for_each() -> None:
    with pytest.raises(ApprovalUnavailableError, match="scripted: the scripted approver has no answer left") as caught:
        ChainApprover(ScriptedApprover(), ScriptedApprover()).ask(REQUEST)
    assert len(caught.value.reasons) == 2
    with pytest.raises(ApprovalUnavailableError, match="there is no way to ask"):
        ChainApprover().ask(REQUEST)


def test_a_chain_asks_nobody_once_the_question_is_cancelled() -> None:
    cancel = threading.Event()
    cancel.set()
    approver = ScriptedApprover("yes_once")
    with pytest.raises(ApprovalUnavailableError, match="was cancelled"):
        ChainApprover(approver).ask(REQUEST, cancel)
    assert approver.requests == []
    assert ChainApprover(approver).ask(REQUEST, threading.Event()).option_id == "yes_once"
