"""What a machine supports is tested there: in continuous integration no kind of walls may be missing unnoticed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skillkit.core.run.tiers import machine_tiers


@pytest.mark.skipif(sys.platform != "linux", reason="the tiers of Linux")
def test_both_kinds_of_walls_work_here() -> None:
    missing = {attempt.tier: attempt.reason for attempt in machine_tiers() if attempt.sandbox is None}
    if missing and not os.environ.get("CI"):
        pytest.skip(f"these walls are not tested here: {missing}")
    assert missing == {}


SESSION = """
import pytest
@pytest.mark.parametrize("kind", ["{tier}", "other"])
@pytest.mark.parametrize("number", range(3))
def test_an_attack(kind, number):
    if kind == "{tier}" and number < {skips}:
        pytest.skip("not today")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tier", "skips", "workers", "status"),
    [("bubblewrap", 3, "1", 1), ("landlock", 3, "0", 1), ("landlock", 2, "0", 0)],
    ids=["all, by a worker", "all", "some"],
)
def test_a_session_that_skips_every_test_of_a_kind_fails(
    tmp_path: Path, tier: str, skips: int, workers: str, status: int
) -> None:
    if tier not in [each.tier for each in machine_tiers() if each.sandbox is not None]:
        pytest.skip(f"there is no {tier} here that could be missed")
    (tmp_path / "test_session.py").write_text(SESSION.format(tier=tier, skips=skips))
    watch = Path(__file__).parents[2]
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            workers,
            "-p",
            "support.tier_watch",
            "-p",
            "no:cacheprovider",
            ".",
        ],
        cwd=tmp_path,
        env={**os.environ, "CI": "1", "PYTHONPATH": os.pathsep.join([str(watch), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, "every test of it was skipped" in ended.stdout) == (status, status == 1), ended.stdout
