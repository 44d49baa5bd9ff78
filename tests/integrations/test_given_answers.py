"""A framework asks its person by its own means: the question of a call, and the call with its answer."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.running import kinds, records_of
from support.skill_folders import skill_folder

from skillkit import GUARDED, LOCKED, TRUSTED, OptionAnswer, OptionRequest, ScriptPolicy, SkillManager
from skillkit.integrations.functions import ScriptToolResult, SkillFunctions
from skillkit.integrations.loading import commands_digest, commands_on_load
from skillkit.testing import ScriptedApprover

ASKING = replace(GUARDED, sandbox="off")
FILES = {"scripts/a.sh": 'echo a "$@"\n', "scripts/b.sh": "echo b\n"}
BODY = "Run `bash scripts/a.sh one`.\n\nRun `bash scripts/b.sh`.\n"
RUN, LOAD = "skills_run_script", "load_skill"
GIVEN: dict[str, dict[str, Any]] = {
    RUN: {"skill_name": "demo", "script": "scripts/a.sh", "args": ["x"]},
    LOAD: {"skill_name": "demo"},
}
BOTH = pytest.mark.parametrize("tool", [RUN, LOAD])


@contextmanager
def functions(
    folder: Path, policy: ScriptPolicy | None = ASKING, session: str | None = "s", **settings: Any
) -> Iterator[SkillFunctions]:
    if not (folder / "skills/demo").exists():
        skill_folder(folder / "skills", "demo", body=BODY, files=FILES)
    with SkillManager(folder / "skills", "", [], [], policy=policy, state_dir=folder / "state") as manager:
        yield SkillFunctions(manager, session_id=session, **settings)


def asked(tools: SkillFunctions, tool: str, call_id: str | None = "c1") -> OptionRequest:
    question = tools.question(tool, GIVEN[tool], call_id)
    assert question is not None
    return question


def statuses(result: ScriptToolResult) -> set[str | None]:
    """Of the run, or of every command that loading was to run."""
    if not result.content.startswith("<skill_context"):
        return {result.status}
    return {each.get("status") for each in ET.fromstring(result.content).iter("script_output")}


def said(folder: Path) -> set[tuple[str, Any, Any]]:
    """Kind, answer and channel of what is on record about beginnings."""
    found = [record for record in records_of(folder) if record.kind != "finished"]
    return {(each.kind, each.fields["answer"], each.fields["channel"]) for each in found}


def change(folder: Path) -> None:
    (folder / "skills/demo/scripts/b.sh").write_text("echo changed\n")


@BOTH
def test_a_question_is_the_one_that_a_person_would_be_asked_and_leaves_nothing(tmp_path: Path, tool: str) -> None:
    person = ScriptedApprover("no")
    with functions(tmp_path, approver=person) as tools:
        question = asked(tools, tool)
        assert kinds(tmp_path) == []
        tools.call(tool, GIVEN[tool], "c1")
    assert [each.id for each in person.requests] == [question.id]
    assert [option.id for option in question.options] == ["yes_once", "yes_in_session", "no"]
    assert len(question.context["prompt"]["commands"]) == (1 if tool == RUN else 2)
    assert question.expires_at > question.created_at > 0
    json.dumps(question.context)


@BOTH
@pytest.mark.parametrize(
    ("option_id", "status", "kind"), [("yes_once", "ok", "started"), ("no", "declined", "refused")]
)
def test_an_option_s_id_answers_the_question_that_was_asked_about_the_call(
    tmp_path: Path, tool: str, option_id: str, status: str, kind: str
) -> None:
    with functions(tmp_path) as tools:
        asked(tools, tool)
        assert statuses(tools.call(tool, json.dumps(GIVEN[tool]), "c1", answer=option_id)) == {status}
    assert said(tmp_path) == {(kind, option_id, "framework")}


@BOTH
def test_an_answer_names_its_channel_and_nobody_else_is_asked(tmp_path: Path, tool: str) -> None:
    person = ScriptedApprover("no")
    with functions(tmp_path, approver=person) as tools:
        answer = OptionAnswer("yes_once", "slack", time.time(), asked(tools, tool).id)
        assert statuses(tools.call(tool, GIVEN[tool], "c1", answer=answer)) == {"ok"}
    assert person.requests == []
    assert said(tmp_path) == {("started", "yes_once", "slack")}


@BOTH
@pytest.mark.parametrize("by_id", [True, False])
def test_an_answer_about_a_skill_that_changed_meanwhile_is_refused(tmp_path: Path, tool: str, by_id: bool) -> None:
    with functions(tmp_path) as tools:
        question = asked(tools, tool)
        answer = "yes_once" if by_id else OptionAnswer("yes_once", "framework", time.time(), question.id)
        change(tmp_path)
        assert statuses(tools.call(tool, GIVEN[tool], "c1", answer=answer)) == {"refused"}
        assert said(tmp_path) == {("refused", "yes_once", "framework")}
        # Asked again about what it is now, the same answer counts.
        asked(tools, tool)
        assert statuses(tools.call(tool, GIVEN[tool], "c1", answer="yes_once")) == {"ok"}


@BOTH
def test_an_answer_is_for_its_own_call(tmp_path: Path, tool: str) -> None:
    with functions(tmp_path) as tools:
        asked(tools, tool)
        assert statuses(tools.call(tool, GIVEN[tool], "c2", answer="yes_once")) == {"refused"}
        other = {"skill_name": "demo", "script": "scripts/b.sh"}
        assert tools.call(RUN, other, "c1", answer="yes_once").status == "refused"
    with functions(tmp_path, session="another") as tools:
        elsewhere = asked(tools, tool).id
    with functions(tmp_path) as tools:
        assert statuses(tools.call(tool, GIVEN[tool], "c1", answer="yes_once", question_id=elsewhere)) == {"refused"}
    assert "started" not in kinds(tmp_path)


def test_an_answer_to_one_of_several_commands_is_none_to_all(tmp_path: Path) -> None:
    with functions(tmp_path) as tools:
        # The very command that loading lists first, asked about alone.
        skill, flow = tools.manager.load_skill("demo"), tools.manager.agent_flow
        together = commands_digest(commands_on_load(skill, flow.policy))
        given = {"argv": ("one",), "session_id": "s", "agent_facing": True, "call_id": "c1"}
        call = tools.manager.call_for("scripts/a.sh", **given, from_instructions=together)  # type: ignore[arg-type]
        alone = flow.prepare(skill, call)
        assert alone.request is not None
        result = tools.call(LOAD, GIVEN[LOAD], "c1", answer="yes_once", question_id=alone.request.id)
        assert statuses(result) == {"refused"}


@BOTH
def test_a_yes_for_one_run_is_used_up_by_it_until_it_is_asked_again(tmp_path: Path, tool: str) -> None:
    with functions(tmp_path) as tools:
        question = asked(tools, tool, None)
        for question_id in ("", question.id):
            first, second = [
                statuses(tools.call(tool, GIVEN[tool], answer="yes_once", question_id=question_id)) for _ in range(2)
            ]
            assert (first, second) == ({"ok"}, {"refused"})
            assert asked(tools, tool, None).id == question.id


@BOTH
def test_a_yes_for_the_session_leaves_nothing_to_ask(tmp_path: Path, tool: str) -> None:
    with functions(tmp_path) as tools:
        asked(tools, tool)
        assert statuses(tools.call(tool, GIVEN[tool], "c1", answer="yes_in_session")) == {"ok"}
        assert tools.question(tool, GIVEN[tool], "c2") is None
        change(tmp_path)
        assert tools.question(tool, GIVEN[tool], "c2") is not None


@BOTH
def test_a_no_counts_though_somebody_s_yes_covers_the_call_by_now(tmp_path: Path, tool: str) -> None:
    with functions(tmp_path) as tools:
        asked(tools, tool, "c1")
        asked(tools, tool, "c2")
        tools.call(tool, GIVEN[tool], "c1", answer="yes_in_session")
        assert statuses(tools.call(tool, GIVEN[tool], "c2", answer="no")) == {"declined"}
        assert statuses(tools.call(tool, GIVEN[tool], "c3", answer="no")) == {"declined"}
    assert ("refused", "no", "framework") in said(tmp_path)


def test_a_yes_to_what_is_not_asked_any_more_is_kept_nowhere(tmp_path: Path) -> None:
    with functions(tmp_path, policy=TRUSTED) as tools:
        assert tools.question(RUN, GIVEN[RUN], "c1") is None
        assert tools.call(RUN, GIVEN[RUN], "c1", answer="yes_in_session").status == "ok"
    assert said(tmp_path) == {("started", None, None)}
    with functions(tmp_path) as tools:
        assert tools.question(RUN, GIVEN[RUN], "c1") is not None


@pytest.mark.parametrize("answer", ["", "maybe", "YES_ONCE"])
@BOTH
def test_anything_else_is_no_yes(tmp_path: Path, tool: str, answer: str) -> None:
    with functions(tmp_path) as tools:
        asked(tools, tool)
        assert statuses(tools.call(tool, GIVEN[tool], "c1", answer=answer)) == {"refused"}
    assert "started" not in kinds(tmp_path)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        (RUN, {"skill_name": "demo", "script": "gone.sh"}),
        (RUN, {"skill_name": "gone", "script": "a.sh"}),
        (RUN, {"skill_name": "demo"}),
        (RUN, "no JSON"),
        (LOAD, {"skill_name": "gone"}),
        ("read_skill_file", {"skill_name": "demo", "path": "SKILL.md"}),
        ("no_tool", {}),
    ],
)
def test_where_nothing_would_be_asked_there_is_no_question(tmp_path: Path, name: str, given: Any) -> None:
    with functions(tmp_path) as tools:
        assert tools.question(name, given) is None
        assert kinds(tmp_path) == []
    with functions(tmp_path, policy=LOCKED) as tools:
        assert tools.question(RUN, GIVEN[RUN]) is None
        assert statuses(tools.call(RUN, GIVEN[RUN], answer="yes_once")) == {"refused"}
    with functions(tmp_path, run_scripts=False) as tools:
        assert tools.question(LOAD, GIVEN[LOAD]) is None


@BOTH
def test_the_async_twins_do_the_same(tmp_path: Path, tool: str) -> None:
    async def main() -> set[str | None]:
        question = await tools.aquestion(tool, GIVEN[tool], "c1")
        assert question is not None
        return statuses(await tools.acall(tool, GIVEN[tool], "c1", answer="yes_once"))

    with functions(tmp_path) as tools:
        assert asyncio.run(main()) == {"ok"}


ELSEWHERE = """
import json, sys
from dataclasses import replace
from skillkit import GUARDED, SkillManager
from skillkit.integrations.functions import SkillFunctions
folder, tool, given, question_id = sys.argv[1:]
policy = replace(GUARDED, sandbox="off")
with SkillManager(f"{folder}/skills", "", [], [], policy=policy, state_dir=f"{folder}/state") as manager:
    tools = SkillFunctions(manager, session_id="s")
    print(tools.call(tool, given, "c1", answer="yes_once", question_id=question_id).content)
"""


@BOTH
@pytest.mark.parametrize("is_changed", [False, True])
def test_an_answer_outlives_the_process_that_asked_for_it(tmp_path: Path, tool: str, is_changed: bool) -> None:
    with functions(tmp_path) as tools:
        question_id = asked(tools, tool).id
    if is_changed:
        change(tmp_path)
    words = [sys.executable, "-c", ELSEWHERE, str(tmp_path), tool, json.dumps(GIVEN[tool]), question_id]
    ended = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert ("a x" if tool == RUN else "a one") in ended.stdout or is_changed
    assert said(tmp_path) == {("refused" if is_changed else "started", "yes_once", "framework")}


def test_after_a_restart_an_option_s_id_alone_answers_nothing(tmp_path: Path) -> None:
    with functions(tmp_path) as tools:
        asked(tools, RUN)
    with functions(tmp_path) as tools:
        assert tools.call(RUN, GIVEN[RUN], "c1", answer="yes_once").status == "refused"
