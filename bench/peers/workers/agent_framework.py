"""agent-framework-core: the tool `run_skill_script`, with a runner like that of its samples (it ships none).

An agent's model wants the scripts of the skill `unseen`; the tool runs those of every other one, as after a yes.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message
from agent_framework import FunctionInvocationContext as Invocation
from agent_framework import SkillsProvider as Provider

from bench.peers.workers.serving import Run, serve

USUAL_TIMEOUT = 30
TOOL = "run_skill_script"


class Model(FunctionInvocationLayer, BaseChatClient):
    """Wants one script, whatever it is told, and keeps the tools that it was given."""

    wanted: dict[str, str]
    tools: dict[str, Any]

    async def _inner_get_response(self, *, options: dict[str, Any], **_: object) -> ChatResponse:
        self.tools = {tool.name: tool for tool in options["tools"]}
        call = Content.from_function_call("call-1", TOOL, arguments=self.wanted)
        return ChatResponse(messages=[Message("assistant", [call])])


def make(skills: Path, timeout: int | None) -> Run:
    model, loop = Model(), asyncio.Runner()
    agent = Agent(model, context_providers=[Provider.from_paths(skills, script_runner=sample_runner(timeout))])

    def asked(wanted: dict[str, str]) -> object:
        model.wanted = wanted
        answer = loop.run(agent.run("Greet me."))
        return "It asks for approval." if answer.user_input_requests else answer.messages

    asked({"skill_name": "unseen", "script_name": "scripts/greet.py"})
    tool = model.tools[TOOL]

    def run(skill: str, script: str) -> object:
        wanted = {"skill_name": skill, "script_name": f"scripts/{script}"}
        if skill == "unseen":
            return asked(wanted)
        invocation = Invocation(function=tool, arguments=wanted)
        return loop.run(tool.invoke(arguments=wanted, context=invocation, skip_parsing=True))

    return run


def sample_runner(timeout: int | None) -> Callable[..., str]:
    def run(_: object, script: Any, args: list[str] | None = None) -> str:  # noqa: ANN401 - of a package not installed here
        path = Path(script.full_path)
        words: list[str | Path] = [sys.executable, path, *(args or [])]
        try:
            ended = subprocess.run(
                words, capture_output=True, text=True, timeout=timeout or USUAL_TIMEOUT, cwd=path.parent, check=False
            )
        except subprocess.TimeoutExpired:
            return f"{path.name} timed out"
        return f"{ended.stdout}\n{ended.stderr}\nexit code {ended.returncode}"

    return run


if __name__ == "__main__":
    serve(make)
