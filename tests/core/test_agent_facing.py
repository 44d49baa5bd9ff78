"""One manager, several doors: what a model chose is asked about at each of them, unless the manager has a policy."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.running import kinds, made_manager

from skillkit import GUARDED, STANDARD, OptionAnswer, ScriptExecutionResult, ScriptPolicy, SkillManager
from skillkit.core.values.runs import Decision
from skillkit.integrations.functions import SkillFunctions
from skillkit.testing import ScriptedApprover

FILES = {"scripts/run.sh": "echo ran\n"}
Door = Callable[[SkillManager], ScriptExecutionResult | None]


def by_execute(manager: SkillManager) -> ScriptExecutionResult:
    return manager.execute_skill_script("demo", "run", agent_facing=True)


def by_aexecute(manager: SkillManager) -> ScriptExecutionResult:
    return asyncio.run(manager.aexecute_skill_script("demo", "run", agent_facing=True))


def by_halves(manager: SkillManager) -> ScriptExecutionResult:
    prepared = manager.prepare_skill_script("demo", "run", agent_facing=True)
    answer = None
    if prepared.request is not None:
        assert manager.approver is not None
        answer = manager.approver.ask(prepared.request)
    return manager.complete_skill_script(prepared, answer)


def by_functions(manager: SkillManager) -> ScriptExecutionResult | None:
    return SkillFunctions(manager).call("skills_run_script", {"skill_name": "demo", "script": "run"}).result


DOORS = [by_execute, by_aexecute, by_halves, by_functions]


def asked(folder: Path, door: Door, policy: ScriptPolicy | None) -> int:
    """How often a person was asked before it ran."""
    person = ScriptedApprover("yes_once")
    with made_manager(folder, FILES, policy=policy, approver=person) as manager:
        result = door(manager)
        assert result is not None
        assert result.stdout == "ran\n"
    return len(person.requests)


@pytest.mark.parametrize("door", DOORS)
def test_a_model_s_call_is_guarded_by_every_door(tmp_path: Path, door: Door) -> None:
    assert asked(tmp_path, door, None) == 1


@pytest.mark.parametrize("door", DOORS)
def test_a_policy_that_was_given_holds_by_every_door(tmp_path: Path, door: Door) -> None:
    assert asked(tmp_path, door, replace(STANDARD, sandbox="off")) == 0


def test_a_program_s_own_call_is_not_asked_about(tmp_path: Path) -> None:
    with made_manager(tmp_path, FILES, policy=None) as manager:
        assert manager.execute_skill_script("demo", "run").stdout == "ran\n"
        assert manager.prepare_skill_script("demo", "run").decision is Decision.ALLOW


def test_both_halves_hold_the_same_policy(tmp_path: Path) -> None:
    """A second half under a looser policy would run in walls that nobody was shown."""
    with made_manager(tmp_path, FILES, policy=None) as manager:
        prepared = manager.prepare_skill_script("demo", "run", agent_facing=True)
        assert prepared.request is not None
        answer = OptionAnswer("yes_in_session", "test", prepared.request.created_at, prepared.request.id)
        assert manager.complete_skill_script(prepared, answer).success
        assert manager.agent_policy == GUARDED
        assert manager.prepare_skill_script("demo", "run", agent_facing=True).decision is Decision.ALLOW
    assert kinds(tmp_path) == ["started", "finished"]
