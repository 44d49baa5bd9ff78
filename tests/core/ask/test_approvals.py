"""A person between decision and run: what they are asked, what their word covers, and what happens without it."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.approving import ASKING, FILES, asking_manager, change, run, skill, trust_demo
from support.running import kinds, made_manager, only_record, records_of, wait_for

from skillkit import (
    GUARDED,
    STANDARD,
    TRUSTED,
    ApprovalDeclinedError,
    ApprovalUnavailableError,
    OptionAnswer,
    OptionRequest,
    ScriptPolicy,
    ScriptRefusedError,
    SkillManager,
    ToolRestrictionError,
    World,
)
from skillkit.approvers.callback import CallbackApprover
from skillkit.approvers.store import StoreApprover
from skillkit.core.paths.trees import remove_tree
from skillkit.core.store.state import StateStore
from skillkit.core.store.trust import StandingApprovals
from skillkit.core.values.questions import OPTIONS, Prompt
from skillkit.present.glance import news_of
from skillkit.testing import ScriptedApprover

FIRST_RUN = "Policy asks a person before a skill's first run."
UNCOVERED = "Policy asks a person again, because no earlier approval covers this run."
AFTER_ONE = "Policy asks a person again, because the last yes was for one run."
CHANGED = "Policy asks a person again, because the skill changed since it was approved."

# What the seeds ask for.


def test_any_flow_can_ask_a_person_to_choose_and_any_process_of_the_world_can_answer(tmp_path: Path) -> None:
    with World(tmp_path / "state") as asker, World(tmp_path / "state") as other, ThreadPoolExecutor(1) as pool:
        asked = pool.submit(asker.ask, "Deploy?", "Build 812 is green.", [("go", "Deploy"), ("wait", "Not now")])
        assert wait_for(other.pending)
        (request,) = other.pending()
        assert [(option.id, option.label) for option in request.options] == [("go", "Deploy"), ("wait", "Not now")]
        other.answer(request.id, "wait", "window")
        answer = asked.result(30)
    assert (answer.option_id, answer.channel) == ("wait", "window")


def test_nothing_runs_before_a_person_was_asked(tmp_path: Path) -> None:
    ran_while_asked: list[list[str]] = []

    def look_and_agree(_: OptionRequest) -> str:
        ran_while_asked.append(kinds(tmp_path))
        return "yes_once"

    with asking_manager(tmp_path, CallbackApprover(look_and_agree)) as manager:
        assert run(manager).stdout == "ran\n"
    assert ran_while_asked == [[]]
    assert kinds(tmp_path) == ["started", "finished"]


def test_the_question_offers_exactly_three_options_and_shows_what_would_run(tmp_path: Path) -> None:
    approver = ScriptedApprover("no")
    with asking_manager(tmp_path, approver) as manager, pytest.raises(ApprovalDeclinedError):
        run(manager, "--all")
    (request,) = approver.requests
    offered = [(option.id, option.label) for option in request.options]
    assert offered == [("yes_once", "Yes once"), ("yes_in_session", "Yes in this session"), ("no", "No")]
    prompt = Prompt.from_context(request.context)
    assert prompt is not None
    assert (prompt.skill, prompt.origin, prompt.changes) == ("demo", str(skill(tmp_path).resolve()), None)
    (command,) = prompt.commands
    assert (command.script, command.argv, command.source) == ("scripts/run.sh", ("--all",), FILES["scripts/run.sh"])


def test_yes_once_runs_this_invocation_and_leaves_nothing_behind(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_once", "yes_once")
    with asking_manager(tmp_path, approver) as manager:
        for _ in range(2):
            assert run(manager).stdout == "ran\n"
    assert len(approver.requests) == 2
    store = StateStore(tmp_path / "state")
    assert StandingApprovals(store).digests() == frozenset()
    store.close()


def test_yes_in_session_covers_later_invocations_of_the_same_skill_with_whatever_arguments(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_in_session")
    with asking_manager(tmp_path, approver) as manager:
        assert run(manager).stdout == "ran\n"
        assert run(manager, "again").stdout == "ran again\n"
        assert run(manager, script="other").stdout == "other\n"
    assert len(approver.requests) == 1


def test_yes_in_session_holds_for_the_same_session_in_another_process_and_for_no_other_session(tmp_path: Path) -> None:
    with asking_manager(tmp_path, ScriptedApprover("yes_in_session")) as manager:
        run(manager)
    with asking_manager(tmp_path) as reconnected:
        assert run(reconnected).stdout == "ran\n"
        for other in ("t", "S", "s "):
            with pytest.raises(ApprovalUnavailableError):
                run(reconnected, session_id=other)
    with asking_manager(tmp_path, session_id=None) as nameless, pytest.raises(ApprovalUnavailableError):
        run(nameless)


def test_without_a_session_yes_in_session_holds_for_this_manager_alone(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_in_session", "yes_in_session")
    with asking_manager(tmp_path, approver, session_id=None) as manager:
        run(manager)
        run(manager, "again")
        assert len(approver.requests) == 1
        with pytest.raises(ApprovalUnavailableError), asking_manager(tmp_path, session_id=None) as other:
            run(other)
        (skill(tmp_path) / "lib/data.txt").write_text("other\n")
        run(manager)
    changed = Prompt.from_context(approver.requests[1].context)
    assert changed is not None
    assert [(change.kind, change.path) for change in changed.changes or ()] == [("changed", "lib/data.txt")]


def test_a_word_without_a_session_is_none_for_a_session_that_has_a_name(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_in_session", "no", "no")
    with asking_manager(tmp_path, approver, session_id=None) as manager:
        run(manager)
        for _ in range(2):
            with pytest.raises(ApprovalDeclinedError):
                run(manager, session_id="named")
            change(skill(tmp_path))
    prompts = [Prompt.from_context(request.context) for request in approver.requests]
    assert [prompt.changes for prompt in prompts if prompt] == [None, None, None]


def test_no_runs_nothing_and_says_that_a_person_declined(tmp_path: Path) -> None:
    with asking_manager(tmp_path, ScriptedApprover("no")) as manager, pytest.raises(ApprovalDeclinedError) as caught:
        run(manager)
    assert caught.value.reasons == ("Declined by a person (scripted).",)
    assert kinds(tmp_path) == ["refused"]


@pytest.mark.parametrize(
    "approver",
    [
        pytest.param(None, id="none"),
        pytest.param(ScriptedApprover(), id="silent"),
        pytest.param(CallbackApprover(lambda _: "maybe"), id="not an option"),
        pytest.param(CallbackApprover(lambda _: True), id="true is no answer"),  # type: ignore[arg-type,return-value]
        pytest.param(CallbackApprover(lambda _: 1 / 0), id="broken"),  # type: ignore[arg-type,return-value]
    ],
)
def test_without_a_channel_nothing_runs_and_the_answer_says_so(tmp_path: Path, approver: object) -> None:
    with asking_manager(tmp_path, approver) as manager, pytest.raises(ApprovalUnavailableError) as caught:
        run(manager)
    assert "needs a person's approval" in str(caught.value)
    assert kinds(tmp_path) == ["refused"]


def test_a_question_that_nobody_answers_in_time_runs_nothing(tmp_path: Path) -> None:
    with World(tmp_path / "state") as world, asking_manager(tmp_path, StoreApprover(world, 0.2)) as manager:
        with pytest.raises(ApprovalUnavailableError, match="nobody answered in time"):
            run(manager)
        assert world.pending() == []
    assert kinds(tmp_path) == ["refused"]


# Tools that a skill lists (user story 4).


def described(folder: Path, tools: str, **settings: Any) -> SkillManager:
    block = f"name: demo\ndescription: A demo.\n{tools}"
    return made_manager(folder, FILES, frontmatter=block, **settings)


@pytest.mark.parametrize("tools", ["allowed-tools: Bash, Read, Write\n", "allowed-tools: Bash(echo:*)\n", ""])
def test_a_skill_that_lists_bash_or_nothing_runs_its_scripts(tmp_path: Path, tools: str) -> None:
    with described(tmp_path, tools) as manager:
        assert run(manager).stdout == "ran\n"


def test_a_skill_that_lists_tools_without_bash_is_refused_by_name_and_nobody_is_asked(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_once")
    with described(tmp_path, "allowed-tools: Read, Write\n", policy=ASKING, approver=approver) as manager:
        with pytest.raises(ToolRestrictionError, match="Tool 'Bash' not allowed for skill 'demo'") as caught:
            run(manager)
        assert str(caught.value).endswith("Allowed tools: Read, Write")
    assert approver.requests == []
    assert only_record(tmp_path, "refused")["decision"] == "deny"


# Content.


def change_elsewhere(folder: Path) -> None:
    (folder / "lib/data.txt").write_text("DATA\n")


def add(folder: Path) -> None:
    (folder / "lib/.hidden").write_text("")


def remove(folder: Path) -> None:
    (folder / "lib/data.txt").unlink()


def rename(folder: Path) -> None:
    (folder / "lib/data.txt").rename(folder / "lib/other.txt")


def link(folder: Path) -> None:
    (folder / "lib/link").symlink_to("data.txt")


CHANGES = [change, change_elsewhere, add, remove, rename, link]


@pytest.mark.parametrize("kind", ["session", "trust"])
@pytest.mark.parametrize("edit", CHANGES)
def test_any_change_in_the_skill_ends_what_was_approved(
    tmp_path: Path, edit: Callable[[Path], None], kind: str
) -> None:
    approver = ScriptedApprover("yes_in_session") if kind == "session" else None
    with asking_manager(tmp_path, approver) as manager:
        if kind == "trust":
            trust_demo(tmp_path)
        run(manager)
        assert run(manager).stdout == "ran\n", "approved, and unchanged"
        edit(skill(tmp_path))
        with pytest.raises(ApprovalUnavailableError):
            run(manager)


@pytest.mark.parametrize("kind", ["session", "trust"])
def test_a_file_touched_or_written_again_with_the_same_bytes_is_no_change(tmp_path: Path, kind: str) -> None:
    approver = ScriptedApprover("yes_in_session") if kind == "session" else None
    with asking_manager(tmp_path, approver) as manager:
        if kind == "trust":
            trust_demo(tmp_path)
        run(manager)
        os.utime(skill(tmp_path) / "scripts/run.sh", (1, 1))
        (skill(tmp_path) / "lib/data.txt").write_text(FILES["lib/data.txt"])
        (skill(tmp_path) / "lib/empty").mkdir()
        assert run(manager).stdout == "ran\n"


@pytest.mark.parametrize("option", ["yes_once", "yes_in_session"])
@pytest.mark.parametrize("edit", CHANGES)
def test_a_change_while_the_person_thinks_is_refused_and_their_word_is_not_kept(
    tmp_path: Path, edit: Callable[[Path], None], option: str
) -> None:
    def agree_too_late(_: OptionRequest) -> str:
        edit(skill(tmp_path))
        return option

    late = CallbackApprover(agree_too_late)
    with asking_manager(tmp_path, late) as manager, pytest.raises(ScriptRefusedError, match="changed after it was"):
        run(manager)
    record = only_record(tmp_path, "refused")
    assert (record["error"], record["answer"]) == ("ContentChangedError", option)
    with asking_manager(tmp_path) as manager, pytest.raises(ApprovalUnavailableError):
        run(manager)


def test_the_next_question_shows_what_changed_since_the_approval(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_in_session", "no")
    with asking_manager(tmp_path, approver) as manager:
        run(manager)
        (skill(tmp_path) / "scripts/run.sh").write_text("echo changed\n")
        (skill(tmp_path) / "new.txt").write_text("new\n")
        with pytest.raises(ApprovalDeclinedError):
            run(manager)
    prompt = Prompt.from_context(approver.requests[1].context)
    assert prompt is not None
    assert {item.path: item.kind for item in prompt.changes or ()} == {"new.txt": "added", "scripts/run.sh": "changed"}
    diff = next(item.diff for item in prompt.changes or () if item.path == "scripts/run.sh")
    assert "+echo changed" in diff


def test_a_new_approval_takes_the_place_of_the_one_for_the_old_content(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_in_session", "yes_in_session")
    with asking_manager(tmp_path, approver) as manager:
        run(manager)
        change(skill(tmp_path))
        run(manager)
        (skill(tmp_path) / "scripts/run.sh").write_text(FILES["scripts/run.sh"])
        with pytest.raises(ApprovalUnavailableError):
            run(manager)


@pytest.mark.parametrize("session_id", ["s", None], ids=["named", "unnamed"])
@pytest.mark.parametrize("skill_name", ["demo", None], ids=["of the skill", "of all skills"])
def test_an_ended_session_approval_is_asked_about_again(
    tmp_path: Path, session_id: str | None, skill_name: str | None
) -> None:
    approver = ScriptedApprover("yes_in_session", "yes_once")
    with asking_manager(tmp_path, approver, session_id=session_id) as manager:
        run(manager)
        manager.end_session_approvals("another")
        run(manager)
        assert len(approver.requests) == 1
        manager.end_session_approvals(skill_name)
        run(manager)
    assert len(approver.requests) == 2


def test_ending_the_approvals_of_a_session_leaves_other_sessions_and_trust_alone(tmp_path: Path) -> None:
    with asking_manager(tmp_path, ScriptedApprover("yes_in_session", "yes_in_session")) as manager:
        run(manager)
        run(manager, session_id="t")
        manager.end_session_approvals()
        assert run(manager, session_id="t").stdout == "ran\n"
        with pytest.raises(ApprovalUnavailableError):
            run(manager)
        trust_demo(tmp_path)
        manager.end_session_approvals()
        assert run(manager).stdout == "ran\n"


@pytest.mark.parametrize("kind", ["session", "unnamed session", "trust"])
def test_after_a_change_the_question_says_so_and_not_that_it_is_the_first_run(tmp_path: Path, kind: str) -> None:
    approver = ScriptedApprover("no", "yes_in_session", "no")
    session_id = None if kind == "unnamed session" else "s"
    with asking_manager(tmp_path, approver, session_id=session_id) as manager:
        with pytest.raises(ApprovalDeclinedError):
            run(manager)
        trust_demo(tmp_path) if kind == "trust" else run(manager)
        change(skill(tmp_path))
        with suppress(ApprovalDeclinedError):
            run(manager)
    assert approver.requests[0].message == FIRST_RUN
    assert approver.requests[-1].message == CHANGED
    prompt = Prompt.from_context(approver.requests[-1].context)
    assert prompt is not None
    assert prompt.reasons == (CHANGED,)


def test_what_is_approved_in_another_session_is_no_first_run_and_no_change(tmp_path: Path) -> None:
    """Else "before a skill's first run" would stand beside "nothing since the last approval"."""
    approver = ScriptedApprover("yes_in_session", "yes_once")
    with asking_manager(tmp_path, approver) as manager:
        run(manager)
        run(manager, session_id="t")
    assert [request.message for request in approver.requests] == [FIRST_RUN, UNCOVERED]
    prompt = Prompt.from_context(approver.requests[-1].context)
    assert prompt is not None
    assert (prompt.changes, news_of(prompt)) == ((), "nothing since the last approval")


def test_after_a_yes_once_nobody_says_that_it_was_never_approved(tmp_path: Path) -> None:
    approver = ScriptedApprover("no", "yes_once", "no")
    with asking_manager(tmp_path, approver) as manager:
        for _ in range(3):
            with suppress(ApprovalDeclinedError):
                run(manager)
    assert [request.message for request in approver.requests] == [FIRST_RUN, FIRST_RUN, AFTER_ONE]
    prompts = [Prompt.from_context(request.context) for request in approver.requests]
    said = [news_of(prompt) for prompt in prompts if prompt]
    assert ["never approved" in each for each in said] == [True, True, False]


def test_where_the_approved_copy_is_gone_the_question_says_so(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_in_session", "no")
    with asking_manager(tmp_path, approver) as manager:
        run(manager)
        remove_tree(tmp_path / "state" / "snapshots")
        change(skill(tmp_path))
        with suppress(ApprovalDeclinedError):
            run(manager)
    prompt = Prompt.from_context(approver.requests[-1].context)
    assert prompt is not None
    assert prompt.reasons == (CHANGED,)
    assert "copy that was approved is gone" in news_of(prompt)


# The record.


def record_of_run(folder: Path) -> dict[str, Any]:
    record = [each for each in records_of(folder) if each.kind != "finished"][-1]
    return {name: record.fields[name] for name in ("decision", "reasons", "answer", "channel")} | {"kind": record.kind}


def test_the_record_says_how_each_run_came_to_be_allowed_or_not(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_once", "no", "yes_in_session")
    asked = {"decision": "ask", "reasons": [FIRST_RUN], "channel": "scripted"}
    with asking_manager(tmp_path, approver) as manager:
        run(manager)
        assert record_of_run(tmp_path) == {"kind": "started", "answer": "yes_once", **asked}
        with pytest.raises(ApprovalDeclinedError):
            run(manager)
        declined = record_of_run(tmp_path)
        assert (declined["kind"], declined["answer"], declined["channel"]) == ("refused", "no", "scripted")
        assert "Declined by a person" in declined["reasons"][0]
        run(manager)
        again = {**asked, "reasons": [AFTER_ONE]}
        assert record_of_run(tmp_path) == {"kind": "started", "answer": "yes_in_session", **again}
        run(manager)
        covered = {"decision": "allow", "reasons": ["Approved in this session."], "answer": None}
        assert record_of_run(tmp_path) == {"kind": "started", "channel": "scripted", **covered}
        trust_demo(tmp_path)
        run(manager, session_id="t")
        trusted = {"decision": "allow", "reasons": ["Trusted."], "answer": None}
        assert record_of_run(tmp_path) == {"kind": "started", "channel": "cli", **trusted}
        change(skill(tmp_path))
        with pytest.raises(ApprovalUnavailableError):
            run(manager)
        unavailable = record_of_run(tmp_path)
        assert (unavailable["decision"], unavailable["answer"], unavailable["channel"]) == ("ask", None, None)
        assert unavailable["reasons"][0].endswith(CHANGED)


def test_no_secret_of_a_call_is_on_record(tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "aB3dE6gH9jK2mN5pQ8sT1vX4zA7cF0" * 2
    (tmp_path / secret).write_text("")
    approver = ScriptedApprover("yes_once", "no")
    call = {"argv": ["--token", secret, str(tmp_path / secret)], "arguments": {"password": secret}}
    with asking_manager(tmp_path, approver) as manager:
        for _ in range(2):
            prepared = manager.prepare_skill_script("demo", "run", agent_facing=True, **call)  # type: ignore[arg-type]
            assert any("outside" in reason for reason in prepared.reasons)
            answer = manager.flow.approvals.answer_for(prepared, manager.approver)
            with suppress(ApprovalDeclinedError):
                manager.complete_skill_script(prepared, answer)
    assert kinds(tmp_path) == ["started", "finished", "refused"]
    said = "".join(str(record.fields) for record in records_of(tmp_path))
    assert secret not in said
    assert "--token" in said


def test_the_answer_names_who_gave_it_in_the_store(tmp_path: Path) -> None:
    with (
        World(tmp_path / "state") as world,
        asking_manager(tmp_path, StoreApprover(world)) as manager,
        ThreadPoolExecutor(1) as pool,
    ):
        call = pool.submit(run, manager)
        assert wait_for(world.pending, 30)
        world.answer(world.pending()[0].id, "yes_once", "web")
        assert call.result(30).stdout == "ran\n"
    assert only_record(tmp_path, "started")["channel"] == "web"


# Policies.


def test_no_approval_answers_where_every_run_is_asked_about(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_in_session", "yes_in_session", "no")
    with asking_manager(tmp_path, approver, policy=replace(TRUSTED, approval="always")) as manager:
        trust_demo(tmp_path)
        run(manager)
        run(manager)
        with pytest.raises(ApprovalDeclinedError):
            run(manager)


def test_nobody_is_asked_where_policy_never_asks_and_nobody_can_allow_what_it_denies(tmp_path: Path) -> None:
    approver = ScriptedApprover()
    with asking_manager(tmp_path, approver, policy=STANDARD) as manager:
        assert run(manager).stdout == "ran\n"
    with asking_manager(tmp_path, approver, policy=ScriptPolicy()) as manager:
        trust_demo(tmp_path)
        with pytest.raises(ScriptRefusedError, match="allow_scripts"):
            run(manager)
        prepared = manager.prepare_skill_script("demo", "run")
        with pytest.raises(ScriptRefusedError, match="allow_scripts"):
            manager.complete_skill_script(prepared, OptionAnswer("yes_once", "x", 1.0, ""))
    assert approver.requests == []


def test_what_ran_is_the_copy_that_was_shown_in_every_kind_of_walls(tmp_path: Path, tier: str) -> None:
    approver = ScriptedApprover("yes_in_session", "no")
    with asking_manager(tmp_path, approver, policy=GUARDED) as manager:
        for _ in range(2):
            isolation = run(manager).isolation
            expected = {"bubblewrap": "mounted snapshot", "landlock": "snapshot"}[tier]
            assert (isolation.tier, isolation.skill) == (tier, expected)
        change(skill(tmp_path))
        with pytest.raises(ApprovalDeclinedError):
            run(manager)
    prompt = Prompt.from_context(approver.requests[1].context)
    assert prompt is not None
    assert [item.path for item in prompt.changes or ()] == ["scripts/run.sh"]


def test_what_a_person_allowed_runs_from_the_copy_where_only_the_list_of_tools_asked(tmp_path: Path) -> None:
    policy = replace(TRUSTED, allowed_tools_mode="grant")
    tools = "allowed-tools: Read\n"
    with described(tmp_path, tools, policy=policy, session_id="s", approver=ScriptedApprover("yes_in_session")) as mine:
        assert [run(mine).isolation.skill for _ in range(2)] == ["snapshot", "snapshot"]
    with described(tmp_path, "", policy=TRUSTED) as control:
        assert run(control).isolation.skill == "folder"


def test_the_three_options_are_the_ones_every_channel_shares() -> None:
    assert [option.id for option in OPTIONS] == ["yes_once", "yes_in_session", "no"]
