"""pydantic-ai-skills: the script objects of its capability, which its tool `run_skill_script` calls."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pydantic_ai_skills import LocalSkillScriptExecutor, SkillsCapability

from bench.peers.workers.serving import Run, serve


def make(skills: Path, timeout: int | None) -> Run:
    executor = None if timeout is None else LocalSkillScriptExecutor(timeout=timeout)
    packages = SkillsCapability(skills, script_executor=executor).packages
    loop = asyncio.Runner()
    return lambda skill, script: loop.run(packages[skill].scripts_by_name[f"scripts/{script}"].run(ctx=None))


if __name__ == "__main__":
    serve(make)
