"""Runs go to workers that can have them: by interpreter, by label, and by the walls that a person was shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.brokers import Broker
from support.databases import Database
from support.fleets import Fleet, WorkerProcess, fleet_at, tier_here
from support.running import wait_for

from skillkit import ScriptRefusedError, SkillManager
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import Choice
from skillkit.core.run.tiers import machine_tiers
from skillkit.core.values.bounds import TIERS, tiers_within
from skillkit.fleet import FleetRun

pytestmark = pytest.mark.slow
HAS_BOTH = {"bubblewrap", "landlock"} <= {each.tier for each in machine_tiers() if each.sandbox is not None}
NEEDS_BOTH = pytest.mark.skipif(not HAS_BOTH, reason="needs a machine with bubblewrap and Landlock")

# A worker on a machine that has one kind of walls: all others are taken from it before it looks for them.
ONLY = """
import sys
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import Choice
tier = sys.argv.pop(1)
(sandbox,) = [each.sandbox for each in tiers.machine_tiers() if each.tier == tier]
vars(tiers)["this_machines"] = Choice({tier: lambda: sandbox})
from skillkit.cli.main import main
main(sys.argv[1:])
"""


@pytest.fixture
def fleet(databases: Database, broker: Broker, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_at(databases, broker.url, tmp_path) as made:
        yield made


def start_worker_with(fleet: Fleet, tier: str) -> WorkerProcess:
    folder = fleet.folder / f"only-{tier}"
    words = [sys.executable, "-c", ONLY, tier, "worker", "--broker", fleet.broker, "--policy", "standard"]
    words += ["--state", fleet.address(fleet.worker), "--state-dir", str(folder)]
    worker = WorkerProcess(words, fleet.folder / f"only-{tier}.log", os.environ)
    fleet._made.callback(worker.end)
    wait_for(lambda: worker.process.poll() is not None or b"ready." in worker.log.read_bytes(), 60)
    assert worker.process.poll() is None, worker.log.read_text()
    return worker


def order(manager: SkillManager, script: str = "say") -> FleetRun:
    runner: Any = manager.runner
    run: FleetRun = runner.order(manager, "demo", script)
    return run


def walls_of(run: FleetRun) -> str:
    return run.result(timeout=60).isolation.tier


def test_walls_that_are_narrower_serve_those_who_were_shown_wider_ones() -> None:
    assert tiers_within("bubblewrap") == TIERS
    assert tiers_within("landlock") == ("none", "job", "landlock")
    assert tiers_within("none") == ("none",)


@NEEDS_BOTH
def test_what_was_shown_within_bubblewrap_goes_to_workers_that_have_it(fleet: Fleet) -> None:
    start_worker_with(fleet, "landlock")
    assert tier_here() == "bubblewrap"
    run = order(fleet.manager())
    assert not wait_for(lambda: run.state != "queued", 3), "a worker with weaker walls is not even told of it"
    fleet.start_worker()
    assert walls_of(run) == "bubblewrap"
    assert "refused" not in fleet.kinds()


@NEEDS_BOTH
def test_what_was_shown_within_weaker_walls_may_run_within_stronger_ones(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    (landlock,) = [each.sandbox for each in machine_tiers() if each.tier == "landlock"]
    monkeypatch.setitem(vars(tiers), "this_machines", Choice({"landlock": lambda: landlock}))  # type: ignore[dict-item,return-value]
    run = order(fleet.manager())
    assert fleet.rows("select queue from runs")[0][0] == f"{fleet.world}.python3.landlock"
    fleet.start_worker()
    assert walls_of(run) == "bubblewrap"


def test_nobody_with_those_walls_is_said(fleet: Fleet) -> None:
    run = order(fleet.manager(sending={"patience": 1.0}))
    fleet.start_worker("--policy", "standard", "--queues", f"{fleet.world}.python3.none")
    with pytest.raises(ScriptRefusedError, match=rf"from the queue '.*\.{tier_here()}'.*and those walls"):
        run.result(timeout=60)
