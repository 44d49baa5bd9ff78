"""A deep agent with skills: it loads a skill, a person is asked, scripts run. No network is used.

Run it with an answer (yes_once, yes_in_session, no), or without one to be asked. The model follows a script, so that
the example runs anywhere; put the name of yours in its place, `create_deep_agent("openai:...")`, and the rest stays.
Needs: pip install skillkit-runtime deepagents
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool, ToolException

from skillkit import OptionRequest, SkillManager
from skillkit.approvers.callback import CallbackApprover
from skillkit.integrations.functions import SkillFunctions, ToolSchema

SKILLS = Path(__file__).parent / "skills"
QUESTION = "How readable is: 'The cat sat. The dog ran.'?"


def skill_tools(functions: SkillFunctions) -> list[StructuredTool]:
    """The three tools of every agent with skills; a call that fails is told to the model and ends nothing."""

    def made(tool: ToolSchema) -> StructuredTool:
        async def invoke(**arguments: Any) -> str:  # noqa: ANN401 - as the schema says
            result = await functions.acall(tool.name, arguments)
            if result.is_error:
                raise ToolException(result.content)
            return result.content

        return StructuredTool(
            name=tool.name,
            description=tool.description,
            args_schema=dict(tool.input_schema),
            coroutine=invoke,
            handle_tool_error=True,
        )

    return [made(tool) for tool in functions.tools()]


async def person(request: OptionRequest) -> str:
    """Where you show the question in your own way; the answer is the id of one of its three options."""
    print(f"? {request.title}")
    offered = [option.id for option in request.options]
    try:
        said = sys.argv[1] if sys.argv[1:] else await asyncio.to_thread(input, f"  {', '.join(offered)}: ")
    except EOFError:  # nobody is there
        said = "no"
    return said.strip()


def asking_on(loop: asyncio.AbstractEventLoop) -> CallbackApprover:
    """A script waits for its answer in a thread of its own, so the loop is free to ask for it."""
    return CallbackApprover(lambda request: asyncio.run_coroutine_threadsafe(person(request), loop).result())


class ScriptedModel(BaseChatModel):
    """Says what it was told to say; a real model would choose these calls by itself."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> ScriptedModel:  # noqa: ARG002, ANN401
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:  # noqa: ANN401
        script = {"skill_name": "text-stats", "script": "scripts/stats.py"}
        turns = [
            ("load_skill", {"skill_name": "text-stats"}),
            ("skills_run_script", {**script, "input": {"words": "The cat sat."}}),
            ("skills_run_script", {**script, "input": {"text": "The cat sat. The dog ran."}}),
        ]
        seen = [message.text for message in messages if isinstance(message, ToolMessage)]
        if len(seen) < len(turns):
            name, given = turns[len(seen)]
            said = AIMessage("", tool_calls=[{"name": name, "args": given, "id": f"call_{len(seen)}"}])
        else:
            said = AIMessage("I was told: " + " / ".join(text.partition("\n")[0] for text in seen[1:]))
        return ChatResult(generations=[ChatGeneration(message=said)])


async def main() -> None:
    with tempfile.TemporaryDirectory() as state, SkillManager(SKILLS, "", [], [], state_dir=state) as manager:
        functions = SkillFunctions(manager, approver=asking_on(asyncio.get_running_loop()), session_id="example")
        agent: Any = create_deep_agent(ScriptedModel(), skill_tools(functions))
        answer = await agent.ainvoke({"messages": [("user", QUESTION)]})
    for message in answer["messages"]:
        if isinstance(message, ToolMessage):
            print(f"tool: {message.text.strip()[:200]}")
    print(f"ai: {answer['messages'][-1].text}")


if __name__ == "__main__":
    asyncio.run(main())
