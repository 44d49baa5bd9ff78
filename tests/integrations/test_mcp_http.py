"""`skillkit mcp --http`: the same server for whoever has the token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from mcp_clients import ERAS, TOKEN, Conversation, conversing, http_server, over_http, text_of
from running import anybody_runs, records_of, wait_for

HELLO = {"scripts/hello.sh": "echo hello\n"}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {}}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("http")


@pytest.fixture(scope="module")
def url(world: Path) -> Iterator[str]:
    with http_server(world, "--approval-wait", "0.1") as address:
        yield address


@pytest.fixture(params=ERAS)
def talk(request: pytest.FixtureRequest, url: str, world: Path) -> Iterator[Conversation]:
    with conversing(over_http(url), world, era=request.param) as conversation:
        yield conversation


def test_a_person_is_asked_and_the_script_runs(talk: Conversation) -> None:
    talk.add_skill("asked", HELLO)
    talk.person.will("yes_once")
    assert text_of(talk.run("asked", "hello")) == "hello\n"
    assert len(talk.person.forms) == 1
    talk.person.will("no")
    assert "declined" in text_of(talk.run("asked", "hello"))


def test_output_is_told_as_it_comes(talk: Conversation) -> None:
    talk.add_skill("steps", {"scripts/steps.sh": "echo one; sleep 0.3; echo two\n"})
    talk.person.will("yes_once")
    told: list[str] = []
    running = talk.start("skills_run_script", lambda _, text: told.append(text), skill_name="steps", script="steps")
    assert text_of(running.result(60)) == "one\ntwo\n"
    assert wait_for(lambda: told[-1:] == ["two"])


def test_cancelling_the_call_kills_the_script(talk: Conversation) -> None:
    mark = f"mark-http-{talk.client.mode}"
    talk.add_skill("tree", {"scripts/tree.sh": f"setsid bash -c 'exec -a {mark} sleep 300' & echo up; sleep 300\n"})
    talk.person.will("yes_once")
    told: list[str] = []
    running = talk.start("skills_run_script", lambda _, text: told.append(text), skill_name="tree", script="tree")
    assert wait_for(lambda: "up" in told and anybody_runs(mark))
    running.cancel()
    assert wait_for(lambda: not anybody_runs(mark))


def test_a_yes_for_the_session_is_for_one_conversation(url: str, world: Path) -> None:
    with (
        conversing(over_http(url), world, era="legacy") as first,
        conversing(over_http(url), world, era="legacy") as second,
    ):
        first.add_skill("shared", HELLO)
        first.person.will("yes_in_session")
        second.person.will("no")
        assert [text_of(first.run("shared", "hello")) for _ in range(2)] == ["hello\n", "hello\n"]
        assert len(first.person.forms) == 1
        assert "declined" in text_of(second.run("shared", "hello"))
    sessions = {each.fields["session"] for each in records_of(world) if each.fields.get("skill") == "shared"}
    assert len(sessions) == 2


def test_a_client_without_a_form_is_told_how_a_person_can_answer(url: str, world: Path) -> None:
    with conversing(over_http(url), world, era="2026-07-28", has_form=False) as talk:
        talk.add_skill("formless", HELLO)
        assert "`skillkit approvals list`" in text_of(talk.run("formless", "hello"))


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}])
def test_without_the_token_there_is_no_answer(url: str, headers: dict[str, str]) -> None:
    refused = httpx2.post(url, json=INITIALIZE, headers=headers)
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}])
def test_a_web_page_under_another_name_is_turned_away(url: str, headers: dict[str, str]) -> None:
    known = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}
    assert httpx2.post(url, json=INITIALIZE, headers=known).status_code not in (401, 403, 421)
    assert httpx2.post(url, json=INITIALIZE, headers={**known, **headers}).status_code in (403, 421)
