"""What a machine supports is tested there: in continuous integration no kind of walls may be missing unnoticed."""

from __future__ import annotations

import os
import sys

import pytest

from skillkit.core.run import machine_tiers


@pytest.mark.skipif(sys.platform != "linux", reason="the tiers of Linux")
def test_both_kinds_of_walls_work_here() -> None:
    missing = {attempt.tier: attempt.reason for attempt in machine_tiers() if attempt.sandbox is None}
    if missing and not os.environ.get("CI"):
        pytest.skip(f"these walls are not tested here: {missing}")
    assert missing == {}
