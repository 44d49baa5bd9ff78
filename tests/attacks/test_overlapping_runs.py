"""Two runs that overlap in one workspace: what the first changed is not what the second takes for the person's."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from support.running import wait_for
from support.skill_folders import skill_folder
from support.workspaces import WALLS, content_below

from skillkit import TRUSTED, ScriptPolicy, SkillManager

# How the first changes a guarded file that is there.
WAYS = {
    "in place": "echo evil > sub/CLAUDE.md",
    "by another in its place": "echo evil > free/new; mv -f free/new sub/CLAUDE.md",
    "by another folder in its place": "mkdir free/new; echo evil > free/new/CLAUDE.md; mv sub free/old; mv free/new sub",
    "with a further name": "ln sub/CLAUDE.md free/notes; echo evil > free/notes",
    "gone": "rm sub/CLAUDE.md",
}
PLANT = 'cd "$SKILL_WORKSPACE"; {}; touch free/planted; until [ -e free/begun ]; do sleep 0.05; done\n'
WAIT = 'cd "$SKILL_WORKSPACE"; touch free/begun; until [ -e free/over ]; do sleep 0.05; done\n'


def overlap(folder: Path, way: str, policy: ScriptPolicy) -> dict[str, str]:
    """The second begins when the first has changed the file, and ends after it."""
    workspace = folder / "workspace"
    (workspace / "free").mkdir(parents=True)
    (workspace / "sub").mkdir()
    (workspace / "sub/CLAUDE.md").write_text("good\n")
    skill_folder(folder / "skills", "demo", files={"scripts/first.sh": PLANT.format(way), "scripts/second.sh": WAIT})
    with SkillManager(
        folder / "skills", "", [], [], workspace=workspace, policy=policy, state_dir=folder / "state"
    ) as manager:
        runs = [
            threading.Thread(target=manager.execute_skill_script, args=("demo", name)) for name in ("first", "second")
        ]
        runs[0].start()
        assert wait_for((workspace / "free/planted").exists)
        runs[1].start()
        runs[0].join()
        (workspace / "free/over").touch()
        runs[1].join()
    return content_below(workspace)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.usefixtures("tier")
def test_what_one_script_changed_is_not_put_back_by_another(tmp_path: Path, way: str) -> None:
    assert overlap(tmp_path / "open", WAYS[way], TRUSTED).get("sub/CLAUDE.md") != "good\n"
    assert overlap(tmp_path / "walled", WAYS[way], replace(WALLS, warm="off")).get("sub/CLAUDE.md") == "good\n"
