"""Packages of Node, with a registry of our own on loopback, in either kind of walls."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.package_index import serving_registry
from support.running import needs

from skillkit.core.manager import SkillManager
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import Choice
from skillkit.core.run.tiers import machine_tiers
from skillkit.packages.prepare import prepare_packages
from skillkit.testing import ScriptedApprover, skill_folder

REQUIRE, IMPORT = "console.log(require('zebra'))", "import zebra from 'zebra'; console.log(zebra)"


def test_packages_of_node_are_found_by_require_and_import_and_their_install_scripts_do_not_run(
    manager: SkillManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("npm")
    files = {"package.json": '{"dependencies": {"zebra": "^1.0.0"}}', "scripts/a.js": REQUIRE, "scripts/b.mjs": IMPORT}
    skill_folder(manager.roots[0].path, "animals", files)
    with serving_registry(f"touch {tmp_path / 'ran'}") as address:
        monkeypatch.setenv("npm_config_registry", address)
        approver = ScriptedApprover("yes_once")
        prepare_packages(manager, "animals", approver=approver)
    assert "zebra 1.0.0, 4 kB" in approver.requests[0].message
    assert "declared in package.json:1" in approver.requests[0].message
    assert not (tmp_path / "ran").exists()
    for script in ("a.js", "b.mjs"):
        result = manager.execute_skill_script("animals", script)
        assert result.stdout == "striped\n", result.stderr
    landlock = next((each.sandbox for each in machine_tiers() if each.tier == "landlock"), None)
    if landlock is not None:
        monkeypatch.setattr(tiers, "this_machines", Choice({"landlock": lambda: landlock}))
        with SkillManager(
            "", "", [], [tmp_path / "skills"], policy=manager.policy, state_dir=tmp_path / "state"
        ) as other:
            found = other.execute_skill_script("animals", "a.js")
            assert found.stdout == "striped\n", found.stderr
            assert any("require() alone" in note for note in found.isolation.degraded)
            assert not other.execute_skill_script("animals", "b.mjs").success
