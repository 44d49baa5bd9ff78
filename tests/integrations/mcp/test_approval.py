"""How the MCP server's questions reach a person when the client cannot ask, and what a client cannot do with answers."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from support.asking import askers_of, in_threads, only_pending
from support.mcp_clients import ERAS, Conversation, answering, conversing, environment, over_stdio, text_of
from support.running import kinds, made_manager, only_record, wait_for

from skillkit import GUARDED, ApprovalUnavailableError, World
from skillkit.core.values.questions import OPTIONS, SINGLE_USE, OptionRequest
from skillkit.integrations.mcp.approval import LocalApprover, form_of
from skillkit.integrations.mcp.server import create_server
from skillkit.web.approver import LocalPage
from skillkit.web.presence import running_page

SCRIPTS = {"scripts/hello.sh": 'echo "hello $1"\n'}


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
    for told in ("approval_unavailable", "nobody answered within 0.1 s", "`skillkit approvals list`"):
        assert told in text_of(result)
    assert only_record(tmp_path, "refused")["skill"] == "demo"


def test_an_answer_given_later_counts_when_the_call_is_made_again(tmp_path: Path, era: str) -> None:
    with (
        talking(tmp_path, era, has_form=False, approval_wait=0.1) as talk,
        World(tmp_path / "state") as world,
    ):
        talk.run("demo", "hello", "you")
        world.answer(only_pending(world).id, "yes_once", "page")
        assert "approval_unavailable" in text_of(talk.run("demo", "hello", "them")), "it is for one question only"
        assert text_of(talk.run("demo", "hello", "you")) == "hello you\n"
        assert "approval_unavailable" in text_of(talk.run("demo", "hello", "you")), "it was for once"
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
        assert "approval_unavailable" in text_of(talk.run("demo", "hello"))
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
def test_a_yes_to_one_call_is_refused_for_another(modern: Conversation, change: dict[str, Any]) -> None:
    given = {"skill_name": "demo", "script": "hello"}
    state = question(modern, **given).request_state
    with pytest.raises(MCPError, match="requestState"):
        answered(modern, state, **{**given, **change})


def test_a_forged_state_is_refused(modern: Conversation) -> None:
    with pytest.raises(MCPError, match="requestState"):
        answered(modern, '{"call": "a", "asked": "b"}', skill_name="demo", script="hello")


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
        command = [sys.executable, "-m", "skillkit", "approvals", "answer", request.id, "yes_once"]
        subprocess.run(command, check=True, env=environment(tmp_path), capture_output=True, timeout=60)
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
