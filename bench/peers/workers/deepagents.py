"""deepagents: `LocalShellBackend.execute`, which its tool `execute` calls; a model writes the shell line."""

from __future__ import annotations

from pathlib import Path

from deepagents.backends import LocalShellBackend

from bench.peers.workers.serving import Run, serve, shell_line


def make(skills: Path, timeout: int | None) -> Run:
    backend = LocalShellBackend(skills)

    def run(skill: str, script: str) -> object:
        return backend.execute(shell_line(skills / skill / "scripts" / script), timeout=timeout).output

    return run


if __name__ == "__main__":
    serve(make)
