"""`make fleet-demo`: what it promises is what it shows, and nothing of it is left."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.databases import _program

ROOT = Path(__file__).parents[2]
pytest.importorskip("celery")
pytestmark = pytest.mark.skipif(
    not _program("postgres") or not shutil.which("redis-server"),
    reason="servers are not installed: tools/system-packages",
)


def of_the_demo(folder: Path) -> list[str]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            told = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in told:
            found.append(told.decode(errors="replace"))
    return found


def test_it_shows_an_approval_a_killed_worker_and_the_record_and_leaves_nothing(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o755)  # PostgreSQL runs as somebody else where we are root
    for parent in tmp_path.parents[:3]:
        os.chmod(parent, 0o755)
    ended = subprocess.run(
        [sys.executable, ROOT / "tools/fleet_demo.py"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    said = ended.stdout
    assert ended.returncode == 0, said + ended.stderr
    for pattern in (
        r"run \S+: waiting\n",
        r"the page asks: Run .*night-shift.*\?",
        r"run \S+: finished on worker-[12], in walls: \w+",
        r"it says: hello from the skill night-shift",
        r"kill -9 worker-[12]: its script is dead",
        r"the other one goes on: run \S+ on worker-[12]",
        r"was lost: its worker died",
        r"finished +night-shift +scripts/slow.sh +lost\n",
        r"Intact: 6 records",
        r"Nothing is left of it",
    ):
        assert re.search(pattern, said), f"{pattern}\n{said}"
    assert of_the_demo(tmp_path) == []
    assert [*tmp_path.iterdir()] == []
