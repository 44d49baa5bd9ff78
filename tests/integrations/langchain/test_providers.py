"""OpenAI's and Anthropic's real client packages against servers that refuse a dot in a tool's name."""

from __future__ import annotations

import asyncio
import gc
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from pydantic import SecretStr
from support.langchain_agents import answers
from support.model_servers import ModelServer, model_server
from support.running import made_manager

from skillkit.integrations.langchain import SkillCatalog, SkillToolNames, create_langchain_tools

GO: Any = {"messages": [("user", "go")]}
KEY = SecretStr("unused")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with model_server() as running:
        yield running
    gc.collect()  # the clients keep connections until they are collected


def chat_model(provider: str, server: ModelServer) -> Any:
    """Imported here: the two take seconds, and every process of a suite reads every file."""
    if provider == "openai":
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(model="m", base_url=f"{server.address}/v1", api_key=KEY, max_retries=0)
    from langchain_anthropic import ChatAnthropic

    return ChatAnthropic(model_name="m", base_url=server.address, api_key=KEY, max_retries=0, timeout=30, stop=None)


def agent_of(provider: str, server: ModelServer, manager: Any, *, middleware: list[Any]) -> Any:
    return create_agent(chat_model(provider, server), create_langchain_tools(manager), middleware=middleware)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_provider_takes_the_names_that_the_middleware_gives(
    provider: str, is_async: bool, server: ModelServer, tmp_path: Path
) -> None:
    files = {"scripts/run.sh": 'echo "ran $1"\n', "scripts/a.sh": "true\n", "scripts/a.py": "pass\n"}
    with made_manager(tmp_path, files) as manager:
        agent = agent_of(provider, server, manager, middleware=[SkillToolNames(), SkillCatalog(manager)])
        state = asyncio.run(agent.ainvoke(GO)) if is_async else agent.invoke(GO)
    (said,) = answers(state)
    assert (said.name, said.content) == ("demo.run", "ran wire\n")
    assert state["messages"][-1].text == "done"
    assert server.names.count("demo__run") >= 3  # offered twice, and once in the history


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_without_the_middleware_a_provider_refuses(provider: str, server: ModelServer, tmp_path: Path) -> None:
    error = importlib.import_module(provider).BadRequestError
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}) as manager:
        agent = agent_of(provider, server, manager, middleware=[])
        with pytest.raises(error, match=r"demo\.run"):
            agent.invoke(GO)
