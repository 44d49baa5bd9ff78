"""The tools without a framework, sent and answered by OpenAI's and Anthropic's real client packages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.model_servers import ModelServer, model_server
from support.running import made_manager

from skillkit import GUARDED
from skillkit.integrations.functions import SkillFunctions
from skillkit.testing import ScriptedApprover

GIVEN = {"skill_name": "demo", "script": "scripts/run.sh", "args": ["wire"]}
TOOLS = ["load_skill", "skills_run_script", "read_skill_file", "find_skills"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with model_server("skills_run_script", GIVEN) as running:
        yield running


@pytest.fixture
def functions(tmp_path: Path) -> Iterator[SkillFunctions]:
    approver = ScriptedApprover("yes_once")
    with made_manager(tmp_path, {"scripts/run.sh": 'echo "ran $1"\n'}, policy=GUARDED, approver=approver) as manager:
        yield SkillFunctions(manager)


def test_openai_takes_the_tools_and_their_answer(server: ModelServer, functions: SkillFunctions) -> None:
    import openai

    messages: list[Any] = [{"role": "user", "content": "go"}]
    with openai.OpenAI(base_url=f"{server.address}/v1", api_key="unused", max_retries=0) as client:
        tools: Any = functions.openai_tools()
        said = client.chat.completions.create(model="m", messages=messages, tools=tools).choices[0].message
        call: Any = (said.tool_calls or [])[0]
        answer = functions.call(call.function.name, call.function.arguments, call.id)
        messages += [said.model_dump(exclude_none=True), answer.to_openai()]
        last = client.chat.completions.create(model="m", messages=messages, tools=tools)
    assert (answer.content, answer.is_error) == ("ran wire\n", False)
    assert last.choices[0].message.content == "done"
    assert server.names[:4] == TOOLS


def test_anthropic_takes_the_tools_and_their_answer(server: ModelServer, functions: SkillFunctions) -> None:
    import anthropic

    messages: list[Any] = [{"role": "user", "content": "go"}]
    with anthropic.Anthropic(base_url=server.address, api_key="unused", max_retries=0) as client:
        tools: Any = functions.anthropic_tools()
        said = client.messages.create(model="m", max_tokens=99, messages=messages, tools=tools)
        (call,) = [each for each in said.content if each.type == "tool_use"]
        arguments: Any = call.input
        answer = functions.call(call.name, arguments, call.id)
        messages += [
            {"role": "assistant", "content": said.model_dump()["content"]},
            {"role": "user", "content": [answer.to_anthropic()]},
        ]
        last = client.messages.create(model="m", max_tokens=99, messages=messages, tools=tools)
    assert (answer.content, answer.is_error) == ("ran wire\n", False)
    assert [each.text for each in last.content if each.type == "text"] == ["done"]
    assert server.names[:4] == TOOLS
