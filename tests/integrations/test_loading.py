"""What runs when a skill is loaded: what a person said yes to when exactly that list was shown, and nothing else."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from support.asking import only_pending
from support.running import kinds, records_of, wait_for
from support.skill_folders import skill_folder

from skillkit import GUARDED, STANDARD, TRUSTED, ScriptPolicy, SkillManager, World
from skillkit.approvers.callback import CallbackApprover, ChainApprover
from skillkit.approvers.store import StoreApprover
from skillkit.cli.people.trust import trust
from skillkit.core.store import request_rows as rows
from skillkit.core.store.base import moment_now
from skillkit.core.values.questions import Approver
from skillkit.integrations.functions import SkillFunctions
from skillkit.testing import ScriptedApprover
from skillkit.web.approver import WebApprover

# These facts are about asking and not about walls.
ASKING = replace(GUARDED, sandbox="off")
FILES = {"scripts/a.sh": 'echo a "$@"\n', "scripts/b.sh": "echo b\n", "scripts/c.sh": "echo c\n"}
BODY = 'Run `scripts/a.sh one "two words"`, then run `scripts/b.sh`.\n'


@contextmanager
def loading(
    folder: Path, approver: Approver | None = None, policy: ScriptPolicy = ASKING, body: str = BODY
) -> Iterator[SkillFunctions]:
    skill_folder(folder / "skills", "demo", body=body, files=FILES)
    with SkillManager(folder / "skills", "", [], [], policy=policy, state_dir=folder / "state") as manager:
        yield SkillFunctions(manager, approver=approver, session_id="s")


def outputs(tools: SkillFunctions, call_id: str | None = None) -> list[tuple[str, str]]:
    """Status and text of each command."""
    told = ET.fromstring(tools.call("load_skill", {"skill_name": "demo"}, call_id).content)
    assert told.findtext("instructions"), "the instructions always come"
    return [(each.get("status", ""), each.text or "") for each in told.iter("script_output")]


def statuses(tools: SkillFunctions, call_id: str | None = None) -> list[str]:
    return [status for status, _ in outputs(tools, call_id)]


def test_with_never_each_command_is_listed_with_its_call_and_none_runs(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_in_session")
    with loading(tmp_path, approver, replace(ASKING, run_on_load="never")) as tools:
        found = outputs(tools)
        assert [status for status, _ in found] == ["refused", "refused"]
        assert 'skills_run_script(skill_name="demo", script="scripts/a.sh", args=["one", "two words"])' in found[0][1]
        call = {"skill_name": "demo", "script": "scripts/a.sh", "args": ["one", "two words"]}
        assert not approver.requests
        assert tools.call("skills_run_script", call).content == "a one two words\n"
    assert kinds(tmp_path) == ["started", "finished"]


def test_never_is_a_rule_that_no_other_way_gets_around(tmp_path: Path) -> None:
    with loading(tmp_path, policy=replace(TRUSTED, run_on_load="never")) as tools:
        call = tools.manager.call_for("a", session_id="s", from_instructions="list")
        prepared = tools.flow.prepare(tools.manager.load_skill("demo"), call)
    assert prepared.decision.name == "DENY"
    assert "run_on_load" in prepared.reasons[0]


@pytest.mark.parametrize("policy", [ASKING, STANDARD, TRUSTED])
def test_with_trusted_nobody_is_asked_and_only_an_approved_list_runs(tmp_path: Path, policy: ScriptPolicy) -> None:
    approver = ScriptedApprover("yes_in_session")
    with loading(tmp_path, approver, replace(policy, run_on_load="trusted", sandbox="off")) as tools:
        found = outputs(tools)
        assert [status for status, _ in found] == ["refused", "refused"]
        assert "only what was approved as a list" in found[1][1]
        assert not approver.requests
        asking = SkillFunctions(tools.manager, approver=approver, session_id="s")
        asking.manager.agent_policy = replace(tools.manager.agent_policy, run_on_load="ask", approval="first_run")
        assert statuses(asking) == ["ok", "ok"]
        asking.manager.agent_policy = replace(asking.manager.agent_policy, run_on_load="trusted")
        assert statuses(asking) == ["ok", "ok"], "approved in this session"
        assert len(approver.requests) == 1


def test_trust_add_shows_the_list_and_its_yes_covers_it(tmp_path: Path) -> None:
    places = ["--skills", str(tmp_path / "skills"), "--state-dir", str(tmp_path / "state")]
    with loading(tmp_path, policy=replace(GUARDED, run_on_load="trusted")) as tools:
        assert statuses(tools) == ["refused", "refused"]
        done = CliRunner().invoke(trust, ["add", "demo", "--yes", *places])
        assert done.exit_code == 0, done.output
        assert 'on load  scripts/a.sh one "two words"' in " ".join(done.output.split("   "))
        assert statuses(tools) == ["ok", "ok"]
        CliRunner().invoke(trust, ["remove", "demo", *places[2:]])
        assert statuses(tools) == ["refused", "refused"], "and ends with the trust"


@pytest.mark.parametrize("word", ["session", "trust"])
def test_a_yes_to_another_question_does_not_answer_for_commands_on_load(tmp_path: Path, word: str) -> None:
    approver = ScriptedApprover("no") if word == "trust" else ScriptedApprover("yes_in_session", "no")
    with loading(tmp_path, approver) as tools:
        skill, flow = tools.manager.load_skill("demo"), tools.flow
        if word == "trust":  # as it was given before there was a list to show
            flow.approvals.standing.trust(
                skill="demo",
                folder=skill.base_directory,
                digest=skill.digest,
                channel="test",
                walls=flow.bounds(None),
            )
        run = {"skill_name": "demo", "script": "a"}
        assert [tools.call("skills_run_script", run).status for _ in range(2)] == ["ok", "ok"], "that is answered"
        assert statuses(tools) == ["declined", "declined"]


def test_a_session_s_yes_covers_the_list_that_was_shown_and_no_other(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_in_session", "no")
    body = "Run `scripts/a.sh {baseDir}/SKILL.md`.\n"
    with loading(tmp_path, approver, body=body) as tools:
        assert [statuses(tools) for _ in range(2)] == [["ok"], ["ok"]]
        elsewhere = replace(ASKING, working_directory="workspace")
        (tmp_path / "work").mkdir()
        tools.manager.workspace = tmp_path / "work"
        tools.manager.agent_policy = elsewhere
        assert statuses(tools) == ["declined"], "the same skill, other words"
        tools.manager.end_session_approvals()
    assert len(approver.requests) == 2


def test_a_yes_to_a_run_takes_nothing_from_what_was_said_about_the_list(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_in_session", "yes_in_session")
    with loading(tmp_path, approver) as tools:
        assert statuses(tools) == ["ok", "ok"]
        outside = tmp_path / "outside.txt"
        outside.write_text("x")
        run = {"skill_name": "demo", "script": "c", "args": [str(outside)]}
        assert tools.call("skills_run_script", run).status == "ok"
        assert statuses(tools) == ["ok", "ok"]
    assert len(approver.requests) == 2


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path / "state") as world:
        yield world


def test_where_the_question_waits_elsewhere_the_envelope_comes_at_once(tmp_path: Path, world: World) -> None:
    with loading(tmp_path, StoreApprover(world)) as tools:
        found = outputs(tools, "call-1")
        assert [status for status, _ in found] == ["waiting", "waiting"]
        assert "`skillkit approvals list`" in found[0][1]
        assert statuses(tools, "call-2") == ["waiting", "waiting"], "it is the same question"
        asked = only_pending(world)
        world.answer(asked.id, "yes_once", "page")
        assert "started" not in kinds(tmp_path), "nothing runs in the background"
        assert outputs(tools, "call-3") == [("ok", "a one two words\n"), ("ok", "b\n")]
        assert statuses(tools, "call-4") == ["waiting", "waiting"], "it was for one loading"
    started = [each.fields for each in records_of(tmp_path) if each.kind == "started"]
    assert [(each["channel"], each["answer"]) for each in started] == [("page", "yes_once")] * 2
    assert {each.fields["error"] for each in records_of(tmp_path) if each.kind == "refused"} == {"ApprovalWaitingError"}


def test_a_no_that_comes_while_nobody_waits_is_told_at_the_next_loading(tmp_path: Path, world: World) -> None:
    with loading(tmp_path, StoreApprover(world)) as tools:
        statuses(tools)
        world.answer(only_pending(world).id, "no", "page")
        assert statuses(tools) == ["declined", "declined"]


def test_the_answer_is_for_the_skill_as_it_was_shown(tmp_path: Path, world: World) -> None:
    with loading(tmp_path, StoreApprover(world)) as tools:
        statuses(tools)
        world.answer(only_pending(world).id, "yes_in_session", "page")
        (tmp_path / "skills/demo/scripts/a.sh").write_text("echo other\n")
        assert statuses(tools) == ["waiting", "waiting"]
    assert "started" not in kinds(tmp_path)


def test_the_page_s_address_stands_in_the_envelope(tmp_path: Path) -> None:
    with WebApprover(tmp_path / "state") as approver, loading(tmp_path, approver) as tools:
        (_, told), _ = outputs(tools)
        assert f"on the page {approver.page.address()} " in told
        assert "token" not in told
        assert httpx.get(approver.page.address()).status_code == 401


@pytest.mark.parametrize("is_chained", [False, True])
def test_a_person_who_is_asked_inside_the_call_is_waited_for(tmp_path: Path, world: World, is_chained: bool) -> None:
    here: Any = CallbackApprover(lambda _: "yes_once")
    with loading(tmp_path, ChainApprover(here, StoreApprover(world)) if is_chained else here) as tools:
        assert statuses(tools) == ["ok", "ok"]
        assert not world.pending()


def test_in_a_chain_the_store_comes_after_whoever_is_not_there(tmp_path: Path, world: World) -> None:
    with loading(tmp_path, ChainApprover(ScriptedApprover(), StoreApprover(world))) as tools:
        assert statuses(tools) == ["waiting", "waiting"]
        assert only_pending(world).title == "Run 2 scripts of the skill demo?"


def test_the_answer_is_kept_ten_minutes_however_late_it_came(tmp_path: Path, world: World) -> None:
    with loading(tmp_path, StoreApprover(world)) as tools:
        statuses(tools)
        asked = only_pending(world)
        world.answer(asked.id, "yes_once", "page")
        with world._store.connection() as connection:
            row = rows.newest_row(connection, asked.id)
        assert row is not None
        now = moment_now()
        assert row.waits_for_its_taker(now.after(590))
        assert not row.waits_for_its_taker(now.after(601))


def test_two_who_load_at_once_do_not_both_run_on_a_yes_for_once(tmp_path: Path, world: World) -> None:
    with loading(tmp_path, StoreApprover(world)) as tools:
        other = SkillFunctions(tools.manager, approver=StoreApprover(world), session_id="s")
        assert statuses(tools) == statuses(other) == ["waiting", "waiting"]
        world.answer(only_pending(world).id, "yes_once", "page")
        assert sorted([statuses(tools)[0], statuses(other)[0]]) == ["ok", "waiting"]


def test_another_session_does_not_take_the_answer(tmp_path: Path, world: World) -> None:
    with loading(tmp_path, StoreApprover(world)) as tools:
        statuses(tools)
        world.answer(only_pending(world).id, "yes_once", "page")
        other = SkillFunctions(tools.manager, approver=StoreApprover(world), session_id="other")
        assert statuses(other) == ["waiting", "waiting"]
        assert statuses(tools) == ["ok", "ok"], "control: its own does"


def test_the_list_of_a_session_without_a_name_ends_with_its_manager(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_in_session", "no")
    with loading(tmp_path, approver) as tools:
        unnamed = SkillFunctions(tools.manager, approver=approver)
        assert [statuses(unnamed) for _ in range(2)] == [["ok", "ok"]] * 2
        tools.manager.end_session_approvals()
        assert statuses(unnamed) == ["declined", "declined"]


def test_run_on_load_has_an_order_that_a_project_may_only_tighten() -> None:
    from skillkit.core.values.policy import loosenings

    order = ("ask", "trusted", "never")
    for own in order:
        for given in order:
            is_loose = [
                each.key for each in loosenings(replace(GUARDED, run_on_load=own), replace(GUARDED, run_on_load=given))
            ]
            assert is_loose == (["policy.run_on_load"] if order.index(given) < order.index(own) else [])


def test_a_structure_tells_a_program_that_a_run_waits(tmp_path: Path, world: World) -> None:
    from skillkit.integrations.mcp.local import LocalApprover

    with loading(tmp_path, LocalApprover(tmp_path / "state", 0.1)) as tools:
        result = tools.call("skills_run_script", {"skill_name": "demo", "script": "b"})
        assert (result.status, json.loads(result.content)["status"]) == ("waiting", "waiting")
        world.answer(only_pending(world).id, "yes_once", "page")
        assert tools.call("skills_run_script", {"skill_name": "demo", "script": "b"}).content == "b\n"
        assert wait_for(lambda: not world.pending())
