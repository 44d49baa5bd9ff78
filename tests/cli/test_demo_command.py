"""`skillkit demo` tells its story without a person, a terminal or a trace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_the_demo_succeeds_from_any_folder_and_leaves_nothing(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "skillkit", "demo"],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
    )
    refusal = "skillkit: Tool 'Bash' not allowed for skill 'house-style'. Allowed tools: Read\n"
    assert ended.returncode == 0
    assert [line for line in ended.stderr.splitlines(keepends=True) if line.startswith("skillkit:")] == [refusal]
    for shown in ("$ skillkit list", "$ skillkit show csv-report", "6 checked, 0 errors", "# CSV report", "Intact:"):
        assert shown in ended.stdout
    approved, _, unapproved = ended.stdout.partition("# And of one that nobody approved")
    assert '<script_output source="scripts/report.py" arguments="--sample" status="ok" exit_code="0">' in approved
    assert 'arguments="--sample" status="approval_unavailable">' in unapproved
    assert 'status="ok" exit_code' not in unapproved
    assert list(tmp_path.iterdir()) == []
