"""What a client of the MCP server hears when skills come, change or go while it is connected."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.mcp_clients import ERAS, Conversation, conversing, http_server, over_http, over_stdio
from support.running import made_manager, wait_for
from support.skill_folders import skill_folder

from skillkit import GUARDED
from skillkit.integrations.mcp import changes
from skillkit.integrations.mcp.server import create_server

HELLO = {"scripts/hello.sh": "echo hello\n"}
OLDER, NEWER = ERAS
NOTICES = {f"{kind}ListChangedNotification" for kind in ("Tool", "Resource", "Prompt")}
EVENTS = {f"{kind}ListChanged" for kind in ("Tools", "Resources", "Prompts")}


@contextmanager
def serving(transport: str, folder: Path, era: str) -> Iterator[Conversation]:
    skill_folder(folder / "skills", "first", files=HELLO)
    if transport == "stdio":
        with conversing(over_stdio(folder), folder, era=era) as talk:
            yield talk
    else:
        with http_server(folder) as url, conversing(over_http(url), folder, era=era) as talk:
            yield talk


@pytest.fixture(params=["stdio", "http"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def take_all_lists(talk: Conversation) -> None:
    for take in (talk.client.list_tools, talk.client.list_resources, talk.client.list_prompts):
        talk.portal.call(take)


def read_something(talk: Conversation) -> None:
    talk.call("read_skill_file", skill_name="first", path="SKILL.md")


def test_an_older_client_is_told_with_its_next_call(tmp_path: Path, transport: str) -> None:
    with serving(transport, tmp_path, OLDER) as talk:
        take_all_lists(talk)
        read_something(talk)
        assert not talk.heard
        skill_folder(tmp_path / "skills", "second", files=HELLO)

        def is_told() -> bool:
            read_something(talk)
            return set(talk.heard) >= NOTICES

        assert wait_for(is_told)
        assert sorted(talk.heard) == sorted(NOTICES), "once"
        assert "second" in str(talk.tools())


def test_a_newer_client_is_told_while_it_listens(tmp_path: Path, transport: str) -> None:
    with serving(transport, tmp_path, NEWER) as talk:
        heard: list[str] = []

        async def listen() -> None:
            async with talk.client.listen(
                tools_list_changed=True, resources_list_changed=True, prompts_list_changed=True
            ) as events:
                heard.append("ready")
                async for event in events:
                    heard.append(type(event).__name__)  # noqa: PERF401 - looked at while it grows

        listening = talk.portal.start_task_soon(listen)
        assert wait_for(lambda: heard == ["ready"])
        shutil.rmtree(tmp_path / "skills" / "first")
        assert wait_for(lambda: set(heard[1:]) == EVENTS)
        listening.cancel()
        assert talk.portal.call(talk.client.list_tools).tools == []


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Conversation]:
    """An older client that looks at nothing old."""
    monkeypatch.setattr(changes, "LOOK_SECONDS", 0)
    with (
        made_manager(tmp_path, HELLO, policy=GUARDED) as manager,
        conversing(create_server(manager), tmp_path, era=OLDER) as conversation,
    ):
        yield conversation


def test_only_what_was_listed_can_be_old(talk: Conversation, tmp_path: Path) -> None:
    talk.tools()
    skill_folder(tmp_path / "skills", "second", files=HELLO)
    talk.call("read_skill_file", skill_name="demo", path="SKILL.md")
    assert talk.heard == ["ToolListChangedNotification"]


def test_a_list_that_is_taken_anew_is_not_old(talk: Conversation, tmp_path: Path) -> None:
    take_all_lists(talk)
    skill_folder(tmp_path / "skills", "second", files=HELLO)
    talk.tools()
    assert sorted(talk.heard) == ["PromptListChangedNotification", "ResourceListChangedNotification"]


@pytest.mark.parametrize("change", ["description", "script"])
def test_what_a_list_shows_of_a_skill_counts(talk: Conversation, tmp_path: Path, change: str) -> None:
    talk.tools()
    folder = tmp_path / "skills" / "demo"
    if change == "script":
        (folder / "scripts" / "more.sh").write_text("echo more\n")
    else:
        (folder / "SKILL.md").write_text("---\nname: demo\ndescription: Something else.\n---\n")
    talk.call("read_skill_file", skill_name="demo", path="SKILL.md")
    assert talk.heard == ["ToolListChangedNotification"]


@pytest.mark.parametrize("era", ERAS)
def test_the_server_says_that_its_lists_change_and_that_no_resource_is_watched(tmp_path: Path, era: str) -> None:
    with (
        made_manager(tmp_path, HELLO) as manager,
        conversing(create_server(manager), tmp_path, era=era) as talk,
    ):
        said: Any = talk.client.server_capabilities.model_dump(by_alias=True)
        if era == NEWER:
            said = talk.ask("server/discover")["capabilities"]
        assert [said[kind]["listChanged"] for kind in ("tools", "resources", "prompts")] == [True] * 3
        assert said["resources"]["subscribe"] is False
