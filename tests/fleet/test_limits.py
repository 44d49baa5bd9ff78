"""How much of a world runs and waits at once, who takes what, and how people see it and end it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.brokers import Broker
from support.databases import Database
from support.fleets import Fleet, fleet_at, tier_here
from support.running import wait_for

from skillkit import ScriptRefusedError, SkillManager
from skillkit.cli.fleet import fleet as fleet_group
from skillkit.fleet import FleetRun

pytestmark = pytest.mark.slow


@pytest.fixture
def fleet(databases: Database, broker: Broker, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_at(databases, broker.url, tmp_path) as made:
        yield made


def order(manager: SkillManager, script: str = "say", *argv: str) -> FleetRun:
    runner: Any = manager.runner
    run: FleetRun = runner.order(manager, "demo", script, argv=argv)
    return run


def say(fleet: Fleet, login: str, *words: str) -> Any:
    done = CliRunner().invoke(fleet_group, [*words, "--state", fleet.address(login)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.output) if "--json" in words else done.output


def test_no_more_of_a_world_run_at_once_than_its_owner_says(fleet: Fleet) -> None:
    say(fleet, "owner", "init", "--most-running", "2")
    fleet.start_worker("--policy", "standard", "--concurrency", "6")
    manager = fleet.manager()
    runs = [order(manager, "nap", "1") for _ in range(7)]
    seen = 0

    def watch() -> bool:
        nonlocal seen
        states = fleet.states()
        seen = max(seen, states.get("running", 0))
        return states.get("finished") == 7

    assert wait_for(watch, 90)
    assert seen == 2
    assert all(run.result().success for run in runs)
    fleet.verify()


def test_a_full_queue_says_so(fleet: Fleet) -> None:
    say(fleet, "owner", "init", "--most-queued", "3")
    manager = fleet.manager()
    runs = [order(manager) for _ in range(3)]
    with pytest.raises(ScriptRefusedError, match=r"as many runs that wait as it may.*fleet init --most-queued"):
        order(manager)
    assert fleet.kinds() == {"refused": 1}
    runs[0].cancel()
    order(manager)


def test_a_label_picks_the_worker(fleet: Fleet) -> None:
    fleet.start_worker()
    special = order(fleet.manager(sending={"label": "big"}))
    assert order(fleet.manager()).result(timeout=60).success
    assert special.state == "queued", "a worker without the label does not take it"
    fleet.start_worker("--policy", "standard", "--label", "big")
    assert special.result(timeout=60).success


def test_nobody_takes_it_and_it_expires_on_record(fleet: Fleet) -> None:
    run = order(fleet.manager(sending={"patience": 1.0, "label": "nowhere"}))
    fleet.start_worker()
    with pytest.raises(ScriptRefusedError, match=r"No worker took it from the queue '.*nowhere'"):
        run.result(timeout=60)
    fleet.settle()
    fleet.verify()


def test_status_shows_workers_queues_and_runs(fleet: Fleet) -> None:
    assert "No worker of this world is there" in say(fleet, fleet.front, "status")
    order(fleet.manager(sending={"label": "big"}))
    fleet.start_worker("--policy", "standard", "--concurrency", "3")
    assert order(fleet.manager()).result(timeout=60).success
    # It is there first, and says what it takes with its next look.
    assert wait_for(lambda: any(each["queues"] for each in say(fleet, fleet.front, "status", "--json")["workers"]), 20)
    told = say(fleet, fleet.front, "status", "--json")
    (worker,) = told["workers"]
    assert fleet.queue("python3") in worker["queues"]
    assert worker["tier"] == tier_here()
    assert worker["concurrency"] == 3
    assert told["runs"] == {"finished": 1, "queued": 1}
    assert told["queues"][0]["name"] == fleet.queue("python3", "big")
    shown = say(fleet, fleet.front, "status")
    assert worker["name"] in shown
    assert "1 finished, 1 queued" in shown


def test_a_worker_that_is_drained_finishes_and_ends(fleet: Fleet) -> None:
    worker = fleet.start_worker()
    assert wait_for(lambda: fleet.rows("select 1 from workers"), 20)
    run = order(fleet.manager(), "nap", "3")
    assert wait_for(lambda: fleet.states().get("running"), 30)
    assert "takes no more runs" in say(fleet, fleet.approver, "drain", "--all")
    assert worker.process.wait(60) == 0
    assert run.result(timeout=5).stdout == "slept\n"
    assert fleet.rows("select 1 from workers") == []


def test_all_who_wait_get_their_turn(fleet: Fleet) -> None:
    """One front that orders a lot does not keep another one from being served: first come, first served."""
    say(fleet, "owner", "init", "--most-running", "1")
    many, one = fleet.manager(), fleet.manager()
    first = [order(many) for _ in range(5)]
    last = order(one)
    fleet.start_worker()
    done: list[int] = []

    def wait(number: int, run: FleetRun) -> None:
        run.result()
        done.append(number)

    threads = [threading.Thread(target=wait, args=each) for each in enumerate((*first, last))]
    for each in threads:
        each.start()
    for each in threads:
        each.join(90)
    assert len(done) == 6
    fleet.verify()
