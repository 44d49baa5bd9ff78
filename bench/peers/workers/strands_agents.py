"""strands-agents: the tool `shell` of an agent with skills; without a sandbox it runs on the host."""

from __future__ import annotations

import os
from pathlib import Path

from bench.peers.workers.serving import Run, serve, shell_line

# Its default model wants a region and looks for an account; nothing is called.
os.environ |= {"AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}

from strands import Agent, AgentSkills
from strands.vended_tools import shell


def make(skills: Path, timeout: int | None) -> Run:
    agent = Agent(tools=[shell], plugins=[AgentSkills(skills=[str(skills)])], callback_handler=None)
    chosen = {} if timeout is None else {"timeout": timeout}

    def run(skill: str, script: str) -> object:
        line = shell_line(skills / skill / "scripts" / script)
        # Not kept as a message: the memory of the run is measured, not that of the conversation.
        return agent.tool.shell(command=line, record_direct_tool_call=False, **chosen)

    return run


if __name__ == "__main__":
    serve(make)
