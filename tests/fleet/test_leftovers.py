"""kill -9 of a worker leaves nothing: its scripts die with it, and the next worker of that machine clears its folders."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.brokers import Broker
from support.databases import Database
from support.fleets import LONG, Fleet, fleet_at, nobody_left, processes_of
from support.running import wait_for

from skillkit import RunLostError, SkillManager, World
from skillkit.fleet import CeleryRunner, FleetRun
from skillkit.fleet.work import reaping
from skillkit.fleet.work.reaping import Reaper

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
HOLDS = f"""
import subprocess, sys, os
open(os.path.join(os.environ["SKILL_WORK_DIR"], "left"), "w").write(open(sys.argv[1]).read())
subprocess.run(["sleep", "{LONG}"])
"""


@pytest.fixture
def fleet(databases: Database, broker: Broker, tmp_path: Path) -> Iterator[Fleet]:
    with fleet_at(databases, broker.url, tmp_path) as made:
        (made.skills / "demo/scripts/hold.py").write_text(HOLDS)
        yield made


@pytest.fixture
def machine(fleet: Fleet) -> Path:
    """Where the processes of one machine put what is temporary."""
    place = fleet.folder / "tmp"
    place.mkdir(mode=0o700)
    return place


def ours(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def order(manager: SkillManager, script: str, *argv: str) -> FleetRun:
    runner: Any = manager.runner
    run: FleetRun = runner.order(manager, "demo", script, argv=argv)
    return run


def test_a_killed_worker_leaves_nothing_once_another_one_is_there(fleet: Fleet, machine: Path) -> None:
    own = {"TMPDIR": str(machine)}
    worker = fleet.start_worker(environment=own)
    (fleet.folder / "data.txt").write_text("what was sent along")
    manager = fleet.manager(sending={"workspace": "inputs"})
    run = order(manager, "hold", str(fleet.folder / "data.txt"))
    started = "select 1 from runs where id = %s and started_seq is not null"
    assert wait_for(lambda: fleet.rows(started, uuid.UUID(run.id)) and processes_of(), 60)
    assert wait_for(lambda: [*machine.rglob("left")], 30)
    worker.kill()
    assert nobody_left(), "its scripts die with it"
    left = ours(machine)
    assert any("inputs" in name for name in left), "the control: what it was sent is still there"
    assert any("work" in name for name in left), "and what the script wrote"
    fleet.start_worker(environment=own)
    assert wait_for(lambda: not {*left} & {*ours(machine)}, 30), ours(machine)
    assert not [*machine.rglob("data.txt")]
    assert not [*machine.rglob("left")]
    with pytest.raises(RunLostError):
        run.result(timeout=120)
    assert not processes_of()


def test_a_worker_that_lives_clears_what_another_one_left(
    fleet: Fleet, machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It need not start anew, and needs no database for it."""
    monkeypatch.setattr(tempfile, "tempdir", str(machine))
    abandoned = machine / "skillkit-held-inputs-x"
    abandoned.mkdir(mode=0o700)
    (abandoned / "file").write_text("left")
    foreign = machine / "somebody-elses"
    foreign.mkdir(mode=0o700)
    worker = fleet.worker_here()
    reaper = Reaper(worker.rows, None, worker.spool)
    reaper._clear()
    assert ours(machine) == ["somebody-elses"]
    abandoned.mkdir(mode=0o700)
    reaper._clear()
    assert abandoned.is_dir(), "once a minute is enough"
    monkeypatch.setattr(reaping, "CLEAR_SECONDS", 0.0)
    reaper._clear_at = 0.0
    reaper._clear()
    assert ours(machine) == ["somebody-elses"]


def test_the_page_forgets_what_a_lost_run_wrote(quiet: Fleet) -> None:
    """Its worker was on another machine, where nobody here can look for the process."""
    run, worker = order(quiet.manager(), "say"), quiet.worker_here()
    assert worker.rows.claim(run.id, "dead", 1.0) is not None
    started = worker.rows.start(run.id, "dead", {"run": run.id}, None)
    with quiet.database.connect(quiet.world, login=quiet.worker) as connection:
        values = (started, "1-1-1@another", "demo", "scripts/say.py", "", 0.0, "[]", '[["stdout", "half"]]', 4, 0.0)
        names = "run, process, skill, script, session, began_at, hosts, output, written, ended_at"
        connection.execute(f"insert into running ({names}) values ({', '.join(['%s'] * 10)})", values)

    def shown() -> int:
        with World(quiet.folder / "page", state=quiet.address(quiet.approver)) as world:
            return len(world.running())

    assert shown() == 1, "the control"

    def is_lost() -> bool:
        worker.reaper.reap()
        return run.state == "lost"

    assert wait_for(is_lost, 60)
    assert shown() == 0


def test_a_skill_that_a_killed_worker_had_half_unpacked_goes(fleet: Fleet) -> None:
    worker = fleet.worker_here()
    drafts = [worker.folder / "fleet/skills/digest" / f".new-{name}" for name in ("old", "now")]
    for draft in drafts:
        draft.mkdir(parents=True)
    os.utime(drafts[0], (0, 0))
    worker.start()
    assert [draft.is_dir() for draft in drafts] == [False, True]


def test_inputs_and_artifacts_are_gone_after_a_run(fleet: Fleet, machine: Path) -> None:
    fleet.start_worker(environment={"TMPDIR": str(machine)})
    (fleet.folder / "data.txt").write_text("data")
    manager = fleet.manager(sending={"workspace": "inputs"})
    assert manager.execute_skill_script("demo", "cat", argv=[str(fleet.folder / "data.txt")]).stdout == "data\n"
    assert manager.execute_skill_script("demo", "make").artifacts
    assert wait_for(lambda: not [*machine.rglob("data.txt"), *machine.rglob("out.txt")], 30)


def test_files_of_a_run_that_was_found_again_are_held_by_who_found_it(fleet: Fleet) -> None:
    fleet.start_worker()
    run = order(fleet.manager(), "make")
    found = CeleryRunner(fleet.broker, state=fleet.address(fleet.front)).find(run.id).result(timeout=60)
    (artifact,) = found.artifacts
    assert artifact.path.read_text() == "made"
    place = artifact.path.relative_to(os.path.realpath(tempfile.gettempdir()))
    assert place.parts[0].startswith("skillkit-work-"), "which the next process clears, should this one be killed"
