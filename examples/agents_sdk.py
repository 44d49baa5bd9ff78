"""The OpenAI Agents SDK with skills: it loads a skill, a person is asked, scripts run. No network is used.

Run it with an answer (yes_once, yes_in_session, no), or without one to be asked. The model follows a script, so that
the example runs anywhere; put the name of yours in its place, `Agent(model="...")`, and the rest stays.
Needs: pip install skillkit-runtime openai-agents
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from agents import Agent, FunctionTool, Runner, ToolCallOutputItem, set_tracing_disabled
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from agents.tool_context import ToolContext

from skillkit import OptionRequest, SkillManager
from skillkit.approvers.callback import CallbackApprover
from skillkit.integrations.functions import SkillFunctions, ToolSchema

SKILLS = Path(__file__).parent / "skills"
QUESTION = "How readable is: 'The cat sat. The dog ran.'?"


def skill_tools(functions: SkillFunctions) -> list[FunctionTool]:
    """The three tools of every agent with skills; a call that fails is told to the model and ends nothing."""

    def made(tool: ToolSchema) -> FunctionTool:
        async def invoke(context: ToolContext[Any], arguments: str) -> str:
            return (await functions.acall(tool.name, arguments, context.tool_call_id)).content

        # Not strict: the model may leave out what is optional.
        return FunctionTool(tool.name, tool.description, dict(tool.input_schema), invoke, strict_json_schema=False)

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


def scripted_model() -> ScriptedModel:
    """Says what it was told to say; a real model would choose these calls by itself."""
    script = {"skill_name": "text-stats", "script": "scripts/stats.py"}
    turns = [
        ("load_skill", {"skill_name": "text-stats"}),
        ("skills_run_script", {**script, "input": {"words": "The cat sat."}}),
        ("skills_run_script", {**script, "input": {"text": "The cat sat. The dog ran."}}),
    ]
    calls = [[function_call(name, given, call_id=f"call_{n}")] for n, (name, given) in enumerate(turns)]
    return ScriptedModel([*calls, ModelStep.respond(last_words)])


def last_words(call: ModelCall) -> list[Any]:
    seen = [item["output"] for item in call.input if item.get("type") == "function_call_output"]
    return [assistant_message("I was told: " + " / ".join(text.partition("\n")[0] for text in seen[1:]))]


async def main() -> None:
    set_tracing_disabled(disabled=True)
    with tempfile.TemporaryDirectory() as state, SkillManager(SKILLS, "", [], [], state_dir=state) as manager:
        functions = SkillFunctions(manager, approver=asking_on(asyncio.get_running_loop()), session_id="example")
        agent = Agent("reader", instructions="Use skills.", model=scripted_model(), tools=skill_tools(functions))
        answer = await Runner.run(agent, QUESTION)
    for item in answer.new_items:
        if isinstance(item, ToolCallOutputItem):
            print(f"tool: {str(item.output).strip()[:200]}")
    print(f"ai: {answer.final_output}")


if __name__ == "__main__":
    asyncio.run(main())
