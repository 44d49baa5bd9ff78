"""The LangChain tools inside a deep agent, beside the tools of its own; `make examples` has deepagents."""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from support.langchain_agents import ScriptedModel, answers, calling
from support.running import made_manager

from skillkit import GUARDED
from skillkit.integrations.langchain import SkillCatalog, SkillToolNames, create_langchain_tools

GO: Any = {"messages": [("user", "go")]}
THREAD: Any = {"configurable": {"thread_id": "deep"}}
FILES = {"scripts/run.sh": 'echo "ran $1"\n', "scripts/fail.sh": "echo broken >&2; exit 3\n"}

pytestmark = pytest.mark.skipif(
    find_spec("deepagents") is None and os.environ.get("EXAMPLES") != "all",
    reason="deepagents is not installed here; `make examples` has it",
)


@pytest.mark.parametrize(("answer", "said"), [("yes_once", "ran deep\n"), ("no", "declined: ")])
def test_a_deep_agent_is_interrupted_and_resumed(tmp_path: Path, answer: str, said: str) -> None:
    deepagents: Any = import_module("deepagents")
    model = ScriptedModel(script=[calling(("demo__run", {"argv": ["deep"]})), AIMessage("done")])
    with made_manager(tmp_path, FILES, policy=GUARDED) as manager:
        agent = deepagents.create_deep_agent(
            model,
            create_langchain_tools(manager),
            middleware=[SkillToolNames(), SkillCatalog(manager)],
            checkpointer=InMemorySaver(),
        )
        (question,) = agent.invoke(GO, THREAD)["__interrupt__"]
        state = agent.invoke(Command(resume={question.id: answer}), THREAD)
    (told,) = answers(state)
    assert told.name == "demo.run"
    assert told.text.startswith(said)
    assert state["messages"][-1].text == "done"
    assert {"demo", "demo__run", "demo__fail", "read_file"} <= set(model.offered)
