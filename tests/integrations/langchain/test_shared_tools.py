"""Four LangChain tools for all skills, where a tool for each script would be more than a provider takes."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from support.langchain_agents import ScriptedModel, answers, calling, message_of
from support.running import kinds, made_manager, only_record
from support.skill_folders import skill_folder

from skillkit import ScriptExecutionResult, ScriptPolicy, SkillManager
from skillkit.integrations.langchain import SkillCatalog, SkillToolNames, create_langchain_tools

ASKING = ScriptPolicy(allow_scripts=True, sandbox="off", approval="first_run")
FILES = {
    "scripts/run.sh": 'echo "ran $1"; cat\n',
    "scripts/bad.sh": "echo broken >&2; exit 3\n",
    "references/guide.md": "Read me.\n",
}
NAMES = ["load_skill", "skills_run_script", "read_skill_file", "find_skills"]
GO = {"messages": [("user", "go")]}
THREAD: Any = {"configurable": {"thread_id": "a-thread"}}


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[SkillManager]:
    with made_manager(tmp_path, FILES) as made:
        yield made


def shared(manager: SkillManager) -> dict[str, BaseTool]:
    return {tool.name: tool for tool in create_langchain_tools(manager, one_per_script=False)}


def run(manager: SkillManager, **given: Any) -> Any:
    return message_of(shared(manager)["skills_run_script"], {"skill_name": "demo", **given})


def add_skills(folder: Path, count: int) -> None:
    for number in range(count):
        skill_folder(folder / "skills", f"extra-{number:03d}", files={"scripts/run.sh": "echo extra\n"})


def test_up_to_100_tools_each_script_has_its_own(tmp_path: Path, manager: SkillManager) -> None:
    add_skills(tmp_path, 48)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(create_langchain_tools(manager)) == 99


def test_beyond_100_there_are_four_and_it_is_said(tmp_path: Path, manager: SkillManager) -> None:
    add_skills(tmp_path, 49)
    with pytest.warns(UserWarning, match=r"50 skills would be 101 tools.*one_per_script=False") as warned:
        tools = create_langchain_tools(manager)
    assert [tool.name for tool in tools] == NAMES
    assert [warning.filename for warning in warned] == [__file__], "where the tools are made"


@pytest.mark.parametrize(("one_per_script", "count"), [(True, 101), (False, 4)])
def test_the_program_chooses_in_silence(
    tmp_path: Path, manager: SkillManager, one_per_script: bool, count: int
) -> None:
    add_skills(tmp_path, 49)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(create_langchain_tools(manager, one_per_script=one_per_script)) == count


def test_500_skills_are_told_in_few_bytes(tmp_path: Path, manager: SkillManager) -> None:
    add_skills(tmp_path, 500)
    with pytest.warns(UserWarning, match="501 skills"):
        tools = create_langchain_tools(manager)
    # Less than 6,000 tokens, for words take more than 3.5 bytes each.
    assert len(json.dumps([convert_to_openai_tool(tool) for tool in tools]).encode()) < 3.5 * 6_000
    assert "- extra-020: Skill extra-020." in tools[0].description


def test_an_agent_finds_loads_runs_and_reads(manager: SkillManager) -> None:
    turns = [
        calling(("find_skills", {"query": "demo"})),
        calling(("load_skill", {"skill_name": "demo"}), first_id=2),
        calling(
            ("skills_run_script", {"skill_name": "demo", "script": "run", "args": ["a"], "input": {"b": 1}}), first_id=3
        ),
        calling(("read_skill_file", {"skill_name": "demo", "path": "references/guide.md"}), first_id=4),
    ]
    model = ScriptedModel(script=[*turns, AIMessage("done")])
    tools = create_langchain_tools(manager, one_per_script=False)
    agent: Any = create_agent(model, tools, middleware=[SkillToolNames(), SkillCatalog(manager)])
    found, loaded, ran, read = answers(agent.invoke(GO))
    assert "- demo: Skill demo." in found.text
    assert 'skills_run_script(skill_name="demo", script="scripts/bad.sh"' in loaded.text
    assert ran.text == 'ran a\n{"b": 1}'
    assert isinstance(ran.artifact, ScriptExecutionResult)
    assert read.text == "Read me.\n"
    assert model.offered == NAMES


def test_loading_a_skill_runs_nothing(tmp_path: Path) -> None:
    with made_manager(
        tmp_path, {**FILES, "SKILL.md": "---\ndescription: x\n---\nRun `bash scripts/run.sh a`.\n"}
    ) as made:
        assert "bash scripts/run.sh a" in message_of(shared(made)["load_skill"], {"skill_name": "demo"}).text
    assert kinds(tmp_path) == []


def test_a_failure_is_told_and_the_agent_goes_on(manager: SkillManager) -> None:
    said = run(manager, script="bad")
    assert (said.text, said.status) == ("broken\n", "error")


def test_a_text_is_passed_as_it_is(manager: SkillManager) -> None:
    assert run(manager, script="run", args=["a"], input="as it is").text == "ran a\nas it is"


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        (
            "skills_run_script",
            {"skill_name": "demos", "script": "run"},
            "not_found: There is no skill 'demos'. There are: demo.",
        ),
        ("skills_run_script", {"skill_name": "demo", "script": "runs"}, "not_found: "),
        ("skills_run_script", {"skill_name": "demo"}, "invalid_arguments: skills_run_script: 'script' is missing"),
        ("skills_run_script", {"skill_name": "demo", "script": "run", "config": 1, "x": 2}, "invalid_arguments: "),
        ("load_skill", {"skill_name": "demos"}, "not_found: "),
        ("load_skill", {"skill_name": 3}, "invalid_arguments: "),
        ("read_skill_file", {"skill_name": "demo", "path": "../x"}, "refused: "),
        ("read_skill_file", {"skill_name": "demo", "path": "none.md"}, "not_found: "),
        ("find_skills", {}, "invalid_arguments: "),
    ],
)
def test_whatever_a_model_sends_it_gets_an_answer(
    manager: SkillManager, tool: str, given: dict[str, Any], told: str
) -> None:
    said = message_of(shared(manager)[tool], given)
    assert said.text.startswith(told)
    assert said.status == "error"
    assert asyncio.run(
        shared(manager)[tool].ainvoke({"name": tool, "args": given, "id": "1", "type": "tool_call"})
    ) == (said.model_copy(update={"tool_call_id": "1"}))


def test_a_run_of_a_skill_that_does_not_exist_is_on_record(tmp_path: Path, manager: SkillManager) -> None:
    message_of(shared(manager)["skills_run_script"], {"skill_name": "gone", "script": "run"})
    assert only_record(tmp_path, "refused")["skill"] == "gone"


def test_a_skill_for_persons_only_is_not_there(tmp_path: Path, manager: SkillManager) -> None:
    skill_folder(tmp_path / "skills", "own", frontmatter="description: x\ndisable-model-invocation: true", files=FILES)
    tools = shared(manager)
    assert "own" not in json.dumps([convert_to_openai_tool(tool) for tool in tools.values()])
    assert message_of(tools["skills_run_script"], {"skill_name": "own", "script": "run"}).text.startswith("not_found")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_graph_is_interrupted_and_resumed(tmp_path: Path, is_async: bool) -> None:
    call = calling(("skills_run_script", {"skill_name": "demo", "script": "run", "args": ["a"]}))
    with made_manager(tmp_path, FILES, policy=ASKING) as manager:
        model = ScriptedModel(script=[call, AIMessage("done")])
        tools = create_langchain_tools(manager, one_per_script=False)
        agent: Any = create_agent(model, tools, checkpointer=InMemorySaver())

        async def talk() -> Any:
            asked = await agent.ainvoke(GO, THREAD)
            return asked, await agent.ainvoke(Command(resume="yes_once"), THREAD)

        if is_async:
            asked, state = asyncio.run(talk())
        else:
            asked, state = agent.invoke(GO, THREAD), agent.invoke(Command(resume="yes_once"), THREAD)
    assert len(asked["__interrupt__"]) == 1
    assert [said.text for said in answers(state)] == ["ran a\n"]
    assert only_record(tmp_path, "started")["session"] == "a-thread"
