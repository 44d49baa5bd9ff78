"""No runtime at all: `subprocess.run` of interpreter and script, as most programs would write it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.peers.workers.serving import INTERPRETERS, Run, serve

USUAL_TIMEOUT = 30


def make(skills: Path, timeout: int | None) -> Run:
    def run(skill: str, script: str) -> object:
        ended = subprocess.run(
            [INTERPRETERS[Path(script).suffix], skills / skill / "scripts" / script],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout or USUAL_TIMEOUT,
            check=False,
        )
        return f"{ended.stdout}\n{ended.stderr}"

    return run


if __name__ == "__main__":
    serve(make)
