"""`skillkit prepare` and `skillkit packages`, typed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.package_index import PackageIndex

from skillkit import SkillManager
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import Choice
from skillkit.core.run.tiers import machine_tiers
from skillkit.testing import skill_folder

SCRIPT = '# /// script\n# dependencies = ["zebra"]\n# ///\nimport zebra; print(zebra.VERSION)\n'


def typed(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    there = ("--state-dir", str(tmp_path / "state"))
    roots = (
        ()
        if words[:2] in (("packages", "list"), ("packages", "prune")) or words[0] == "audit"
        else ("--skills", str(tmp_path / "skills"))
    )
    return subprocess.run(
        [sys.executable, "-m", "skillkit", *words, *roots, *there], capture_output=True, text=True, check=False
    )


def test_prepare_list_run_remove(index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index.add("zebra", "1.0")
    for name in ("animals", "more-animals"):
        skill_folder(tmp_path / "skills", name, {"scripts/run.py": SCRIPT})
    planned = typed(tmp_path, "prepare", "animals", "--dry-run")
    assert "zebra 1.0, 1 kB, 100 days old, declared in scripts/run.py:2" in planned.stdout, planned.stderr
    unasked = typed(tmp_path, "prepare", "animals")
    assert unasked.returncode == 126, unasked.stderr
    assert unasked.stderr.endswith("run it in a terminal, or look at it first and add --yes.\n")
    for name in ("animals", "more-animals"):
        done = typed(tmp_path, "prepare", name, "--yes", "--json")
        assert json.loads(done.stdout)["status"] == "ready", done.stderr
    told = typed(tmp_path, "audit", "tail").stdout
    assert [line.split()[3:] for line in told.splitlines()[2:4]] == [
        ["started", "animals", "(packages)", "yes", "once", "by", "flag"],
        ["finished", "animals", "(packages)", "prepared"],
    ], told
    shown = json.loads(typed(tmp_path, "audit", "show", "2", "--json").stdout)["record"]["fields"]
    assert shown["locks"]["python"]["packages"] == ["zebra 1.0"]
    assert typed(tmp_path, "run", "animals", "run", "--yes").stdout == "1.0\n"
    (listed,) = json.loads(typed(tmp_path, "packages", "list", "--json").stdout)["environments"]
    assert (listed["skills"], listed["packages"]) == (["animals", "more-animals"], ["zebra 1.0"])
    forgot = json.loads(typed(tmp_path, "packages", "remove", "animals", "--json").stdout)
    assert (forgot["forgot"], forgot["removed"]) == ("animals", [])
    assert "needs_packages" in typed(tmp_path, "run", "animals", "run", "--yes", "--json").stdout
    landlock = next((each.sandbox for each in machine_tiers() if each.tier == "landlock"), None)
    if landlock is not None:
        monkeypatch.setattr(tiers, "this_machines", Choice({"landlock": lambda: landlock}))
        with SkillManager("", "", [], [tmp_path / "skills"], state_dir=tmp_path / "state") as manager:
            result = manager.execute_skill_script("more-animals", "run")
            assert (result.isolation.tier, result.stdout) == ("landlock", "1.0\n"), result.stderr
    (tmp_path / "skills" / "more-animals").rename(tmp_path / "elsewhere")
    (gone,) = json.loads(typed(tmp_path, "packages", "prune", "--json").stdout)["removed"]
    assert (gone["key"], gone["bytes"] > 0) == (listed["key"], True)
    assert typed(tmp_path, "packages", "prune").stdout == "Removed 0 environments, 0.0 MB.\n"
    assert typed(tmp_path, "packages", "list").stdout == "No packages are prepared.\n"
