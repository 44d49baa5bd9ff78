"""What happens when a worker, the broker or the database dies: never a second start, one end for each run."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.brokers import Broker, redis
from support.databases import Database, running_server
from support.fleets import Fleet, fleet_at, nobody_left, processes_of
from support.running import wait_for

from skillkit import RunLostError, SkillManager
from skillkit.fleet import CeleryRunner, FleetRun

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def fleet(databases: Database, broker: Broker, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_at(databases, broker.url, tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def own_database() -> Iterator[Database]:
    """One that may be killed."""
    with running_server() as database:
        yield database


@pytest.fixture
def fragile(own_database: Database, broker: Broker, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_at(own_database, broker.url, tmp_path) as made:
        yield made


def order(manager: SkillManager, script: str, *argv: str) -> FleetRun:
    runner: Any = manager.runner
    run: FleetRun = runner.order(manager, "demo", script, argv=argv)
    return run


def has_started(fleet: Fleet, run: FleetRun) -> bool:
    found = fleet.rows("select 1 from runs where id = %s and started_seq is not null", uuid.UUID(run.id))
    return bool(found) and bool(processes_of())


def test_a_worker_that_dies_leaves_a_lost_run_and_no_process(fleet: Fleet) -> None:
    worker = fleet.start_worker()
    run = order(fleet.manager(), "long")
    assert wait_for(lambda: has_started(fleet, run), 60)
    worker.kill()
    assert nobody_left(), "its scripts die with it"
    other = fleet.start_worker()
    with pytest.raises(RunLostError, match="not run again"):
        run.result(timeout=120)
    assert not processes_of(), "and it is not run again"
    other.terminate()
    assert fleet.kinds() == {"started": 1, "finished": 1}
    fleet.verify()


def test_what_a_dead_worker_had_not_started_is_run_by_another(fleet: Fleet) -> None:
    """Claimed and never started: the lease is over, so it is queued again; the test makes the lease short."""
    run = order(fleet.manager(), "say")
    with fleet.database.connect(fleet.world, login=fleet.worker) as connection:
        claimed = connection.execute("select state from claim_run(%s, 'dead', 1.0)", (uuid.UUID(run.id),)).fetchall()
    assert claimed == [("running",)]
    fleet.start_worker()
    assert run.result(timeout=120).success
    fleet.verify()


def test_sigterm_lets_what_runs_finish_and_the_rest_stays_queued(fleet: Fleet) -> None:
    worker = fleet.start_worker("--policy", "standard", "--concurrency", "1")
    manager = fleet.manager()
    runs = [order(manager, "nap", "3") for _ in range(3)]
    assert wait_for(lambda: fleet.states().get("running"), 60)
    assert worker.terminate() == 0
    states = fleet.states()
    assert states.get("finished", 0) >= 1
    assert states.get("queued", 0) >= 1, states
    assert "running" not in states
    fleet.start_worker()
    assert [run.result(timeout=120).stdout for run in runs] == ["slept\n"] * 3
    fleet.verify()


def test_a_broker_that_is_killed_and_forgets_everything_loses_no_run(databases: Database, tmp_path: Path) -> None:
    with redis() as own, fleet_at(databases, own.url, tmp_path) as fleet:
        fleet.start_worker("--policy", "standard", "--concurrency", "2")
        manager = fleet.manager()
        first = [order(manager, "nap", "0.2") for _ in range(10)]
        own.kill()
        meanwhile = [order(manager, "say") for _ in range(5)]  # the broker is away: a row is enough
        own.restart(with_data=False)
        # What was in the broker is sent again after a minute; the test does not wait for it.
        with databases.connect(fleet.world) as owner:
            owner.execute("update runs set published_at = published_at - 60 where state = 'queued'")
        for run in (*first, *meanwhile):
            assert run.result(timeout=150).success
        assert fleet.kinds()["started"] == 15
        fleet.verify()


def test_a_database_that_is_killed_for_a_while_loses_nothing(fragile: Fleet) -> None:
    fragile.start_worker()
    manager = fragile.manager()
    ended: list[str] = []
    threads = [
        threading.Thread(target=lambda: ended.append(manager.execute_skill_script("demo", "nap", argv=["4"]).stdout))
        for _ in range(4)
    ]
    for each in threads:
        each.start()
    assert wait_for(lambda: fragile.states().get("running") == 4, 60)
    fragile.database.kill()
    time.sleep(6)  # they end meanwhile, and their ends cannot be written
    fragile.database.start()
    for each in threads:
        each.join(120)
    assert ended == ["slept\n"] * 4
    assert fragile.states() == {"finished": 4}
    fragile.verify()


def test_an_end_that_cannot_be_written_waits_in_a_file(fragile: Fleet) -> None:
    """Longer than its lease allows to wait: it is written when the database is back, before anybody calls it lost."""
    worker = fragile.start_worker()
    run = order(fragile.manager(), "nap", "2")
    assert wait_for(lambda: fragile.rows("select 1 from runs where started_seq is not null"), 60)
    fragile.database.kill()

    def spooled() -> list[Path]:
        return [*fragile.folder.glob("worker-*/fleet/spool/*.json")]

    assert wait_for(spooled, 90)
    worker.kill()
    fragile.database.start()
    fragile.start_worker("--policy", "standard", "--state-dir", str(next(fragile.folder.glob("worker-*/")).absolute()))
    assert run.result(timeout=120).stdout == "slept\n"
    assert wait_for(lambda: not spooled(), 30)
    fragile.settle()
    fragile.verify()


def test_a_worker_cut_off_from_the_database_kills_its_scripts_before_the_lease_ends(fragile: Fleet) -> None:
    data = fragile.folder / "data"
    data.mkdir()
    data.chmod(0o777)
    fragile.start_worker("--policy", "standard", "--volume", f"data={data}")
    manager = fragile.manager(sending={"volumes": {"data": data}}, workspace=data)
    run = order(manager, "beat")
    beats = data / "beats"
    assert wait_for(lambda: beats.exists() and beats.read_text().count("\n") > 3, 60)
    fragile.database.kill()

    def last() -> float:
        return float(beats.read_text().split()[-1])

    assert wait_for(lambda: time.time() - last() > 3, 90), "it goes on without a lease"
    stopped = last()
    fragile.database.start()
    (until,) = fragile.rows("select lease_until from runs where id = %s", uuid.UUID(run.id))[0]
    assert stopped < until, "it was over before anybody could call it lost"
    fragile.settle(150)
    fragile.verify()
    assert fragile.kinds()["started"] == 1


ORDERS_AND_DIES = """
import os, signal, sys
from skillkit import STANDARD, SkillManager
from skillkit.fleet import CeleryRunner
skills, state, folder, broker, note = sys.argv[1:]
manager = SkillManager(skills, "", [], [], policy=STANDARD, state=state, state_dir=folder, runner=CeleryRunner(broker))
open(note, "w").write(manager.runner.order(manager, "demo", "nap", argv=["1"]).id)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_caller_that_is_killed_leaves_its_run_to_who_has_the_id(fleet: Fleet) -> None:
    fleet.start_worker()
    note = fleet.folder / "id"
    words = [fleet.skills, fleet.address(fleet.front), fleet.folder / "killed", fleet.broker, note]
    killed = subprocess.run([sys.executable, "-c", ORDERS_AND_DIES, *map(str, words)], check=False)
    assert killed.returncode == -signal.SIGKILL
    runner = CeleryRunner(fleet.broker, state=fleet.address(fleet.front))
    assert runner.find(note.read_text()).result(timeout=60).stdout == "slept\n"
