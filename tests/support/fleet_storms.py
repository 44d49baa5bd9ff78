"""Workers, the broker and the database killed at random moments while runs come: at most one start, exactly one end.

`SKILLKIT_FLEET_RUNS=10000` makes it as many as the contract says. Each kind of broker has a file of tests of its own: the
two wait most of the time, and beside each other they take half as long.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skillkit import SkillKitError, SkillManager
from support.brokers import KINDS, Broker
from support.databases import running_server
from support.fleets import Fleet, WorkerProcess, fleet_at
from support.running import wait_for
from support.skill_folders import skill_folder

__all__ = ["SECONDS", "endure_a_storm"]

GIVEN = int(os.environ.get("SKILLKIT_FLEET_RUNS", "0"))
SECONDS = 900 + GIVEN


def order_all(manager: SkillManager, mark: str, count: int, ordered: list[str]) -> None:
    """A caller that meets an outage tries again, as one in use does."""
    runner: Any = manager.runner
    left = count
    while left:
        try:
            ordered.append(runner.order(manager, "storm", "beat", argv=[mark]).id)
            left -= 1
        except SkillKitError:
            time.sleep(0.2)


class Storm:
    """What is killed, and comes back."""

    def __init__(self, fleet: Fleet, broker: Broker, chance: random.Random) -> None:
        self.fleet, self.broker, self.chance = fleet, broker, chance
        self.workers: list[WorkerProcess] = []
        self.done: list[str] = []

    def start_worker(self) -> None:
        self.workers.append(
            self.fleet.start_worker("--policy", "standard", "--concurrency", "4", "--log-level", "WARNING")
        )

    def kill_a_worker(self) -> None:
        self.workers.pop(self.chance.randrange(len(self.workers))).kill()
        self.start_worker()

    def kill_the_broker(self) -> None:
        self.broker.kill()
        time.sleep(self.chance.uniform(0, 3))
        self.broker.restart(with_data=self.chance.random() < 0.5)

    def kill_the_database(self) -> None:
        self.fleet.database.kill()
        time.sleep(self.chance.uniform(0, 5))
        self.fleet.database.start()


def hold(fleet: Fleet, storm: Storm, count: int) -> None:
    """Two workers, the broker and the database, each at a random moment while a part of the runs is still to come."""
    acts: list[Callable[[], None]] = [
        storm.kill_a_worker,
        storm.kill_the_broker,
        storm.kill_a_worker,
        storm.kill_the_database,
    ]
    storm.chance.shuffle(acts)
    for number, act in enumerate(acts):
        share = count * (number + storm.chance.random()) / (len(acts) + 1)
        wait_for(lambda share=share: over(fleet) >= share, 300)  # type: ignore[misc]
        act()
        storm.done.append(act.__name__)


def over(fleet: Fleet) -> int:
    found: int = fleet.rows("select count(*) from runs where ended_at is not null")[0][0]
    return found


def endure_a_storm(kind: str, usual: int, tmp_path: Path) -> None:
    """Of so many runs, or as many as were asked for, each starts at most once and ends exactly once; nothing is left."""
    count, chance = GIVEN or usual, random.Random(int(os.environ.get("SKILLKIT_FLEET_SEED", "0")) or None)
    with running_server() as database, KINDS[kind]() as broker, fleet_at(database, broker.url, tmp_path) as fleet:
        skill_folder(fleet.skills, "storm", files={"scripts/beat.sh": 'echo "$1"; sleep 0.05\n'})
        storm, ordered = Storm(fleet, broker, chance), list[str]()
        storm.start_worker()
        storm.start_worker()
        mark = f"storm-of-{kind}"
        shares = [count // 4, count // 4, count // 4, count - 3 * (count // 4)]
        fronts = [threading.Thread(target=order_all, args=(fleet.manager(), mark, share, ordered)) for share in shares]
        for front in fronts:
            front.start()
        hold(fleet, storm, count)
        for front in fronts:
            front.join(600)
        fleet.settle(300 + GIVEN)
        check(fleet, ordered, count)
        for worker in storm.workers:
            worker.end()
        assert wait_for(lambda: not left_of(tmp_path, mark), 20), left_of(tmp_path, mark)


def check(fleet: Fleet, ordered: list[str], count: int) -> None:
    known = {str(run): state for run, state in fleet.rows("select id, state from runs")}
    assert len(ordered) == count
    assert {*ordered} <= known.keys(), "none is forgotten"
    states = fleet.states()
    assert states.keys() <= {"finished", "lost"}, states
    assert states.get("lost", 0) <= 16, "no more than what the killed workers held"
    starts = fleet.rows("select count(*), count(distinct fields::json ->> 'run') from audit where kind = 'started'")
    assert starts == [(len(known), len(known))], "each started, and once"
    fleet.verify()


def left_of(folder: Path, mark: str) -> list[str]:
    """Processes that still know the folder of these workers, and are none of ours."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in words or f"{folder}/worker-".encode() in words:
            found.append(words.replace(b"\0", b" ").decode(errors="replace"))
    return found
