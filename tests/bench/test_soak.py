"""The short form of `make soak`: the same mix for a few seconds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_mixed_load_leaves_nothing_behind(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "bench.soak"],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
        env={**os.environ, "SOAK_SECONDS": "5", "PROOF_PAGE": "off", "TMPDIR": str(tmp_path)},
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert len(re.findall("^ok ", ended.stdout, re.MULTILINE)) == 18
    assert list(tmp_path.iterdir()) == []
