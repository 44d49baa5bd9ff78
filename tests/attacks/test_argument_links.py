"""A script plants a link for a later call's argument to name; each attack works where nobody stops it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.running import made_manager

from skillkit import TRUSTED, ScriptPolicy
from skillkit.core.resolve import CallArguments
from skillkit.core.values.runs import Decision

REQUIRED = ScriptPolicy(allow_scripts=True, approval="never", sandbox="required")
PLANT = 'ln -s "$1" "$SKILL_WORKSPACE/report.txt"; echo planted\n'
READ = 'cat "$1"\n'


def stolen(folder: Path, policy: ScriptPolicy) -> str:
    """What a second run reads through the link that a first run left in the workspace."""
    (folder / "diary").mkdir()
    (folder / "diary/today").write_text("private")
    (folder / "work").mkdir()
    files = {"scripts/plant.sh": PLANT, "scripts/read.sh": READ}
    with made_manager(folder, files, policy=policy, workspace=folder / "work") as manager:
        first = manager.execute_skill_script("demo", "plant", argv=[str(folder / "diary/today")])
        assert first.stdout == "planted\n"
        return manager.execute_skill_script("demo", "read", argv=[str(folder / "work/report.txt")]).stdout


def test_control_without_walls_the_link_is_followed(tmp_path: Path) -> None:
    assert stolen(tmp_path, TRUSTED) == "private"


def test_a_link_that_a_script_left_in_the_workspace_opens_nothing(tmp_path: Path) -> None:
    assert stolen(tmp_path, REQUIRED) == ""


def test_a_link_inside_the_skill_opens_nothing(tmp_path: Path) -> None:
    (tmp_path / "diary").write_text("private")
    with made_manager(tmp_path, {"scripts/read.sh": READ}, policy=REQUIRED) as manager:
        link = tmp_path / "skills/demo/data.txt"
        link.symlink_to(tmp_path / "diary")
        for text in (str(link), "data.txt"):
            assert manager.execute_skill_script("demo", "read", argv=[text]).stdout == ""
        assert manager.execute_skill_script("demo", "read", argv=[str(tmp_path / "diary")]).stdout == "private"


@pytest.mark.parametrize("form", ["--file={0}", "@{0}", "-I{0}", "file://{0}", "../../diary"])
def test_a_path_in_another_spelling_is_opened_and_nothing_beside_it(tmp_path: Path, form: str) -> None:
    (tmp_path / "diary").write_text("given")
    (tmp_path / "other").write_text("private")
    script = f'cat "{tmp_path}/diary"; cat "{tmp_path}/other"\n'
    with made_manager(tmp_path, {"scripts/read.sh": script}, policy=REQUIRED) as manager:
        assert manager.execute_skill_script("demo", "read", argv=[form.format(tmp_path / "diary")]).stdout == "given"
        assert manager.execute_skill_script("demo", "read").stdout == ""


@pytest.mark.parametrize("form", ["{0}", "--file={0}", "@{0}", "file://{0}", "../../diary", "../../work/../diary"])
def test_a_model_cannot_name_a_path_outside_without_a_person_being_asked(tmp_path: Path, form: str) -> None:
    (tmp_path / "diary").write_text("private")
    (tmp_path / "work").mkdir()
    (tmp_path / "work/in.txt").write_text("fine")
    with made_manager(tmp_path, {"scripts/read.sh": READ}, policy=REQUIRED) as manager:
        flow, skill = manager.flow, manager.load_skill("demo")

        def decision(*words: str, agent_facing: bool = True) -> Decision:
            call = CallArguments("read", argv=words, workspace=tmp_path / "work", agent_facing=agent_facing)
            return flow.prepare(skill, call).decision

        text = form.format(tmp_path / "diary")
        assert decision(text) is Decision.ASK
        assert decision(text, agent_facing=False) is Decision.ALLOW
        assert decision("in.txt", "scripts/read.sh", str(tmp_path / "work/in.txt")) is Decision.ALLOW
