from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from skillkit import ScriptExecutionResult
from skillkit.core.values.runs import Decision, Isolation

PATH = Path("/skills/demo/scripts/run.sh")


def result(exit_code: int = 0, **fields: Any) -> ScriptExecutionResult:
    return ScriptExecutionResult("", "", exit_code, 1.0, PATH, **fields)


def test_a_plain_result_has_these_defaults() -> None:
    assert result() == ScriptExecutionResult(
        stdout="",
        stderr="",
        exit_code=0,
        execution_time_ms=1.0,
        script_path=PATH,
        signal=None,
        signal_number=None,
        stdout_truncated=False,
        stderr_truncated=False,
        timed_out=False,
        cancelled=False,
        isolation=Isolation(),
        artifacts=(),
        hint="",
    )


def test_success_timeout_and_signaled_follow_from_the_fields() -> None:
    assert [(each.success, each.timeout, each.signaled) for each in (result(), result(1), result(124))] == [
        (True, False, False),
        (False, False, False),
        (False, False, False),
    ]
    timed_out = result(124, timed_out=True)
    assert (timed_out.success, timed_out.timeout, timed_out.signaled) == (False, True, False)
    crashed = result(-11, signal="SIGSEGV", signal_number=11)
    assert (crashed.success, crashed.timeout, crashed.signaled) == (False, False, True)


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"exit_code": 11, "signal": "SIGSEGV", "signal_number": 11}, "does not match exit code 11"),
        ({"exit_code": -9, "signal": "SIGSEGV", "signal_number": 11}, "does not match exit code -9"),
        ({"exit_code": 0, "signal": "SIGSEGV"}, "minus its number"),
        ({"exit_code": 0, "timed_out": True}, "has exit code 124, not 0"),
        ({"exit_code": -9, "timed_out": True}, "has exit code 124, not -9"),
    ],
)
def test_a_result_that_contradicts_itself_cannot_be_made(fields: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        result(**fields)


def test_a_result_never_changes() -> None:
    with pytest.raises(FrozenInstanceError, match="exit_code"):
        result().exit_code = 1  # type: ignore[misc]  # that is the point
    assert not hasattr(result(), "__dict__")


def test_decisions_are_ordered_by_strictness() -> None:
    assert sorted([Decision.DENY, Decision.ALLOW, Decision.ASK]) == [Decision.ALLOW, Decision.ASK, Decision.DENY]
    assert max(Decision.ASK, Decision.ALLOW) is Decision.ASK
