"""agno: the tool `get_skill_script` that it gives to an agent."""

from __future__ import annotations

from pathlib import Path

from agno.skills import LocalSkills, Skills

from bench.peers.workers.serving import Run, serve


def make(skills: Path, timeout: int | None) -> Run:
    tools = {tool.name: tool for tool in Skills(loaders=[LocalSkills(str(skills))]).get_tools()}
    call = tools["get_skill_script"].entrypoint
    chosen = {} if timeout is None else {"timeout": timeout}
    return lambda skill, script: call(skill, script, execute=True, **chosen)


if __name__ == "__main__":
    serve(make)
