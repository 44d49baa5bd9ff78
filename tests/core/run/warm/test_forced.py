"""What holds for runs holds for warm ones: the tests of runs once more, each run with a spare of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.warm_runs import needs_spares

pytestmark = [needs_spares, pytest.mark.slow, pytest.mark.timeout(1200)]
TESTS = Path(__file__).resolve().parents[3]
FILES = ("core/test_running_in_walls.py", "core/test_running_in_every_language.py")


@pytest.mark.parametrize("file", FILES)
def test_every_run_of_these_tests_may_be_warm(tmp_path: Path, file: str) -> None:
    counts = tmp_path / "starts"
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--warm",
        "-m",
        "not slow",
        str(TESTS / file),
    ]
    environment = {**os.environ, "SKILLKIT_TEST_STARTS": str(counts)}
    ended = subprocess.run(words, cwd=TESTS.parent, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-5000:]
    warm, _ = map(int, counts.read_text().split())
    assert warm > 0
