"""A host that was refused is told on every surface, with the one command that would open it; a key in its name is not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.chats import talk_with
from support.model_servers import Said
from support.network import NAME, POLICY, HostWorld, host_world
from support.running import made_manager, records_of
from support.surfaces import BODY, SURFACES, told_on

from skillkit import ScriptPolicy, SkillManager
from skillkit.core.values.hosts import NOT_LISTED, NOT_PUBLIC, HostUse
from skillkit.integrations.functions import SkillFunctions

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these walls are of Linux")

OPEN = replace(POLICY, run_on_load="ask", approval="never")
ASKING = """#!/usr/bin/env python3
import os, socket, sys
def ask(authority):
    with socket.create_connection(("127.0.0.1", 3128), 20) as s:
        s.sendall(f"CONNECT {authority} HTTP/1.1\\r\\n\\r\\n".encode())
        return s.recv(1000)
for word in "WORDS".split():
    ask(word.replace("KEY", os.environ.get("FORGE_TOKEN", "")))
sys.exit(STATUS)
"""
REMEDY = "skillkit grant demo --host other.example.com"


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostWorld]:
    with host_world(tmp_path, monkeypatch) as made:
        yield made


def manager_of(
    folder: Path, *words: str, status: int = 3, policy: ScriptPolicy = OPEN, **settings: Any
) -> SkillManager:
    script = ASKING.replace("WORDS", " ".join(words or ("other.example.com:443",))).replace("STATUS", str(status))
    made = made_manager(
        folder, {"scripts/run.py": script}, frontmatter="name: demo\ndescription: D.", policy=policy, **settings
    )
    skill = folder / "skills" / "demo" / "SKILL.md"
    skill.write_text(skill.read_text() + BODY)
    return made


class Yes:
    channel = "test"

    def ask(self, request: Any, cancel: Any = None) -> Any:
        from skillkit import OptionAnswer

        assert cancel is not None
        return OptionAnswer("yes_once", self.channel, request.created_at, request.id)


@pytest.mark.parametrize("status", [3, 0])
@pytest.mark.parametrize("surface", SURFACES)
def test_every_surface_of_a_model_tells_it(world: HostWorld, surface: str, status: int) -> None:
    if surface in ("langchain", "inline") and status == 0:
        pytest.skip("there a success is what the script printed, and nothing else")
    with manager_of(world.folder, status=status, approver=Yes()) as manager:
        told = told_on(surface, manager)
    assert f"It may not reach other.example.com:443. If it should: {REMEDY}" in told.replace("&#39;", "'")


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_the_command_line_tells_it(world: HostWorld, words: tuple[str, ...]) -> None:
    manager_of(world.folder).close()
    places = ["--skills", str(world.folder / "skills"), "--state-dir", str(world.folder / "state")]
    given = ["run", *places, "--policy", "standard", "--host", NAME, *words, "demo", "run"]
    ended = subprocess.run(
        [sys.executable, "-m", "skillkit", *given], capture_output=True, text=True, check=False, cwd=world.folder
    )
    assert ended.returncode == 3, ended.stderr
    assert REMEDY in (ended.stdout if words else ended.stderr)
    assert "other.example.com:443" in ended.stdout + ended.stderr


def test_the_chat_tells_the_model_and_the_person(world: HostWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with talk_with(world.folder, Said("!{scripts/run.py}"), Said("Done."), policy=OPEN) as story:
        manager_of(world.folder).close()
        story.manager.discover()
        story.talk.ask("Go.")
        assert REMEDY in str(story.server.bodies[-1])
        assert any(REMEDY in str(getattr(event, "line", event)) for event in story.events)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("other.example.com:443", REMEDY),
        ("other.example.com:80", REMEDY),
        ("other.example.com:8443", f"{REMEDY}:8443"),
        (f"{NAME}:8443", f"skillkit grant demo --host {NAME}:8443"),
        ("[2606:2800::1]:443", "skillkit grant demo --host 2606:2800::1"),
        ("[2606:2800::1]:8443", "skillkit grant demo --host '[2606:2800::1]:8443'"),
    ],
)
def test_what_it_says_to_type_opens_exactly_that(world: HostWorld, word: str, expected: str) -> None:
    with manager_of(world.folder, word) as manager:
        result = manager.execute_skill_script("demo", "run")
        assert result.hint.endswith(f"If it should: {expected}")
        rule = result.hosts[0].grant[1]
        manager.grant("demo", hosts=[rule])
        again = manager.execute_skill_script("demo", "run")
    assert "is not among" not in "".join(use.refused for use in again.hosts)
    assert "If it should" not in again.hint


def test_three_hosts_are_named_and_a_flood_of_them_is_not(world: HostWorld) -> None:
    with manager_of(world.folder, *(f"h{number}.example.com:443" for number in range(40))) as manager:
        result = manager.execute_skill_script("demo", "run")
    assert result.hint.count("skillkit grant") == 3
    assert len(result.hosts) == 40


def test_where_policy_lets_nobody_grant_it_the_policy_is_named(world: HostWorld) -> None:
    with manager_of(world.folder, policy=replace(OPEN, grantable=())) as manager:
        hint = manager.execute_skill_script("demo", "run").hint
    assert hint.endswith("It may not reach other.example.com:443. If it should: add it to the policy key allowed_hosts")


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (HostUse("a.example.com:443", f"a.example.com:443 {NOT_LISTED}"), ("--host", "a.example.com")),
        (HostUse("db.example.com:5432", f"db.example.com leads to 10.0.0.1, which {NOT_PUBLIC}"), ("--host", "db.example.com:5432", "--private")),
        (HostUse("x.example.com:443", f"x.example.com leads to 127.0.0.1, which {NOT_PUBLIC}, and is never opened"), ()),
        (HostUse("x.example.com:443", "x.example.com:443 cannot be reached: no route"), ()),
        (HostUse("(others)", "refused like others before"), ()),
        (HostUse("a.example.com:443"), ()),
    ],
)  # fmt: skip
def test_only_what_a_grant_would_open_has_one(use: HostUse, expected: tuple[str, ...]) -> None:
    assert use.grant == expected


@pytest.mark.parametrize("key", ["f0e1d2c3b4a5968778695a4b3c2d1e0f", "sk-MixedCaseKeyOf24Letters"])
def test_a_key_that_a_script_puts_into_a_name_is_told_nowhere(
    world: HostWorld, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("FORGE_TOKEN", key)
    with manager_of(world.folder, "KEY.example.com:443", f"KEY.{NAME}:443") as manager:
        manager.grant("demo", secrets=["FORGE_TOKEN"])
        shown = list[HostUse]()
        plain = manager.execute_skill_script("demo", "run", on_host=shown.append)
        assert key.lower() in plain.hint, "the control: a person's own program is told"
        assert key.lower() in shown[0].host
        told = told_on("functions", manager)
        answer = SkillFunctions(manager).call("skills_run_script", {"skill_name": "demo", "script": "run"})
        assert "may not reach [masked].example.com" in answer.content
    assert key.lower() not in told.lower()
    assert key.lower() not in str(records_of(world.folder)).lower(), "on record it is masked for everybody"
