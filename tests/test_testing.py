"""What users' own tests import."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.asking import request_named

from skillkit import ApprovalUnavailableError, ConfigurationError, SkillManager
from skillkit.testing import ScriptedApprover, skill_folder


def test_a_scripted_approver_answers_in_order_and_keeps_the_requests() -> None:
    approver = ScriptedApprover("yes_once", "no")
    requests = [request_named(name) for name in ("a", "b", "c")]
    assert [approver.ask(request).option_id for request in requests[:2]] == ["yes_once", "no"]
    with pytest.raises(ApprovalUnavailableError, match="no answer left"):
        approver.ask(requests[2])
    assert approver.requests == requests


def test_a_scripted_answer_that_is_not_offered_is_the_tests_mistake() -> None:
    with pytest.raises(ConfigurationError, match="Script one of: yes_once, yes_in_session, no"):
        ScriptedApprover("yes").ask(request_named("a"))


def test_a_skill_folder_is_a_skill_that_a_manager_finds(tmp_path: Path) -> None:
    folder = skill_folder(
        tmp_path / "skills", "demo", {"scripts/run.py": "print(1)\n"}, description='Says: "one".', body="Run it.\n"
    )
    with SkillManager(tmp_path / "skills", "", [], [], state_dir=tmp_path / "state") as manager:
        skill = manager.load_skill("demo")
        assert skill.base_directory == folder
        assert skill.metadata.description == 'Says: "one".'
        assert skill.content.strip() == "Run it."
        assert [script.path.as_posix() for script in skill.scripts] == ["scripts/run.py"]
