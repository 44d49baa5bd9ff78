"""google-adk: the tool `run_skill_script` of its SkillToolset, with its local executor.

Without an executor it runs nothing; the local one is the only one that needs no container and no service.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.code_executors.unsafe_local_code_executor import UnsafeLocalCodeExecutor
from google.adk.sessions import InMemorySessionService
from google.adk.skills import Skill, load_skill_from_dir
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.skill_toolset import SkillToolset
from google.adk.tools.tool_context import ToolContext

from bench.peers.workers.serving import Run, serve


def make(skills: Path, timeout: int | None) -> Run:
    loop = asyncio.Runner()
    loaded = [load_skill_from_dir(folder) for folder in sorted(skills.iterdir())]
    tool, context = loop.run(prepared(loaded, timeout))

    def run(skill: str, script: str) -> object:
        arguments = {"skill_name": skill, "file_path": f"scripts/{script}"}
        return loop.run(tool.run_async(args=arguments, tool_context=context))

    return run


async def prepared(skills: list[Skill], timeout: int | None) -> tuple[BaseTool, ToolContext]:
    executor = UnsafeLocalCodeExecutor(**({} if timeout is None else {"timeout_seconds": timeout}))
    limit = {} if timeout is None else {"script_timeout": timeout}
    toolset = SkillToolset(skills, code_executor=executor, **limit)
    sessions = InMemorySessionService()
    invocation = InvocationContext(
        session_service=sessions,
        session=await sessions.create_session(app_name="bench", user_id="bench"),
        agent=LlmAgent(name="bench", tools=[toolset]),
        invocation_id="bench",
    )
    (tool,) = [each for each in await toolset.get_tools() if each.name == "run_skill_script"]
    return tool, ToolContext(invocation)


if __name__ == "__main__":
    serve(make)
