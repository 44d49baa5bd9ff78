"""The LangChain example as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "langchain_agent.py"


@pytest.mark.parametrize(
    ("answers", "said"),
    [(["yes_once"], "text-stats.stats: characters "), (["no"], "text-stats.stats: declined: "), ([], ": declined: ")],
    ids=["yes", "no", "nobody there"],
)
def test_the_example_runs_without_network(answers: list[str], said: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, EXAMPLE, *answers],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        timeout=100,
    )
    assert ended.returncode == 0, ended.stderr
    assert "? Run scripts/stats.py of the skill text-stats?" in ended.stdout
    assert said in ended.stdout
    assert ended.stdout.endswith("Two short sentences; anybody can read them.\n")
