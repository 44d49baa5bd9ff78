"""A model is told what a script lacked, where that is why it failed, and that only a person can give it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.running import made_manager
from support.surfaces import BODY, SURFACES, told_on

from skillkit import STANDARD, SkillManager
from skillkit.integrations.functions import SkillFunctions
from skillkit.integrations.mcp.server import NEEDS_KEY

OPEN = replace(STANDARD, run_on_load="trusted", approval="never")
LACKING = """#!/usr/bin/env python3
import os, urllib.request
key = os.environ.get("FORGE_TOKEN")
try:
    urllib.request.urlopen("https://api.forge.dev/x", timeout=3)
except OSError:
    print("it did not work")
    raise SystemExit(3)
"""
ASKS = "Only a person can give it that"
HOST = "skillkit grant demo --host api.forge.dev"
KEY = "skillkit secret set demo FORGE_TOKEN"


def manager_of(folder: Path, script: str = LACKING, name: str = "scripts/run.py", **settings: Any) -> SkillManager:
    frontmatter = "name: demo\ndescription: D."
    made = made_manager(folder, {name: script}, frontmatter=frontmatter, **{"policy": OPEN, **settings})
    skill = folder / "skills" / "demo" / "SKILL.md"
    skill.write_text(skill.read_text() + BODY)
    return made


def functions_told(manager: SkillManager, script: str = "run") -> Any:
    return SkillFunctions(manager).call("skills_run_script", {"skill_name": "demo", "script": script})


@pytest.mark.parametrize("surface", [name for name in SURFACES if name != "load_skill"])
def test_every_surface_tells_what_a_failed_script_lacked(tmp_path: Path, surface: str) -> None:
    with manager_of(tmp_path) as manager:
        told = told_on(surface, manager)
    assert HOST in told
    assert KEY in told
    assert ASKS in told


def test_the_envelope_of_a_loaded_skill_has_it_as_an_attribute_too(tmp_path: Path) -> None:
    policy = replace(OPEN, run_on_load="ask", sandbox="preferred")
    with manager_of(tmp_path, policy=policy) as manager:
        manager.approver = _Yes()
        told = told_on("load_skill", manager)
    assert 'needs="host:api.forge.dev secret:FORGE_TOKEN"' in told
    assert HOST in told
    assert ASKS in told


class _Yes:
    channel = "test"

    def ask(self, request: Any, cancel: Any = None) -> Any:
        from skillkit import OptionAnswer

        assert cancel is not None
        return OptionAnswer("yes_once", self.channel, request.created_at, request.id)


def test_programs_get_it_as_values(tmp_path: Path) -> None:
    with manager_of(tmp_path) as manager:
        answer = functions_told(manager)
        assert [(need.kind, need.name) for need in answer.needs] == [
            ("host", "api.forge.dev"),
            ("secret", "FORGE_TOKEN"),
        ]
        assert f'"{NEEDS_KEY}":[{{"kind":"host","name":"api.forge.dev"' in told_on("mcp", manager)
        assert manager.execute_skill_script("demo", "run").needs == answer.needs


def test_it_is_few_words_and_bounded(tmp_path: Path) -> None:
    keys = "\n".join(f"os.environ.get('N{number}_API_KEY')" for number in range(40))
    with manager_of(tmp_path, f"import os\n{keys}\nraise SystemExit(1)\n") as manager:
        answer = functions_told(manager)
    assert len(answer.needs) == 40
    assert "and 37 more" in answer.content
    assert len(answer.content) < 500


@pytest.mark.parametrize(
    "script",
    [
        "import os, subprocess\nos.environ.get('FORGE_TOKEN')\nsubprocess.run(['no-such-program-here'])\n",
        "import os\nos.environ.get('FORGE_TOKEN')\nos.kill(os.getpid(), 9)\n",
        "print('no needs at all'); raise SystemExit(2)\n",
        "import os\nos.environ.get('FORGE_TOKEN')\n",
    ],
    ids=["another cause", "a signal", "nothing needed", "success"],
)
def test_where_another_cause_is_known_or_nothing_is_lacking_nothing_is_said(tmp_path: Path, script: str) -> None:
    with manager_of(tmp_path, script) as manager:
        answer = functions_told(manager)
    assert not [need for need in answer.needs if need.kind != "program"]
    assert "FORGE_TOKEN" not in answer.content


@pytest.mark.parametrize("surface", [name for name in SURFACES if name != "load_skill"])
def test_an_interpreter_that_a_person_may_give_is_told_with_the_refusal(tmp_path: Path, surface: str) -> None:
    narrow = replace(OPEN, allowed_interpreters=("bash",))
    with manager_of(tmp_path, "print(1)\n", policy=narrow) as manager:
        told = told_on(surface, manager)
        answer = functions_told(manager)
    assert "skillkit grant demo --interpreter python3" in told
    assert ASKS in told
    [need] = json.loads(answer.content)["needs"]
    assert need == {"kind": "interpreter", "name": "python3", "remedy": "skillkit grant demo --interpreter python3"}
    assert [need.name for need in answer.needs] == ["python3"]


def test_where_policy_lets_nobody_give_it_nobody_is_sent_for_it(tmp_path: Path) -> None:
    closed = replace(OPEN, allowed_interpreters=("bash",), grantable=())
    with manager_of(tmp_path, "print(1)\n", policy=closed) as manager:
        answer = functions_told(manager)
    assert answer.status == "refused"
    assert "needs" not in json.loads(answer.content)
    assert ASKS not in answer.content
