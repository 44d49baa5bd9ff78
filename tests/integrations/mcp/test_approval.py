"""How the MCP server's questions reach a person when the client cannot ask, and what a client cannot do with answers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import mcp_types as types
import pytest
from support.asking import askers_of, in_threads, only_pending
from support.mcp_clients import ERAS, Conversation, answering, conversing, environment, over_stdio, text_of
from support.running import kinds, made_manager, only_record, records_of, wait_for
from support.skill_folders import skill_folder

from skillkit import GUARDED, ApprovalUnavailableError, World
from skillkit.config.keys import KEYS
from skillkit.core.ask import haste
from skillkit.core.ask.haste import FORM_SECONDS
from skillkit.core.exceptions import RequestClosedError
from skillkit.core.values.questions import OPTIONS, SINGLE_USE, OptionRequest
from skillkit.integrations.mcp.approval import form_of
from skillkit.integrations.mcp.local import LocalApprover
from skillkit.integrations.mcp.server import create_server
from skillkit.testing import quick_forms
from skillkit.web.approver import LocalPage
from skillkit.web.presence import running_page

SCRIPTS = {"scripts/hello.sh": 'echo "hello $1"\n'}


@pytest.fixture(autouse=True)
def programs_answer_forms() -> Iterator[None]:
    with quick_forms():
        yield


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@contextmanager
def talking(folder: Path, era: str, *, has_form: bool = True, **settings: Any) -> Iterator[Conversation]:
    with (
        made_manager(folder, SCRIPTS, policy=GUARDED) as manager,
        conversing(create_server(manager, **settings), folder, era=era, has_form=has_form) as talk,
    ):
        yield talk


def test_nobody_answers_and_the_model_is_told_how_a_person_can(tmp_path: Path, era: str) -> None:
    with talking(tmp_path, era, has_form=False, approval_wait=0.1) as talk:
        result = talk.run("demo", "hello")
    assert result.is_error
    for told in ('"status": "waiting"', "nobody answered within 0.1 s", "`skillkit approvals list`"):
        assert told in text_of(result)
    assert only_record(tmp_path, "refused")["skill"] == "demo"


def test_an_answer_given_later_counts_when_the_call_is_made_again(tmp_path: Path, era: str) -> None:
    with (
        talking(tmp_path, era, has_form=False, approval_wait=0.1) as talk,
        World(tmp_path / "state") as world,
    ):
        talk.run("demo", "hello", "you")
        world.answer(only_pending(world).id, "yes_once", "page")
        assert '"waiting"' in text_of(talk.run("demo", "hello", "them")), "it is for one question only"
        assert text_of(talk.run("demo", "hello", "you")) == "hello you\n"
        assert '"waiting"' in text_of(talk.run("demo", "hello", "you")), "it was for once"
    assert only_record(tmp_path, "started")["channel"] == "page"


@pytest.mark.parametrize(("single_use", "runs"), [(["yes_once"], 2), (["yes_once", "yes_in_session"], 1)])
def test_where_every_run_is_asked_about_any_yes_is_for_one_call(
    tmp_path: Path, single_use: list[str], runs: int
) -> None:
    request = OptionRequest("same", "Run it?", "", OPTIONS, {SINGLE_USE: single_use}, "session")
    approver = LocalApprover(tmp_path, 30)
    stop = threading.Event()
    with World(tmp_path) as world, in_threads(2, lambda: approver.ask(request, stop)) as asking:
        assert wait_for(lambda: askers_of(world) == 2)
        world.answer(only_pending(world).id, "yes_in_session", "test")
        assert wait_for(lambda: sum(each.done() for each in asking) == runs)
        stop.set()
        ended = [each.exception(30) for each in asking]
    assert [isinstance(each, ApprovalUnavailableError) for each in ended].count(False) == runs


@pytest.mark.parametrize("era", ERAS)
def test_asking_locally_leaves_the_client_s_form_alone(tmp_path: Path, era: str) -> None:
    with talking(tmp_path, era, approval_wait=0.1, asks_client=False) as talk:
        talk.person.will("yes_once")
        assert '"waiting"' in text_of(talk.run("demo", "hello"))
        assert not talk.person.forms


def test_a_client_that_fails_to_ask_is_replaced_by_the_store(tmp_path: Path) -> None:
    with talking(tmp_path, "legacy", approval_wait=0.1) as talk:
        talk.person.says = types.ErrorData(code=types.INTERNAL_ERROR, message="no window")
        assert "nobody answered within 0.1 s" in text_of(talk.run("demo", "hello"))
        assert talk.person.forms


def test_cancelling_a_call_that_waits_for_a_person_runs_nothing(tmp_path: Path, era: str) -> None:
    with (
        talking(tmp_path, era, has_form=False, approval_wait=60) as talk,
        World(tmp_path / "state") as world,
    ):
        waiting = talk.start("skills_run_script", skill_name="demo", script="hello")
        request = only_pending(world)
        waiting.cancel()
        assert wait_for(lambda: kinds(tmp_path) == ["refused"])
        world.answer(request.id, "yes_once", "late")
    assert kinds(tmp_path) == ["refused"]
    assert "cancelled" in only_record(tmp_path, "refused")["reasons"][0]


def test_a_form_that_nobody_answers_holds_up_nothing_else(tmp_path: Path) -> None:
    with talking(tmp_path, "legacy", approval_wait=0.1) as talk:
        talk.person.says = None
        waiting = talk.start("skills_run_script", skill_name="demo", script="hello")
        assert wait_for(lambda: talk.person.forms)
        assert talk.tools()
        waiting.cancel()
        assert wait_for(lambda: kinds(tmp_path) == ["refused"])
        talk.person.will("yes_once")
        assert text_of(talk.run("demo", "hello", "you")) == "hello you\n"


def test_calls_run_beside_each_other(tmp_path: Path, era: str) -> None:
    with talking(tmp_path, era) as talk:
        talk.person.will("yes_in_session")
        talk.run("demo", "hello")
        words = [f"call-{number}" for number in range(8)]
        running = [talk.start("skills_run_script", skill_name="demo", script="hello", args=[word]) for word in words]
        assert [text_of(each.result(60)) for each in running] == [f"hello {word}\n" for word in words]
        assert len(talk.person.forms) == 1


@pytest.fixture
def modern(tmp_path: Path) -> Iterator[Conversation]:
    with talking(tmp_path, "2026-07-28", approval_wait=0.1) as talk:
        yield talk


def question(talk: Conversation, **given: Any) -> types.InputRequiredResult:
    async def called() -> Any:
        return await talk.client.session.call_tool("skills_run_script", given, allow_input_required=True)

    asked = talk.portal.call(called)
    assert isinstance(asked, types.InputRequiredResult)
    return asked


def answered(talk: Conversation, state: str | None, **given: Any) -> Any:
    async def called() -> Any:
        return await talk.client.session.call_tool(
            "skills_run_script",
            given,
            allow_input_required=True,
            request_state=state,
            input_responses={"approval": answering("yes_once")},
        )

    return talk.portal.call(called)


def test_a_yes_sent_twice_counts_once(modern: Conversation) -> None:
    given = {"skill_name": "demo", "script": "hello"}
    state = question(modern, **given).request_state
    assert text_of(answered(modern, state, **given)) == "hello \n"
    assert isinstance(answered(modern, state, **given), types.InputRequiredResult), "it is asked again"


def test_a_yes_without_a_question_is_no_answer(modern: Conversation) -> None:
    assert isinstance(answered(modern, None, skill_name="demo", script="hello"), types.InputRequiredResult)


@pytest.mark.parametrize("change", [{"args": ["other"]}, {"script": "scripts/hello.sh"}])
def test_a_yes_to_one_call_is_none_for_another(modern: Conversation, change: dict[str, Any], tmp_path: Path) -> None:
    given = {"skill_name": "demo", "script": "hello"}
    state = question(modern, **given).request_state
    assert isinstance(answered(modern, state, **{**given, **change}), types.InputRequiredResult), "it is asked about"
    assert kinds(tmp_path) == [], "and nothing ran"


@pytest.mark.parametrize("state", ['{"call": "a", "asked": "b", "sent": 0}', "v1.AAAA", "", "x"])
def test_a_state_that_is_not_ours_is_answered_with_a_fresh_question(
    modern: Conversation, state: str, tmp_path: Path
) -> None:
    """One that another process gave out, before a restart, or that somebody made up."""
    given = {"skill_name": "demo", "script": "hello"}
    again = answered(modern, state, **given)
    assert isinstance(again, types.InputRequiredResult)
    assert kinds(tmp_path) == []
    assert text_of(answered(modern, again.request_state, **given)) == "hello \n", "and that one can be answered"


@pytest.mark.parametrize(("minutes", "is_good"), [(11, True), (59, True), (61, False)])
def test_a_form_that_is_answered_late_counts_or_is_asked_anew(
    modern: Conversation, monkeypatch: pytest.MonkeyPatch, minutes: int, is_good: bool
) -> None:
    given = {"skill_name": "demo", "script": "hello"}
    state = question(modern, **given).request_state
    for clock in (time.time, time.monotonic):
        monkeypatch.setattr(time, clock.__name__, lambda clock=clock: clock() + 60 * minutes)
    late = answered(modern, state, **given)
    if is_good:
        assert text_of(late) == "hello \n"
    else:
        assert isinstance(late, types.InputRequiredResult), "a fresh question, and no bare error"


def test_a_skill_that_changed_under_the_question_is_asked_about_again(modern: Conversation, tmp_path: Path) -> None:
    given = {"skill_name": "demo", "script": "hello"}
    state = question(modern, **given).request_state
    (tmp_path / "skills/demo/scripts/hello.sh").write_text("echo something else\n")
    again = answered(modern, state, **given)
    assert isinstance(again, types.InputRequiredResult)
    (form,) = (again.input_requests or {}).values()
    assert "something else" in str(form)


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_older_clients_get_the_options_in_their_own_way(version: str) -> None:
    form = form_of(OptionRequest("id", "May it?", "", OPTIONS), version)
    assert isinstance(form, types.ElicitRequestFormParams)
    field = form.requested_schema["properties"]["answer"]
    if version == "2025-06-18":
        assert field["enum"] == ["yes_once", "yes_in_session", "no"]
        assert field["enumNames"] == ["Yes once", "Yes in this session", "No"]
    else:
        assert [each["const"] for each in field["oneOf"]] == ["yes_once", "yes_in_session", "no"]


def test_the_command_line_answers_for_a_client_without_a_form(tmp_path: Path, era: str) -> None:
    transport = over_stdio(tmp_path, "--approval-wait", "60")
    with conversing(transport, tmp_path, era=era, has_form=False) as talk, World(tmp_path / "state") as world:
        talk.add_skill("demo", SCRIPTS)
        running = talk.start("skills_run_script", skill_name="demo", script="hello", args=["there"])
        request = only_pending(world)
        # This program started the server, so a person must be seen to type it.
        at_terminal = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
        command = [sys.executable, "-m", "skillkit", "approvals", "answer", request.id, "yes_once"]
        typed = [sys.executable, "-c", at_terminal, *command]
        subprocess.run(typed, check=True, env=environment(tmp_path), capture_output=True, timeout=60)
        assert text_of(running.result(60)) == "hello there\n"
    assert only_record(tmp_path, "started")["channel"] == "cli"


def test_the_model_is_told_the_page_s_address_and_cannot_log_in_with_it(tmp_path: Path, era: str) -> None:
    with (
        LocalPage(tmp_path / "state") as page,
        talking(tmp_path, era, has_form=False, approval_wait=0.1, page=page.address) as talk,
    ):
        told = text_of(talk.run("demo", "hello"))
        assert f"on the page {page.address()} (`skillkit web` logs them in)" in told
        assert "token" not in told
        assert httpx.get(page.address()).status_code == 401
        assert httpx.get(page.link()).status_code == 303, "a link that a person gets works"


def test_the_page_of_a_server_process_can_be_opened_by_its_owner(tmp_path: Path) -> None:
    options = ("--approval-wait", "0.2", "--ask-locally")
    with conversing(over_stdio(tmp_path, *options), tmp_path, era=ERAS[0], has_form=False) as talk:
        talk.add_skill("demo", SCRIPTS)
        told = text_of(talk.run("demo", "hello"))
        page = running_page(tmp_path / "state")
        assert page is not None
        assert page.address in told
        assert page.token not in told
        assert httpx.get(page.new_link()).status_code == 303
    assert wait_for(lambda: running_page(tmp_path / "state") is None)


@pytest.mark.parametrize("said", [answering("yes_in_session"), types.ElicitResult(action="decline")])
def test_a_form_that_is_answered_sooner_than_a_person_can_was_not_shown_to_one(
    tmp_path: Path, era: str, said: types.ElicitResult
) -> None:
    with talking(tmp_path, era, approval_wait=0.1) as talk, real_bound():
        talk.person.says = said
        told = text_of(talk.run("demo", "hello"))
        assert talk.person.forms, "it was asked"
        assert '"waiting"' in told
        for word in ("sooner than a person can", "--ask-locally", "trust add", "`skillkit approvals list`"):
            assert word in told
    (refused,) = records_of(tmp_path)
    assert refused.kind == "refused"
    assert re.search(r"answered its form after \d+ ms", str(refused.fields["reasons"]))
    assert refused.fields["answer"] is None, "nobody declined"


def test_a_person_answers_elsewhere_for_a_client_that_answers_by_itself(tmp_path: Path, era: str) -> None:
    with talking(tmp_path, era, approval_wait=60) as talk, World(tmp_path / "state") as world, real_bound():
        talk.person.says = types.ElicitResult(action="cancel")
        running = talk.start("skills_run_script", skill_name="demo", script="hello", args=["you"])
        world.answer(only_pending(world).id, "yes_once", "page")
        assert text_of(running.result(60)) == "hello you\n"
    started = only_record(tmp_path, "started")
    assert started["channel"] == "page"
    assert "sooner than a person can" in started["note"]


def test_a_person_s_own_time_is_enough(tmp_path: Path, era: str) -> None:
    with talking(tmp_path, era, approval_wait=0.1) as talk, real_bound():
        talk.person.will("yes_once")
        talk.person.seconds = FORM_SECONDS + 0.1
        assert text_of(talk.run("demo", "hello", "you")) == "hello you\n"
    assert only_record(tmp_path, "started")["channel"] == "elicitation"


@contextmanager
def real_bound() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(haste, "_lowered", [])
        yield


def test_neither_environment_nor_configuration_lowers_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    with real_bound():
        for name in ("SKILLKIT_FORM_SECONDS", "FORM_SECONDS"):
            monkeypatch.setenv(name, "0")
        assert haste.form_seconds() == FORM_SECONDS == 0.4
        with quick_forms(5):
            assert haste.form_seconds() == FORM_SECONDS, "nor can it be raised"
    assert not [name for name in KEYS if "form" in name]


def test_loading_without_a_form_does_not_wait(tmp_path: Path, era: str) -> None:
    with (
        LocalPage(tmp_path / "state") as page,
        talking(tmp_path, era, has_form=False, approval_wait=3600, page=page.address) as talk,
        World(tmp_path / "state") as world,
    ):
        talk.add_skill("loads", SCRIPTS, body="Greet them. Run `scripts/hello.sh all`.\n")
        told = text_of(talk.call("load_skill", skill_name="loads"))
        assert "Greet them." in told
        assert 'status="waiting"' in told
        assert f"on the page {page.address()} " in told
        world.answer(only_pending(world).id, "yes_once", "page")
        assert "hello all" in text_of(talk.call("load_skill", skill_name="loads"))
        assert 'status="waiting"' in text_of(talk.call("load_skill", skill_name="loads"))


def test_loading_waits_for_a_form(tmp_path: Path, era: str) -> None:
    with talking(tmp_path, era) as talk:
        talk.add_skill("loads", SCRIPTS, body="Run `scripts/hello.sh all`.\n")
        talk.person.will("yes_once")
        assert "hello all" in text_of(talk.call("load_skill", skill_name="loads"))
        assert len(talk.person.forms) == 1


def test_who_waits_hears_for_what_and_where(tmp_path: Path, era: str) -> None:
    with (
        LocalPage(tmp_path / "state") as page,
        talking(tmp_path, era, has_form=False, approval_wait=60, page=page.address) as talk,
        World(tmp_path / "state") as world,
    ):
        told: list[tuple[float, str]] = []
        running = talk.start(
            "skills_run_script", lambda done, text: told.append((done, text)), skill_name="demo", script="hello"
        )
        request = only_pending(world)
        assert wait_for(lambda: told)
        address = page.address()
        assert told[0][1] == (
            f"Waiting for a person's answer on the page {address}: Run demo: scripts/hello.sh (no arguments)"
        )
        world.answer(request.id, "yes_once", "page")
        assert text_of(running.result(60)) == "hello \n"
        assert wait_for(lambda: told[-1] == (7.0, "hello"))
        assert [done for done, _ in told] == sorted({done for done, _ in told}), "it only grows"


def test_a_form_that_waits_says_so(tmp_path: Path) -> None:
    with talking(tmp_path, "legacy") as talk:
        talk.person.says = None
        told: list[str] = []
        waiting = talk.start("skills_run_script", lambda _, text: told.append(text), skill_name="demo", script="hello")
        assert wait_for(lambda: told)
        assert told[0].startswith("Waiting for an answer to the form: Run demo: scripts/hello.sh")
        waiting.cancel()


def test_the_question_of_a_killed_server_is_gone_at_once(tmp_path: Path) -> None:
    skill_folder(tmp_path / "skills", "demo", files=SCRIPTS)
    with World(tmp_path / "state") as world:
        with conversing(over_stdio(tmp_path, "--approval-wait", "0.1"), tmp_path, era=ERAS[0], has_form=False) as talk:
            talk.run("demo", "hello")
            request = only_pending(world)
            (note,) = (tmp_path / "state/servers").iterdir()
            os.kill(int(note.name.partition("-")[0]), 9)
            assert wait_for(lambda: not world.pending())
            with pytest.raises(RequestClosedError, match="has lost whoever asked"):
                world.answer(request.id, "yes_once", "late")
        assert world.history()[0].outcome == "abandoned"


def test_the_address_that_a_model_was_told_is_the_next_page_s_too(tmp_path: Path) -> None:
    skill_folder(tmp_path / "skills", "demo", files=SCRIPTS)
    told = set()
    for _ in range(2):
        with conversing(over_stdio(tmp_path, "--approval-wait", "0.1"), tmp_path, era=ERAS[0], has_form=False) as talk:
            text = text_of(talk.run("demo", "hello"))
            told.add(text.partition("on the page ")[2].split()[0])
            assert httpx.get(next(iter(told))).status_code == 401, "it is served"
        assert wait_for(lambda: running_page(tmp_path / "state") is None)
    assert len(told) == 1


def test_run_on_load_can_be_said_when_the_server_starts(tmp_path: Path) -> None:
    skill_folder(tmp_path / "skills", "loads", files=SCRIPTS, body="Run `scripts/hello.sh all`.\n")
    with conversing(over_stdio(tmp_path, "--run-on-load", "never"), tmp_path, era=ERAS[0]) as talk:
        talk.person.will("yes_once")
        told = text_of(talk.call("load_skill", skill_name="loads"))
        assert "To run it: skills_run_script(" in told
        assert not talk.person.forms


def test_an_answer_whose_server_died_before_it_took_it_is_nothing_to_the_next_server(tmp_path: Path) -> None:
    skill_folder(tmp_path / "skills", "demo", files=SCRIPTS)
    transport = ("--approval-wait", "0.1")
    with World(tmp_path / "state") as world:
        with conversing(over_stdio(tmp_path, *transport), tmp_path, era=ERAS[0], has_form=False) as talk:
            talk.run("demo", "hello")
            world.answer(only_pending(world).id, "yes_in_session", "page")
        with conversing(over_stdio(tmp_path, *transport), tmp_path, era=ERAS[0], has_form=False) as talk:
            assert '"waiting"' in text_of(talk.run("demo", "hello")), "it is another session"
    assert "started" not in kinds(tmp_path)


def test_two_servers_of_one_world_share_its_page_and_no_answer(tmp_path: Path) -> None:
    skill_folder(tmp_path / "skills", "demo", files=SCRIPTS)
    with (
        World(tmp_path / "state") as world,
        conversing(over_stdio(tmp_path, "--approval-wait", "0.1"), tmp_path, era=ERAS[0], has_form=False) as one,
        conversing(over_stdio(tmp_path, "--approval-wait", "0.1"), tmp_path, era=ERAS[1], has_form=False) as two,
    ):
        pages = {text_of(talk.run("demo", "hello")).partition("on the page ")[2].split()[0] for talk in (one, two)}
        assert len(pages) == 1
        first, second = world.pending()
        world.answer(first.id, "yes_once", "page")
        assert text_of(one.run("demo", "hello")) == "hello \n"
        assert '"waiting"' in text_of(two.run("demo", "hello"))
        assert [each.id for each in world.pending()] == [second.id]


def test_a_form_that_is_answered_after_its_call_was_cancelled_runs_nothing(tmp_path: Path) -> None:
    with talking(tmp_path, "legacy", approval_wait=0.1) as talk:
        talk.person.will("yes_once")
        talk.person.seconds = 1.0
        waiting = talk.start("skills_run_script", skill_name="demo", script="hello")
        assert wait_for(lambda: talk.person.forms)
        waiting.cancel()
        assert wait_for(lambda: kinds(tmp_path) == ["refused"])
        time.sleep(1.2)
        assert kinds(tmp_path) == ["refused"]
        assert talk.tools(), "the conversation goes on"
