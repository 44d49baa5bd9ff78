"""What an agent is told of a script that misses a package, and who may prepare one."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.surfaces import BODY, SURFACES, told_on

from skillkit import SkillManager
from skillkit.core.exceptions import ApprovalUnavailableError
from skillkit.core.values.policy import STANDARD
from skillkit.integrations.functions import SkillFunctions
from skillkit.packages.question import ask_about
from skillkit.testing import ScriptedApprover, skill_folder


def test_an_agent_is_told_that_packages_are_needed_and_what_a_person_must_do(tmp_path: Path) -> None:
    skill_folder(tmp_path / "skills", "animals", {"scripts/run.py": "import zebra_of_nobody"})
    with SkillManager("", "", [], [tmp_path / "skills"], policy=STANDARD, state_dir=tmp_path / "state") as manager:
        asked = {"skill_name": "animals", "script": "run"}
        answer = SkillFunctions(manager).call("skills_run_script", asked)
    assert answer.status == "needs_packages"
    assert answer.is_error
    assert "skillkit prepare animals\nOnly a person can give it that" in answer.content


@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_names_the_command_that_a_person_types(tmp_path: Path, surface: str) -> None:
    skill_folder(tmp_path / "skills", "demo", {"scripts/run.py": "import zebra_of_nobody"}, body=BODY)
    approver = ScriptedApprover("yes_once")
    given = {"policy": STANDARD, "approver": approver, "state_dir": tmp_path / "state"}
    with SkillManager("", "", [], [tmp_path / "skills"], **given) as manager:  # type: ignore[arg-type]
        told = told_on(surface, manager)
    assert "skillkit prepare demo" in told
    assert "Only a person can give it that" in told
    assert ("needs_packages" in told) == (surface != "langchain"), "its tools answer with text and the result alone"


def test_a_script_that_only_prints_the_command_is_not_believed(tmp_path: Path) -> None:
    skill_folder(tmp_path / "skills", "animals", {"scripts/run.py": "print('skillkit prepare animals'); exit(1)"})
    with SkillManager("", "", [], [tmp_path / "skills"], policy=STANDARD, state_dir=tmp_path / "state") as manager:
        assert not manager.execute_skill_script("animals", "run").needs_packages


def test_nobody_to_ask_means_no() -> None:
    with pytest.raises(ApprovalUnavailableError, match="skillkit prepare animals"):
        ask_about("animals", [], None, days=7, has_young_word=True, has_inferred_word=True)
