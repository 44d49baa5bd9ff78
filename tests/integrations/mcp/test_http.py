"""`skillkit mcp --http`: the same server for whoever has the token."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx2
import mcp_types as types
import pytest
from support.mcp_clients import ERAS, TOKEN, Conversation, conversing, http_server, over_http, text_of
from support.running import anybody_runs, records_of, wait_for
from support.skill_folders import skill_folder

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


ACCEPTED = {each: types.ElicitResult(action="accept", content={"answer": each}) for each in ("yes_once", "no")}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (ACCEPTED["yes_once"], "hello\n"),
        (ACCEPTED["no"], "declined"),
        (types.ElicitResult(action="decline"), "declined"),
        (types.ElicitResult(action="cancel"), "approval_unavailable"),
    ],
    ids=["yes", "no", "decline", "cancel"],
)
def test_a_person_is_asked_before_the_script_runs(talk: Conversation, said: types.ElicitResult, told: str) -> None:
    talk.add_skill("asked", HELLO)
    talk.person.says = said
    result = talk.run("asked", "hello")
    assert told in text_of(result)
    assert result.is_error == (told != "hello\n")
    assert len(talk.person.forms) == 1


def test_a_yes_for_the_session_is_asked_for_once(talk: Conversation, world: Path) -> None:
    skill_folder(world / "skills", name := f"session-{talk.client.mode}", files=HELLO)
    talk.tools()
    talk.person.will("yes_in_session")
    assert [text_of(talk.run(name, "hello")) for _ in range(2)] == ["hello\n", "hello\n"]
    assert len(talk.person.forms) == 1


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


@pytest.mark.parametrize("era", ERAS)
def test_a_client_without_a_form_is_told_how_a_person_can_answer(url: str, world: Path, era: str) -> None:
    with conversing(over_http(url), world, era=era, has_form=False) as talk:
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


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_no_script_and_no_folder_outlives_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    mark, temporary = f"mark-http-ends-{name}", tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    skill_folder(tmp_path / "skills", "demo", files={"scripts/waits.sh": f"exec -a {mark} sleep 300\n"})
    with (
        http_server(tmp_path, "--policy", "standard") as address,
        conversing(over_http(address), tmp_path, era="legacy") as talk,
    ):
        running = talk.start("skills_run_script", skill_name="demo", script="waits")
        assert wait_for(lambda: anybody_runs(mark))
        assert list(temporary.iterdir())
        (server,) = [pid for pid in anybody_runs(f"{tmp_path}/skills") if "--http" in words_of(pid)]
        os.kill(server, getattr(signal, name))
        assert wait_for(lambda: not anybody_runs(mark))
        assert wait_for(lambda: not Path(f"/proc/{server}").exists() or "--http" not in words_of(server))
        assert wait_for(running.done)
    assert [(each.kind, each.fields.get("cancelled")) for each in records_of(tmp_path)][-1] == ("finished", True)
    assert not list(temporary.iterdir())


def words_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []
