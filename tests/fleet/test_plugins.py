"""A skill of a plugin on workers: it travels alone, so what it uses of the rest of its plugin is refused at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.fleets import MEMORY, Fleet
from support.skill_folders import skill_folder

from skillkit import STANDARD, ScriptRefusedError, SkillManager
from skillkit.fleet import CeleryRunner, FleetRun

pytestmark = pytest.mark.slow


def plugin(folder: Path, **manifest: object) -> Path:
    (folder / ".claude-plugin").mkdir(parents=True)
    (folder / ".claude-plugin/plugin.json").write_text(json.dumps({"name": folder.name, **manifest}))
    return folder


def manager_of(fleet: Fleet, *plugins: Path) -> SkillManager:
    options: dict[str, Any] = {"policy": STANDARD, "state": fleet.address(fleet.front), "host_folders": False}
    runner = CeleryRunner(MEMORY)
    return SkillManager("", "", plugins, [], runner=runner, state_dir=fleet.folder / "front", **options)


def order(manager: SkillManager, skill: str, script: str) -> FleetRun:
    runner: Any = manager.runner
    run: FleetRun = runner.order(manager, skill, script)
    return run


def test_a_script_that_uses_the_rest_of_its_plugin_is_refused_and_others_run(quiet: Fleet, tmp_path: Path) -> None:
    root = plugin(tmp_path / "tools")
    (root / "shared.txt").write_text("shared")
    code = {"scripts/read.sh": 'cat "${CLAUDE_PLUGIN_ROOT}/shared.txt"\n'}
    skill_folder(root / "skills", "reader", files=code)
    told = "Run ${CLAUDE_PLUGIN_ROOT}/skills/plain/scripts/say.sh\n"
    skill_folder(root / "skills", "plain", files={"scripts/say.sh": "echo said\n"}, body=told)
    with manager_of(quiet, root) as manager:
        with pytest.raises(ScriptRefusedError, match=r"scripts/read.sh of 'reader' uses CLAUDE_PLUGIN_ROOT"):
            order(manager, "reader", "read")
        assert quiet.rows("select count(*) from runs") == [(0,)]
        run = order(manager, "plain", "say")
        assert quiet.worker_here().run(run.id) == "finished", "instructions name the plugin, the script does not"
        assert run.result().stdout == "said\n"
    with SkillManager("", "", [root], [], policy=STANDARD, state_dir=tmp_path / "here", host_folders=False) as here:
        assert here.load_skill("reader").metadata.plugin_root == root, "the same skill has its plugin here"


def test_a_skill_that_is_its_plugin_finds_it_there(quiet: Fleet, tmp_path: Path) -> None:
    root = plugin(tmp_path / "whole", skills="./")
    script = 'cat "$CLAUDE_PLUGIN_ROOT/shared.txt"\n'
    skill_folder(tmp_path, "whole", files={"scripts/read.sh": script, "shared.txt": "shared"})
    with manager_of(quiet, root) as manager:
        run = order(manager, "whole", "read")
        assert quiet.worker_here().run(run.id) == "finished"
        assert run.result().stdout == "shared"
