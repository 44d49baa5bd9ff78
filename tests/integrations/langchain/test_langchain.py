"""A LangChain agent reads skills and runs their scripts; one module, because importing LangChain takes seconds."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command
from pydantic import ValidationError
from support.langchain_agents import ScriptedModel, answers, calling, message_of, started, tool_named
from support.running import anybody_runs, kinds, made_manager, only_record, records_of, wait_for
from support.skill_folders import skill_folder

from skillkit import (
    LOCKED,
    TRUSTED,
    ApprovalUnavailableError,
    ScriptExecutionResult,
    ScriptPolicy,
    SkillManager,
)
from skillkit.integrations.langchain import (
    ScriptFailedError,
    ScriptNotRunError,
    SkillCatalog,
    SkillToolNames,
    create_langchain_tools,
    create_script_tools,
)
from skillkit.integrations.langchain.middleware import SAFE, WireNames, wire_name
from skillkit.testing import ScriptedApprover

ASKING = ScriptPolicy(allow_scripts=True, sandbox="off", approval="first_run")
COUNT = {"scripts/run.sh": 'echo x >> "$1"; echo ran\n'}
GO = {"messages": [("user", "go")]}
THREAD: Any = {"configurable": {"thread_id": "a-thread"}}


def runs_in(file: Path) -> int:
    return file.read_text().count("x") if file.exists() else 0


def twice(file: Path) -> tuple[AIMessage, AIMessage]:
    """Two turns that make the same call."""
    given = {"argv": [str(file)]}
    return calling(("demo.run", given)), calling(("demo.run", given), first_id=2)


def counting(folder: Path, **settings: Any) -> SkillManager:
    """A manager that asks before `demo.run`, which leaves a mark in the workspace for each run."""
    (folder / "workspace").mkdir()
    settings = {"policy": ASKING, "workspace": folder / "workspace", **settings}
    return made_manager(folder, COUNT, **settings)


# --- what tools there are


def test_a_skill_has_a_tool_of_its_name_and_one_for_each_script(tmp_path: Path) -> None:
    files = {"scripts/extract.py": '"""Extracts text."""\n', "scripts/convert.sh": "true\n"}
    with made_manager(tmp_path, files) as manager:
        tools = {tool.name: tool for tool in create_langchain_tools(manager)}
    assert list(tools) == ["demo", "demo.convert", "demo.extract"]
    assert tools["demo"].description == "Skill demo."
    assert tools["demo.extract"].description == "Extracts text."
    assert tools["demo.convert"].description == "Runs scripts/convert.sh of the skill demo."
    assert all(isinstance(tool, StructuredTool) for tool in tools.values())


def test_scripts_with_one_stem_are_named_by_their_path(tmp_path: Path) -> None:
    files = {"scripts/run.sh": "echo shell\n", "scripts/run.py": "print('python')\n", "scripts/other.sh": "true\n"}
    with made_manager(tmp_path, files) as manager:
        tools = create_script_tools(manager.load_skill("demo"), manager)
        assert [tool.name for tool in tools] == ["demo.other", "demo.scripts/run.py", "demo.scripts/run.sh"]
        assert [tool.invoke({}) for tool in tools[1:]] == ["python\n", "shell\n"]


def test_no_two_tools_share_a_name(tmp_path: Path) -> None:
    block = "name: demo.run\ndescription: Named like a script.\n"
    skill_folder(tmp_path / "skills", "twin", frontmatter=block)
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}) as manager:
        names = [tool.name for tool in create_langchain_tools(manager)]
    assert sorted(names) == ["demo", "demo.run", "demo.scripts/run.sh"]


def test_a_script_takes_any_json_and_words(tmp_path: Path) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": 'echo "$#:$2"; cat\n'}) as manager:
        given = {"arguments": {"deep": [1, None, {"é": "x"}]}, "argv": ["a", "b c"]}
        said = message_of(tool_named(manager, "demo.run"), given)
        schema = tool_named(manager, "demo.run").tool_call_schema
    assert said.content == '2:b c\n{"deep": [1, null, {"é": "x"}]}'
    assert "$ref" not in str(schema.model_json_schema())  # type: ignore[union-attr]


def test_the_skills_tool_gives_its_instructions_and_names_the_tools_of_its_scripts(tmp_path: Path) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": "# Runs it.\n"}) as manager:
        said = message_of(tool_named(manager, "demo"), {"arguments": "now"})
    assert "Do it." in said.text
    assert "ARGUMENTS: now" in said.text
    assert "### Available Scripts" in said.text
    assert "| scripts/run.sh | Runs it. | demo.run |" in said.text
    assert "skills_run_script" not in said.text


# --- what a model is told


def test_an_agent_runs_a_script_and_gets_its_output(tmp_path: Path) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": 'echo "hello $1"\n'}) as manager:
        state = started(manager, calling(("demo.run", {"argv": ["you"]}))).invoke(GO)
    (said,) = answers(state)
    assert (said.content, said.status, said.name) == ("hello you\n", "success", "demo.run")
    assert isinstance(said.artifact, ScriptExecutionResult)
    assert said.artifact.exit_code == 0
    assert state["messages"][-1].content == "done"


def test_a_failing_scripts_stderr_reaches_the_model_and_the_agent_goes_on(tmp_path: Path) -> None:
    files = {"scripts/bad.sh": "echo out; echo oops >&2; exit 3\n", "scripts/mute.sh": "echo only out; exit 4\n"}
    turn = calling(("demo.bad", {}), ("demo.mute", {}))
    with made_manager(tmp_path, files) as manager:
        state = started(manager, turn).invoke(GO)
    assert [(said.content, said.status) for said in answers(state)] == [("oops\n", "error"), ("only out\n", "error")]
    assert state["messages"][-1].content == "done"


def test_the_result_of_a_failure_is_on_the_exception(tmp_path: Path) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": "exit 3\n"}) as manager:
        tool = tool_named(manager, "demo.run")
        tool.handle_tool_error = False
        with pytest.raises(ToolException, match="exit code 3 and printed nothing") as caught:
            tool.invoke({})
    assert isinstance(caught.value, ScriptFailedError)
    assert caught.value.result.exit_code == 3


def test_a_failure_with_a_known_cause_names_the_remedy(tmp_path: Path) -> None:
    with made_manager(tmp_path, {"scripts/run.py": "import not_there_at_all\n"}) as manager:
        tool = tool_named(manager, "demo.run")
        said = message_of(tool, {})
        tool.handle_tool_error = False
        with pytest.raises(ScriptFailedError) as caught:
            tool.invoke({})
    assert caught.value.result.hint
    assert said.text.startswith(f"{caught.value.result.stderr.rstrip()}\n\n{caught.value.result.hint}")


def test_long_output_is_cut_for_the_model_and_whole_in_the_artifact(tmp_path: Path) -> None:
    with made_manager(tmp_path, {"scripts/run.py": "print('a' * 50_000 + 'end')\n"}) as manager:
        said = message_of(tool_named(manager, "demo.run"), {})
    assert len(said.text) < 31_000
    assert "characters are left out" in said.text
    assert said.text.endswith("end\n")
    assert len(said.artifact.stdout) == 50_004


def test_arguments_that_the_schema_does_not_know_are_an_error_the_agent_survives(tmp_path: Path) -> None:
    turn = calling(("demo.run", {"session_id": "mine"}), ("demo.run", {"self": 1}), ("demo.run", {"argv": "x"}))
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}) as manager:
        state = started(manager, turn).invoke(GO)
    assert [said.status for said in answers(state)] == ["error"] * 3
    assert state["messages"][-1].content == "done"
    assert kinds(tmp_path) == []


def test_a_refusal_is_a_sentence_with_its_status(tmp_path: Path) -> None:
    with made_manager(tmp_path, COUNT, policy=LOCKED) as manager:
        state = started(manager, calling(("demo.run", {}))).invoke(GO)
    (said,) = answers(state)
    assert said.text.startswith("refused: demo: scripts/run.sh may not run.")
    assert said.status == "error"
    assert kinds(tmp_path) == ["refused"]


def test_a_script_that_is_gone_is_not_found(tmp_path: Path) -> None:
    with made_manager(tmp_path, COUNT) as manager:
        tool = tool_named(manager, "demo.run")
        (tmp_path / "skills/demo/scripts/run.sh").unlink()
        said = message_of(tool, {})
    assert said.text.startswith("not_found: ")
    assert kinds(tmp_path) == ["refused"]


# --- a person


def test_the_managers_approver_is_asked_and_not_the_graph(tmp_path: Path) -> None:
    approver = ScriptedApprover("yes_once", "no")
    mark = tmp_path / "workspace" / "mark"
    with counting(tmp_path, approver=approver) as manager:
        state = started(manager, *twice(mark), checkpointer=InMemorySaver()).invoke(GO, THREAD)
    ran, declined = answers(state)
    assert ran.content == "ran\n"
    assert declined.text.startswith("declined: ")
    assert (len(approver.requests), runs_in(mark)) == (2, 1)


@pytest.mark.parametrize("agent", ["with a thread and no checkpointer", "outside any graph"])
def test_where_nobody_can_be_asked_nothing_runs(tmp_path: Path, agent: str) -> None:
    mark = tmp_path / "workspace" / "mark"
    with counting(tmp_path) as manager:
        if agent == "outside any graph":
            said = message_of(tool_named(manager, "demo.run"), {"argv": [str(mark)]})
        else:
            (said, _) = answers(started(manager, *twice(mark)).invoke(GO, THREAD))
    assert said.text.startswith("approval_unavailable: ")
    assert (said.status, runs_in(mark)) == ("error", 0)


@pytest.mark.parametrize(
    ("answer", "asked", "ran"), [("yes_once", 2, 2), ("yes_in_session", 1, 2), ("no", 2, 0)], ids=str
)
def test_a_graph_is_interrupted_and_resumed(tmp_path: Path, answer: str, asked: int, ran: int) -> None:
    mark = tmp_path / "workspace" / "mark"
    with counting(tmp_path) as manager:
        agent = started(manager, *twice(mark), checkpointer=InMemorySaver())
        questions: list[Any] = []
        state = agent.invoke(GO, THREAD)
        while state.get("__interrupt__"):
            assert runs_in(mark) <= len(questions)
            questions += state["__interrupt__"]
            state = agent.invoke(Command(resume=answer), THREAD)
    assert (len(questions), runs_in(mark)) == (asked, ran)
    assert len({question.value["id"] for question in questions}) == asked
    assert state["messages"][-1].content == "done"
    assert [said.text.split(":")[0] for said in answers(state)] == ["declined" if answer == "no" else "ran\n"] * 2


@pytest.mark.parametrize(("answer", "ran"), [("yes_once", 1), ("yes_in_session", 1), ("no", 0)])
def test_an_async_graph_is_interrupted_and_resumed(tmp_path: Path, answer: str, ran: int) -> None:
    mark = tmp_path / "workspace" / "mark"

    async def talk(agent: Any) -> Any:
        await agent.ainvoke(GO, THREAD)
        return await agent.ainvoke(Command(resume=answer), THREAD)

    with counting(tmp_path) as manager:
        state = asyncio.run(talk(started(manager, twice(mark)[0], checkpointer=InMemorySaver())))
    assert runs_in(mark) == ran
    assert state["messages"][-1].content == "done"


def test_a_question_offers_exactly_three_answers_and_shows_what_would_run(tmp_path: Path) -> None:
    mark = tmp_path / "workspace" / "mark"
    with counting(tmp_path) as manager:
        agent = started(manager, twice(mark)[0], checkpointer=InMemorySaver())
        (question,) = agent.invoke(GO, THREAD)["__interrupt__"]
        with pytest.raises(ValidationError):
            agent.invoke(Command(resume="maybe"), THREAD)
        assert kinds(tmp_path) == []
        agent.invoke(Command(resume="yes_once"), THREAD)
    word, with_ticks = question.response_schema["anyOf"]
    assert word == {"enum": ["yes_once", "yes_in_session", "no"], "type": "string"}
    assert with_ticks["$ref"].endswith("AnswerWithGrants")
    assert [option["id"] for option in question.value["options"]] == ["yes_once", "yes_in_session", "no"]
    (command,) = question.value["prompt"]["commands"]
    assert (command["script"], command["argv"]) == ("scripts/run.sh", [str(mark)])
    assert command["source"] == COUNT["scripts/run.sh"]
    assert runs_in(mark) == 1


def test_what_a_question_shows_hides_nothing(tmp_path: Path) -> None:
    files = {"scripts/run.sh": "echo safe # \u202e\x1b[2K hidden\n"}
    with made_manager(tmp_path, files, policy=ASKING) as manager:
        agent = started(manager, calling(("demo.run", {})), checkpointer=InMemorySaver())
        (question,) = agent.invoke(GO, THREAD)["__interrupt__"]
    assert question.value["prompt"]["commands"][0]["source"] == "echo safe # \\u202e\\x1b[2K hidden\n"


def test_the_record_names_session_and_channel_and_an_interrupt_is_no_refusal(tmp_path: Path) -> None:
    mark = tmp_path / "workspace" / "mark"
    with counting(tmp_path) as manager:
        agent = started(manager, twice(mark)[0], checkpointer=InMemorySaver())
        agent.invoke(GO, THREAD)
        assert kinds(tmp_path) == []
        agent.invoke(Command(resume="yes_once"), THREAD)
    assert kinds(tmp_path) == ["started", "finished"]
    record = only_record(tmp_path, "started")
    assert record["session"] == "a-thread"
    assert "interrupt" in str(record)


def test_the_managers_session_comes_before_the_thread(tmp_path: Path) -> None:
    with made_manager(tmp_path, {"scripts/run.sh": "true\n"}, session_id="mine") as manager:
        started(manager, calling(("demo.run", {}))).invoke(GO, THREAD)
    assert only_record(tmp_path, "started")["session"] == "mine"


def test_a_word_for_the_session_holds_in_its_thread_only(tmp_path: Path) -> None:
    mark = tmp_path / "workspace" / "mark"
    with counting(tmp_path) as manager:
        saver = InMemorySaver()
        agent = started(manager, twice(mark)[0], checkpointer=saver)
        agent.invoke(GO, THREAD)
        agent.invoke(Command(resume="yes_in_session"), THREAD)
        other = started(manager, twice(mark)[0], checkpointer=saver)
        state = other.invoke(GO, {"configurable": {"thread_id": "another"}})
    assert state.get("__interrupt__")
    assert runs_in(mark) == 1


def test_parallel_calls_are_asked_and_answered_one_by_one(tmp_path: Path) -> None:
    files = {"scripts/a.sh": "echo a\n", "scripts/b.sh": "echo b\n"}
    with made_manager(tmp_path, files, policy=ASKING) as manager:
        agent = started(manager, calling(("demo.a", {}), ("demo.b", {})), checkpointer=InMemorySaver())
        questions = agent.invoke(GO, THREAD)["__interrupt__"]
        said = {"scripts/a.sh": "no", "scripts/b.sh": "yes_once"}
        resume = {each.id: said[each.value["prompt"]["commands"][0]["script"]] for each in questions}
        state = agent.invoke(Command(resume=resume), THREAD)
    assert [message.text.split(":")[0] for message in answers(state)] == ["declined", "b\n"]


def test_an_answer_never_goes_to_another_call_of_the_same_step(tmp_path: Path) -> None:
    """A ToolNode of one's own runs all calls of a turn in one step, and LangGraph hands answers out by order."""
    files = {"scripts/a.sh": "sleep 0.01; echo a\n", "scripts/b.sh": "echo b\n"}
    with made_manager(tmp_path, files, policy=ASKING) as manager:
        graph = StateGraph(MessagesState)
        graph.add_node("tools", ToolNode(create_langchain_tools(manager)))
        graph.add_edge(START, "tools")
        made = graph.compile(checkpointer=InMemorySaver())
        approved: Counter[tuple[str, str]] = Counter()
        for number in range(6):
            thread: Any = {"configurable": {"thread_id": f"{number}"}}
            state = made.invoke({"messages": [calling(("demo.a", {}), ("demo.b", {}))]}, thread)
            while questions := state.get("__interrupt__"):
                approved.update((f"{number}", each.value["prompt"]["commands"][0]["script"]) for each in questions)
                state = made.invoke(Command(resume="yes_once"), thread)
            assert len(answers(state)) == 2
    runs = [record.fields for record in records_of(tmp_path) if record.kind == "started"]
    ran = Counter((run["session"], run["script"]) for run in runs)
    assert ran <= approved
    assert ran.total() >= 6


def test_a_subgraphs_question_is_answered_too(tmp_path: Path) -> None:
    mark = tmp_path / "workspace" / "mark"
    with counting(tmp_path) as manager:
        outer = StateGraph(MessagesState)
        outer.add_node("helper", started(manager, twice(mark)[0]))
        outer.add_edge(START, "helper")
        graph: Any = outer.compile(checkpointer=InMemorySaver())
        assert graph.invoke(GO, THREAD)["__interrupt__"]
        graph.invoke(Command(resume="yes_once"), THREAD)
    assert runs_in(mark) == 1


class AsyncOnlySaver(InMemorySaver):
    """As those of many databases, it cannot be asked from outside its loop."""

    def get_tuple(self, config: Any) -> Any:
        raise NotImplementedError(config)

    async def aget_tuple(self, config: Any) -> Any:
        return super().get_tuple(config)


def test_an_async_checkpointer_is_asked_in_its_own_loop(tmp_path: Path) -> None:
    mark = tmp_path / "workspace" / "mark"

    async def talk(agent: Any) -> Any:
        await agent.ainvoke(GO, THREAD)
        return await agent.ainvoke(Command(resume="yes_once"), THREAD)

    with counting(tmp_path) as manager:
        state = asyncio.run(talk(started(manager, twice(mark)[0], checkpointer=AsyncOnlySaver())))
    assert runs_in(mark) == 1
    assert state["messages"][-1].content == "done"


# --- async


def test_parallel_async_calls_run_at_the_same_time(tmp_path: Path) -> None:
    """Each of three scripts waits for the other two, so one after the other they would never end."""
    meet = 'touch "$1/$2"; while [ "$(ls "$1" | wc -l)" -lt 3 ]; do sleep 0.01; done; echo "met $2"\n'
    place = tmp_path / "place"
    place.mkdir()
    turn = calling(*[("demo.run", {"argv": [str(place), name]}) for name in "abc"])
    with made_manager(tmp_path, {"scripts/run.sh": meet}, workspace=place) as manager:
        state = asyncio.run(started(manager, turn).ainvoke(GO))
    assert [said.content for said in answers(state)] == ["met a\n", "met b\n", "met c\n"]


def test_an_async_call_leaves_the_loop_free(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    gate = tmp_path / "place" / "gate"
    wait = {"scripts/run.sh": 'until [ -e "$1" ]; do sleep 0.01; done; echo free\n'}

    async def talk(tool: Any) -> str:
        call = asyncio.create_task(tool.ainvoke({"argv": [str(gate)]}))
        await asyncio.sleep(0)
        gate.touch()  # nobody else does: the script ends only if the loop goes on
        return str(await call)

    with made_manager(tmp_path, wait, workspace=tmp_path / "place") as manager:
        assert asyncio.run(talk(tool_named(manager, "demo.run"))) == "free\n"


def test_cancelling_an_async_call_kills_the_script(tmp_path: Path) -> None:
    mark = f"skillkit-cancelled-{tmp_path.name}-{threading.get_ident()}"

    async def talk(tool: Any) -> None:
        call = asyncio.create_task(tool.ainvoke({"argv": [mark]}))
        assert await asyncio.to_thread(wait_for, lambda: anybody_runs(mark))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    with made_manager(tmp_path, {"scripts/run.sh": "sleep 60\n"}) as manager:
        asyncio.run(talk(tool_named(manager, "demo.run")))
    assert wait_for(lambda: not anybody_runs(mark))


def test_async_refusals_and_failures_are_messages_too(tmp_path: Path) -> None:
    files = {"scripts/run.sh": "echo oops >&2; exit 1\n"}
    with made_manager(tmp_path, files) as manager:
        (failed,) = answers(asyncio.run(started(manager, calling(("demo.run", {}))).ainvoke(GO)))
        (read,) = answers(asyncio.run(started(manager, calling(("demo", {}))).ainvoke(GO)))
        tool = tool_named(manager, "demo.run")
    assert (failed.content, failed.status) == ("oops\n", "error")
    assert "Do it." in read.text
    with made_manager(tmp_path, files, policy=ASKING) as manager:
        tool = tool_named(manager, "demo.run")
        tool.handle_tool_error = False
        with pytest.raises(ScriptNotRunError) as caught:
            asyncio.run(tool.ainvoke({}))
    assert isinstance(caught.value.error, ApprovalUnavailableError)
    assert caught.value.status == "approval_unavailable"


# --- names on the wire, and the catalog


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        ("pdf-extractor", "pdf-extractor"),
        ("pdf-extractor.extract", "pdf-extractor__extract"),
        ("a__b.c", "a__b__c_"),
        ("demo.scripts/run.py", "demo__scripts_run__py_"),
        ("ü.x", "___x_"),
        ("x." + "y" * 80, "x__" + "y" * 52 + "_"),
        ("", "_"),
    ],
)
def test_a_wire_name_is_safe_and_like_the_name(name: str, wire: str) -> None:
    assert wire_name(name).startswith(wire)
    assert SAFE.fullmatch(wire_name(name))


def test_wire_names_are_unique_and_lead_back() -> None:
    names = ["a.b", "a__b", "a b", "a_b", "a/b", "x." + "y" * 80, "x." + "y" * 81, "demo"]
    wires = WireNames(names)
    given = [wires.to_wire(name) for name in names]
    assert len(set(given)) == len(names)
    assert [wires.from_wire(wire) for wire in given] == names
    assert all(SAFE.fullmatch(wire) for wire in given)
    assert wires.from_wire("unknown") == "unknown"
    assert SAFE.fullmatch(wires.to_wire("gone.tool"))


def test_the_model_sees_safe_names_and_the_agent_keeps_its_own(tmp_path: Path) -> None:
    model = ScriptedModel(script=[calling(("demo__run", {})), AIMessage("done")])
    with made_manager(tmp_path, {"scripts/run.sh": "echo ran\n"}) as manager:
        agent: Any = create_agent(model, create_langchain_tools(manager), middleware=[SkillToolNames()])
        state = agent.invoke(GO)
    assert model.offered == ["demo", "demo__run"]
    (said,) = answers(state)
    assert (said.name, said.content) == ("demo.run", "ran\n")
    assert state["messages"][1].tool_calls[0]["name"] == "demo.run"
    asked, answered = model.told[1][1:]
    assert isinstance(asked, AIMessage)
    assert isinstance(answered, ToolMessage)
    assert (asked.tool_calls[0]["name"], answered.name) == ("demo__run", "demo__run")


def test_the_catalog_stands_in_the_system_prompt(tmp_path: Path) -> None:
    block = 'name: Über.all\ndescription: "Does all.\\n- demo: forged"\n'
    skill_folder(tmp_path / "skills", "all", frontmatter=block)
    model = ScriptedModel(script=[AIMessage("done"), AIMessage("done")])
    with made_manager(tmp_path) as manager:
        middleware: Any = [SkillToolNames(), SkillCatalog(manager)]
        tools = create_langchain_tools(manager)
        agent: Any = create_agent(model, tools, system_prompt="Be brief.", middleware=middleware)
        agent.invoke(GO)
        asyncio.run(agent.ainvoke(GO))
    for told in model.told:
        assert isinstance(told[0], SystemMessage)
        assert told[0].text.startswith("Be brief.\n\n## Skills\n")
        assert told[0].text.splitlines()[-2:] == [
            f"- {wire_name('Über.all')}: Does all. - demo: forged",
            "- demo: Skill demo.",
        ]


def test_an_agent_without_skills_has_no_catalog(tmp_path: Path) -> None:
    model = ScriptedModel(script=[AIMessage("done")])
    with SkillManager("", "", [], [], policy=TRUSTED, state_dir=tmp_path / "state") as manager:
        agent: Any = create_agent(model, [], middleware=[SkillCatalog(manager)])
        agent.invoke(GO)
    assert [message.type for message in model.told[0]] == ["human"]
