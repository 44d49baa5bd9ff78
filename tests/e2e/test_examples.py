"""The examples for other frameworks as a user runs them; `make examples` has all of these frameworks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
TITLE = "? Run scripts/stats.py of the skill text-stats?"
STDERR = "stats: the JSON must be an object with the one key"


@pytest.fixture(
    params=["agents_sdk.py", "pydantic_ai_agent.py", "deep_agent.py"],
)
def example(request: pytest.FixtureRequest) -> Path:
    if os.environ.get("EXAMPLES") != "all":
        pytest.skip("`make examples` runs these, where all the frameworks are installed")
    return EXAMPLES / str(request.param)


def told(example: Path, folder: Path, *answer: str) -> list[str]:
    """The lines it prints; each person is a coroutine, so that none is asked by a loop that is blocked."""
    ended = subprocess.run(
        [sys.executable, example, *answer],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        timeout=100,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


def test_a_model_sees_what_a_script_printed_and_why_another_call_failed(example: Path, tmp_path: Path) -> None:
    lines = told(example, tmp_path, "yes_in_session")
    assert lines.count(TITLE) == 1, "one answer is for the whole session"
    assert 'tool: <skill_context id="text-stats" status="ok">' in lines
    assert "words                   6" in lines
    failed, _, succeeded = lines[-1].removeprefix("ai: I was told: ").rpartition(" / ")
    assert STDERR in failed
    assert succeeded == "characters              25"


def test_where_nobody_is_there_the_model_is_told_and_nothing_runs(example: Path, tmp_path: Path) -> None:
    lines = told(example, tmp_path)
    assert sum(TITLE in line for line in lines) == 3
    assert "characters              25" not in "".join(lines)
    assert STDERR not in "".join(lines)
    assert "declined" in lines[-1]
    assert "Declined by a person (callback)." in lines[-1]
