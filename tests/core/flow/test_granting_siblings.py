"""Code of another skill of the same plugin: told, offered as a folder, given as it is, and lost once it changes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.running import records_of
from support.skill_folders import skill_folder

from skillkit import GUARDED, STANDARD, Grant, OptionAnswer, OptionRequest, SkillManager
from skillkit.core.find.needs.siblings import sibling_folder
from skillkit.core.values.questions import SAME_AGAIN

BY_FILE = """#!/usr/bin/env python3
import sys
from pathlib import Path
HERE = Path(__file__).resolve().parent
OTHER = HERE.parent.parent / "other" / "scripts"
sys.path.insert(0, str(OTHER))
from helper import word
print(word())
"""
BY_NAME = """#!/usr/bin/env python3
import os, runpy
print(runpy.run_path(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "other", "scripts", "helper.py"))["word"]())
"""
BY_SHELL = """#!/usr/bin/env bash
DIR="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$DIR/../../other/scripts/helper.sh"
word
"""
BY_NODE = """const { word } = require("../../other/scripts/helper.js");
console.log(word());
"""
BY_JOIN = """const path = require("path");
const { word } = require(path.join(__dirname, "..", "..", "other", "scripts", "helper.js"));
console.log(word());
"""
BY_PLUGIN = """#!/usr/bin/env bash
source "${CLAUDE_PLUGIN_ROOT}/skills/other/scripts/helper.sh"
word
"""
HELPERS = {
    "scripts/helper.py": "def word():\n    return 'of the other'\n",
    "scripts/helper.sh": "word() { echo 'of the other'; }\n",
    "scripts/helper.js": "exports.word = () => 'of the other';\n",
}
SCRIPTS = {
    "by file": ("scripts/run.py", BY_FILE),
    "by name": ("scripts/run.py", BY_NAME),
    "by shell": ("scripts/run.sh", BY_SHELL),
    "by node": ("scripts/run.js", BY_NODE),
    "by join": ("scripts/run.js", BY_JOIN),
    "by plugin": ("scripts/run.sh", BY_PLUGIN),
}


class Person:
    channel = "person"

    def __init__(self, *answers: tuple[str, Iterable[str]]) -> None:
        self.answers = list(answers)
        self.asked: list[OptionRequest] = []

    def ask(self, request: OptionRequest, cancel: Any = None) -> OptionAnswer:
        assert cancel is not None
        self.asked.append(request)
        option, ticks = self.answers.pop(0)
        given = [tick.id for tick in request.grants if tick.id.startswith(tuple(ticks))] if ticks else []
        return OptionAnswer(option, self.channel, time.time(), request.id, tuple(given))

    @property
    def offered(self) -> list[str]:
        return [tick.id for tick in self.asked[-1].grants]


def plugin(folder: Path, script: tuple[str, str] = SCRIPTS["by file"]) -> Path:
    root = folder / "plugin"
    (root / ".claude-plugin").mkdir(parents=True, exist_ok=True)
    (root / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": "tools", "version": "1.0.0"}))
    skill_folder(root / "skills", "demo", files={script[0]: script[1]})
    skill_folder(root / "skills", "other", files=HELPERS)
    return root


def manager_of(folder: Path, **settings: Any) -> SkillManager:
    given = {"policy": STANDARD, "state_dir": folder / "state", **settings}
    return SkillManager("", "", [folder / "plugin"], [], **given)


def other_of(folder: Path) -> Path:
    return (folder / "plugin" / "skills" / "other").resolve()


@pytest.mark.parametrize("way", SCRIPTS)
def test_a_script_that_uses_its_sibling_needs_that_folder_and_works_with_it(tmp_path: Path, way: str) -> None:
    plugin(tmp_path, SCRIPTS[way])
    with manager_of(tmp_path) as manager:
        [need] = [need for need in manager.needs_of("demo", "run") if need.kind == "read"]
        assert (need.name, need.source, need.is_met) == (str(other_of(tmp_path)), "inferred", False)
        assert need.remedy == f"skillkit grant demo --read {other_of(tmp_path)}"
        failed = manager.execute_skill_script("demo", "run")
        assert not failed.success
        assert str(other_of(tmp_path)) in [each.name for each in failed.needs]
        assert str(other_of(tmp_path)) in failed.hint
        assert "prepare" not in failed.hint
        manager.grant("demo", read=[other_of(tmp_path)])
        assert [need.is_met for need in manager.needs_of("demo", "run") if need.kind == "read"] == [True]
        ran = manager.execute_skill_script("demo", "run")
        assert (ran.stdout.strip(), ran.exit_code) == ("of the other", 0), ran.stderr


def test_it_is_a_tick_with_a_warning_and_a_yes_opens_it_for_one_run(tmp_path: Path) -> None:
    plugin(tmp_path)
    person = Person(("yes_once", ["read:"]), ("yes_once", ()))
    with manager_of(tmp_path, policy=GUARDED, approver=person, session_id="s") as manager:
        assert manager.execute_skill_script("demo", "run").stdout == "of the other\n"
        [tick] = person.asked[0].grants
        assert tick.id.startswith(f"read:{other_of(tmp_path)} sha256:")
        assert tick.label.startswith(f"read {other_of(tmp_path)}, as it is now (")
        assert "Code of another skill" in tick.warning
        assert not manager.execute_skill_script("demo", "run").success
    started = next(record for record in records_of(tmp_path) if record.kind == "started")
    assert started.fields["ticks"] == {"read": [tick.id.removeprefix("read:")]}, "what it held is on record"


def test_once_the_sibling_changes_the_grant_does_not_hold_and_the_same_again_gives_it_as_it_is(tmp_path: Path) -> None:
    plugin(tmp_path)
    person = Person(("yes_in_session", ["read:"]), ("yes_once", [SAME_AGAIN]), ("yes_once", ()))
    with manager_of(tmp_path, policy=GUARDED, approver=person, session_id="s") as manager:
        assert manager.execute_skill_script("demo", "run").success
        assert manager.execute_skill_script("demo", "run").success
        assert len(person.asked) == 1
        (other_of(tmp_path) / "scripts" / "helper.py").write_text("def word():\n    return 'changed'\n")
        # Nobody has seen this code: the word for the session does not cover it.
        assert manager.execute_skill_script("demo", "run").stdout == "changed\n"
        assert len(person.asked) == 2
        assert SAME_AGAIN in person.offered
        assert not manager.execute_skill_script("demo", "run").success


def test_a_lasting_grant_is_lost_with_a_change_and_given_again_by_the_same_command(tmp_path: Path) -> None:
    plugin(tmp_path)
    helper = other_of(tmp_path) / "scripts" / "helper.py"
    with manager_of(tmp_path) as manager:
        manager.grant("demo", read=[other_of(tmp_path)])
        assert manager.execute_skill_script("demo", "run").success
        helper.write_text("def word():\n    return 'changed'\n")
        assert not manager.execute_skill_script("demo", "run").success
        assert [need.is_met for need in manager.needs_of("demo", "run") if need.kind == "read"] == [False]
        manager.grant("demo", read=[other_of(tmp_path)])
        assert manager.execute_skill_script("demo", "run").stdout == "changed\n"
        assert len(manager.grants("demo")) == 1, "what the old content had is forgotten"
        assert [grant.name for grant in manager.revoke("demo", Grant("read", str(other_of(tmp_path))))]
        assert not manager.execute_skill_script("demo", "run").success


def test_an_answer_about_the_old_content_is_none_for_the_new(tmp_path: Path) -> None:
    plugin(tmp_path)
    with manager_of(tmp_path, policy=GUARDED, session_id="s") as manager:
        before = manager.prepare_skill_script("demo", "run")
        (other_of(tmp_path) / "scripts" / "helper.py").write_text("def word():\n    return 'changed'\n")
        after = manager.prepare_skill_script("demo", "run")
        assert before.request is not None
        assert after.request is not None
        assert before.request.id != after.request.id
        answer = OptionAnswer("yes_once", "x", time.time(), before.request.id, (before.request.grants[0].id,))
        result = manager.complete_skill_script(before, answer)
        assert "changed" not in result.stdout, "what was ticked is gone, and what is there nobody ticked"


def test_what_runs_is_the_copy_that_was_looked_at(tmp_path: Path) -> None:
    """The sibling changes after the walls were put up: the run does not see it."""
    slow = BY_FILE.replace("import sys\n", "import sys, time\ntime.sleep(1)\n")
    plugin(tmp_path, ("scripts/run.py", f"print('ready', flush=True)\n{slow}"))
    helper = other_of(tmp_path) / "scripts" / "helper.py"

    def change(_: str, data: bytes) -> None:
        if b"ready" in data:
            helper.write_text("def word():\n    return 'planted'\n")

    with manager_of(tmp_path) as manager:
        if manager.flow.tier != "bubblewrap":
            pytest.skip("only walls with mounts show a copy")
        manager.grant("demo", read=[other_of(tmp_path)])
        ran = manager.execute_skill_script("demo", "run", on_output=change)
        assert "of the other" in ran.stdout
        assert "planted" not in ran.stdout
        assert "planted" in helper.read_text(), "the control: it was really changed meanwhile"


def test_what_the_workspace_shows_anyway_is_met(tmp_path: Path) -> None:
    plugin(tmp_path)
    with manager_of(tmp_path, workspace=tmp_path / "plugin") as manager:
        assert [need.is_met for need in manager.needs_of("demo", "run") if need.kind == "read"] == [True]
        assert manager.execute_skill_script("demo", "run").stdout == "of the other\n"


def test_a_folder_of_the_plugin_that_is_no_skill_is_offered_by_itself(tmp_path: Path) -> None:
    root = plugin(tmp_path, ("scripts/run.sh", 'source "${CLAUDE_PLUGIN_ROOT}/lib/deep/x.sh"\n'))
    (root / "lib" / "deep").mkdir(parents=True)
    (root / "lib" / "deep" / "x.sh").write_text("echo of the plugin\n")
    with manager_of(tmp_path) as manager:
        [need] = [need for need in manager.needs_of("demo", "run") if need.kind == "read"]
        assert need.name == str((root / "lib").resolve())
        [grant] = manager.grant("demo", read=[need.name])
        assert grant.content
        assert manager.execute_skill_script("demo", "run").stdout == "of the plugin\n"
        (root / "lib" / "deep" / "x.sh").write_text("echo changed\n")
        assert not manager.execute_skill_script("demo", "run").success


def test_beside_a_skill_without_a_plugin_only_skills_count(tmp_path: Path) -> None:
    skills = tmp_path / "skills"
    skill_folder(skills, "demo", files={"scripts/run.py": BY_FILE})
    helper = skills / "other" / "scripts" / "helper.py"
    helper.parent.mkdir(parents=True)
    helper.write_text(HELPERS["scripts/helper.py"])
    with SkillManager(skills, "", [], [], policy=STANDARD, state_dir=tmp_path / "state") as manager:
        assert not [need for need in manager.needs_of("demo", "run") if need.kind == "read"]
        skill_folder(skills, "other", files=HELPERS)
        assert [need.name for need in manager.needs_of("demo", "run") if need.kind == "read"] == [str(skills / "other")]


@pytest.mark.parametrize(
    "name",
    [
        "../../../../../../etc/passwd",
        "../../..",
        "..",
        "../demo/scripts",
        "../../.git/hooks",
        "../linked",
        "../../away",
    ],
)
def test_no_name_leads_elsewhere_than_to_a_folder_of_the_plugin(tmp_path: Path, name: str) -> None:
    root = plugin(tmp_path)
    secret = tmp_path / "secret"
    skill_folder(tmp_path, "secret")
    (root / "skills" / "linked").symlink_to(secret)
    (root / "away").symlink_to(secret)
    (root / ".git" / "hooks").mkdir(parents=True)
    own = root / "skills" / "demo"
    assert sibling_folder(name, own, root) == ""
    assert sibling_folder(name, own, None) == ""
    assert sibling_folder("../other", own, root) == str(other_of(tmp_path)), "the control"


def test_a_closed_place_is_not_offered_whatever_it_looks_like(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sibling that holds keys, as a home folder does, stays closed: told, not offered, and refused when it is named."""
    plugin(tmp_path)
    (other_of(tmp_path) / ".ssh").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    person = Person(("yes_once", ["read:"]))
    with manager_of(tmp_path, policy=GUARDED, approver=person, session_id="s") as manager:
        assert not manager.execute_skill_script("demo", "run").success
        assert person.offered == []
        with pytest.raises(Exception, match="never opened"):
            manager.grant("demo", read=[other_of(tmp_path)])


def test_where_walls_have_no_mounts_it_works_unasked_and_is_never_offered_for_a_copy(tmp_path: Path, tier: str) -> None:
    plugin(tmp_path)
    person = Person(("yes_once", ()))
    with manager_of(tmp_path) as manager:
        manager.grant("demo", read=[other_of(tmp_path)])
        ran = manager.execute_skill_script("demo", "run")
        assert (ran.isolation.tier, ran.stdout) == (tier, "of the other\n")
        manager.revoke("demo")
    with manager_of(tmp_path, policy=GUARDED, approver=person, session_id="s") as manager:
        manager.execute_skill_script("demo", "run")
        assert bool(person.offered) is (tier == "bubblewrap")
