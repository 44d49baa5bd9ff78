"""A Pydantic AI agent with skills: it loads a skill, a person is asked, scripts run. No network is used.

Run it with an answer (yes_once, yes_in_session, no), or without one to be asked. The model follows a script, so that
the example runs anywhere; put the name of yours in its place, `Agent("openai:...")`, and the rest stays.
Needs: pip install skillkit-runtime pydantic-ai-slim
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, ModelMessage, ModelResponse, RunContext, TextPart, Tool, ToolCallPart, ToolReturnPart
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.models.function import AgentInfo, FunctionModel

from skillkit import OptionRequest, SkillManager
from skillkit.approvers.callback import CallbackApprover
from skillkit.integrations.functions import SkillFunctions, ToolSchema

SKILLS = Path(__file__).parent / "skills"
QUESTION = "How readable is: 'The cat sat. The dog ran.'?"


def skill_tools(functions: SkillFunctions) -> list[Tool[None]]:
    """The three tools of every agent with skills; a call that fails is told to the model and ends nothing."""

    def made(tool: ToolSchema) -> Tool[None]:
        async def invoke(context: RunContext[None], **arguments: Any) -> str:  # noqa: ANN401 - as the schema says
            result = await functions.acall(tool.name, arguments, context.tool_call_id)
            if result.is_error:
                raise ToolFailed(result.content)
            return result.content

        return Tool.from_schema(invoke, tool.name, tool.description, dict(tool.input_schema), takes_ctx=True)

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


def tool_answers(messages: list[ModelMessage]) -> list[str]:
    return [part.model_response_str() for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]


def scripted(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Says what it was told to say; a real model would choose these calls by itself."""
    script = {"skill_name": "text-stats", "script": "scripts/stats.py"}
    turns = [
        ToolCallPart("load_skill", {"skill_name": "text-stats"}),
        ToolCallPart("skills_run_script", {**script, "input": {"words": "The cat sat."}}),
        ToolCallPart("skills_run_script", {**script, "input": {"text": "The cat sat. The dog ran."}}),
    ]
    seen = tool_answers(messages)
    if len(seen) < len(turns):
        return ModelResponse(parts=[turns[len(seen)]])
    return ModelResponse(parts=[TextPart("I was told: " + " / ".join(text.partition("\n")[0] for text in seen[1:]))])


async def main() -> None:
    with tempfile.TemporaryDirectory() as state, SkillManager(SKILLS, "", [], [], state_dir=state) as manager:
        functions = SkillFunctions(manager, approver=asking_on(asyncio.get_running_loop()), session_id="example")
        agent = Agent(FunctionModel(scripted), tools=skill_tools(functions))
        answer = await agent.run(QUESTION)
    for text in tool_answers(answer.all_messages()):
        print(f"tool: {text.strip()[:200]}")
    print(f"ai: {answer.output}")


if __name__ == "__main__":
    asyncio.run(main())
