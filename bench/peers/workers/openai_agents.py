"""openai-agents: `exec` of a session of its local sandbox, with the skills in its workspace as for its agents."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from agents.sandbox import Manifest
from agents.sandbox.capabilities import Skills
from agents.sandbox.entries import LocalDir
from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient

from bench.peers.workers.serving import Run, serve, shell_line


def make(skills: Path, timeout: int | None) -> Run:
    loop = asyncio.Runner()
    capability = Skills(from_=LocalDir(src=skills))
    session = loop.run(started(capability.process_manifest(Manifest())))

    def run(skill: str, script: str) -> object:
        line = shell_line(Path(capability.skills_path, skill, "scripts", script))
        return loop.run(session.exec(line, timeout=timeout))

    return run


async def started(manifest: Manifest) -> Any:  # noqa: ANN401 - of a package that is not installed here
    session = await UnixLocalSandboxClient().create(manifest=manifest)
    await session.start()
    return session


def told(result: Any) -> str:  # noqa: ANN401 - as above
    return f"{result.stdout.decode()}\n{result.stderr.decode()}\nexit code {result.exit_code}"


if __name__ == "__main__":
    serve(make, told)
