"""What a person is asked about packages, and what a yes covers."""

from __future__ import annotations

import time

import pytest

from skillkit.approvers.callback import CallbackApprover, FlagApprover
from skillkit.core.exceptions import ApprovalDeclinedError, ApprovalUnavailableError
from skillkit.core.values.questions import OptionAnswer, OptionRequest
from skillkit.packages.question import ask_about
from skillkit.packages.values import Locked, Plan


def young(kind: str, *versions: str) -> Plan:
    packages = tuple(Locked("lib", version, ("h",), uploaded_at=time.time()) for version in versions)
    return Plan(kind, "key", "{}", f"/usr/bin/{kind}", (), packages, ("index.example.com",))


def ticking(*ids: str) -> CallbackApprover:
    return CallbackApprover(lambda _: OptionAnswer("yes_once", "", time.time(), grants=ids))


def test_a_tick_is_for_one_version_in_one_language() -> None:
    """A young `lib` of Python, and two of Node that bear its name."""
    plans, offered = (young("node", "1.0.0", "3.0"), young("python", "3.0")), list[tuple[str, str]]()

    def look(request: OptionRequest) -> str:
        offered.extend((tick.id, tick.label) for tick in request.grants)
        return "no"

    with pytest.raises(ApprovalDeclinedError):
        ask_about("animals", plans, CallbackApprover(look), days=7)
    assert offered == [
        ("young:node:lib@1.0.0", "lib 1.0.0 (Node)"),
        ("young:node:lib@3.0", "lib 3.0 (Node)"),
        ("young:python:lib@3.0", "lib 3.0 (Python)"),
    ]
    ids = [each for each, _ in offered]
    for id_, label in offered:
        with pytest.raises(ApprovalDeclinedError) as refused:
            ask_about("animals", plans, ticking(*(each for each in ids if each != id_)), days=7)
        assert f"not ticked. {label}: younger than 7 days" in str(refused.value)
        assert str(refused.value).count("younger than") == 1
    assert ask_about("animals", plans, ticking(*ids), days=7).grants == tuple(ids)


def test_the_words_of_the_command_line_cover_all_of_them() -> None:
    plans = (young("node", "1.0.0", "3.0"), young("python", "3.0"))
    with pytest.raises(ApprovalUnavailableError, match="add --young"):
        ask_about("animals", plans, FlagApprover(), days=7)
    assert ask_about("animals", plans, FlagApprover(), days=7, has_young_word=True).option_id == "yes_once"
