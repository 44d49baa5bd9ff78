"""Packages of a skill on workers: built there from the lock that a person approved for all machines, or nothing runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.fleets import Fleet, ordered_again
from support.package_index import PackageIndex, only_index, serving_registry
from support.running import needs
from support.skill_folders import skill_folder

from skillkit import GUARDED, STANDARD, ScriptRefusedError, SkillManager
from skillkit.core.store.locks import ApprovedLocks
from skillkit.core.store.opening import open_store
from skillkit.fleet import FleetRun
from skillkit.packages.prepare import Preparation, prepare_packages
from skillkit.testing import ScriptedApprover

pytestmark = pytest.mark.slow
USE = '# /// script\n# dependencies = ["zebra"]\n# ///\nimport zebra; print(zebra.VERSION)\n'
PUT = "insert into locks (skill, digest, kind, lock, channel) values ('a', 'b', 'python', 'c', 'd')"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    with only_index(monkeypatch) as served:
        served.add("zebra", "1.0", needs=["stripes"])
        served.add("stripes", "0.1")
        yield served


@pytest.fixture
def animals(quiet: Fleet) -> Fleet:
    skill_folder(quiet.skills, "animals", files={"scripts/run.py": USE})
    return quiet


def prepare(fleet: Fleet, *roles: str, number: int = 0) -> Preparation:
    """As a person does at some machine of the world, whose login has these roles."""
    login = fleet.database.new_login(fleet.world, *(roles or ("worker", "approver")))
    options: dict[str, Any] = {"policy": STANDARD, "state": fleet.address(login)}
    state_dir = fleet.folder / f"person-{number}"
    with SkillManager(fleet.skills, "", [], [], state_dir=state_dir, **options) as manager:
        return prepare_packages(manager, "animals", approver=ScriptedApprover("yes_once"))


def locks_of(fleet: Fleet) -> ApprovedLocks:
    return ApprovedLocks(open_store(fleet.folder / "approver", fleet.address(fleet.approver)))


def order(manager: SkillManager) -> FleetRun:
    runner: Any = manager.runner
    run: FleetRun = runner.order(manager, "animals", "run")
    return run


def told(fleet: Fleet, kind: str) -> list[dict[str, Any]]:
    return [json.loads(text) for (text,) in fleet.rows("select fields from audit where kind = %s order by seq", kind)]


def test_each_worker_builds_what_a_person_approved_and_builds_it_once(animals: Fleet, index: PackageIndex) -> None:
    manager, workers = animals.manager(), [animals.worker_here() for _ in range(2)]
    lacking = order(manager)
    assert workers[0].run(lacking.id) == "finished"
    assert lacking.result().needs_packages
    assert "skillkit prepare animals" in lacking.result().hint
    done = prepare(animals)
    assert done.alone == ""
    digest = sha256(done.plans[0].lock.encode()).hexdigest()
    for worker in workers:
        index.asked.clear()
        run = order(manager)
        assert worker.run(run.id) == "finished"
        assert run.result().stdout == "1.0\n"
        assert any("zebra-1.0" in each for each in index.asked), "it came from the worker's own index"
        index.asked.clear()
        again = order(manager)
        assert worker.run(again.id) == "finished"
        assert (again.result().stdout, index.asked) == ("1.0\n", [])
    built = [each for each in told(animals, "started") if each.get("worker") and each.get("purpose") == "prepare"]
    assert [each["worker"] for each in built] == [each.name for each in workers]
    assert all(each["locks"]["python"]["digest"] == digest for each in built)
    assert built[0]["locks"]["python"]["packages"] == ["stripes 0.1", "zebra 1.0"]
    animals.verify()


def test_a_worker_process_builds_it_too_and_the_front_needs_no_packages(fleet: Fleet, index: PackageIndex) -> None:
    skill_folder(fleet.skills, "animals", files={"scripts/run.py": USE})
    queue = fleet.queue("python3", "animals")
    fleet.start_worker("--policy", "standard", "--label", "animals", "--queues", queue)
    prepare(fleet)
    manager = fleet.manager(sending={"label": "animals"})
    assert manager.execute_skill_script("animals", "run").stdout == "1.0\n"
    assert not (manager.state_dir / "packages").exists()
    assert all(need.is_met for need in manager.needs_of("animals") if need.kind == "package")
    assert index.asked


def test_nothing_is_installed_that_no_person_approved(animals: Fleet, index: PackageIndex) -> None:
    worker, manager = animals.worker_here(), animals.manager()
    prepare(animals)
    run = order(manager)
    index.asked.clear()
    other = [{"kind": "python", "digest": sha256(b"evil==1.0\n").hexdigest()}]
    assert worker.run(ordered_again(animals, run.id, locks=other)) == "refused"
    assert "no person's approval" in str(told(animals, "refused")[-1])
    for login in (animals.front, animals.worker):
        with animals.database.connect(animals.world, login=login) as connection:
            for sql in (
                "insert into locks (skill, digest, kind, lock, channel) values ('a', 'b', 'python', 'c', 'd')",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(sql)
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("delete from locks")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("update locks set lock = 'evil==1.0'")
    assert index.asked == []
    assert worker.run(run.id) == "finished", "the order with the approved lock is run"
    assert index.asked


def test_nothing_is_installed_for_a_run_that_nobody_approved(animals: Fleet, index: PackageIndex) -> None:
    prepare(animals)
    worker, manager = animals.worker_here(GUARDED), animals.manager(GUARDED)
    waiting = order(manager)
    index.asked.clear()
    assert worker.run(ordered_again(animals, waiting.id)) == "refused"
    assert "unused answer to this very order" in str(told(animals, "refused")[-1])
    assert index.asked == []


def test_what_is_taken_back_is_not_used_though_it_is_there(animals: Fleet, index: PackageIndex) -> None:
    worker, manager = animals.worker_here(), animals.manager()
    prepare(animals)
    first, second = order(manager), order(manager)
    assert worker.run(first.id) == "finished"
    assert locks_of(animals).forget("animals") == 1
    assert worker.run(second.id) == "refused"
    with pytest.raises(ScriptRefusedError, match="skillkit prepare animals"):
        second.result()
    third = order(manager)
    assert worker.run(third.id) == "finished"
    assert third.result().needs_packages, "without packages that nobody approves any more"
    assert index.asked


def test_a_person_takes_it_back_at_the_command_line(animals: Fleet, index: PackageIndex) -> None:
    prepare(animals)
    assert index.asked

    def removed(login: str) -> subprocess.CompletedProcess[str]:
        words = ["packages", "remove", "animals", "--skills", str(animals.skills), "--state", animals.address(login)]
        own = ["--state-dir", str(animals.folder / "person-0")]
        return subprocess.run(
            [sys.executable, "-m", "skillkit", *words, *own], capture_output=True, text=True, check=False
        )

    alone = removed(animals.front)
    assert alone.returncode == 0, alone.stderr
    assert "for other machines they stay approved" in alone.stderr
    assert animals.rows("select count(*) from locks") == [(1,)]
    assert removed(animals.approver).returncode == 0, "though nothing is left on this machine"
    assert animals.rows("select count(*) from locks") == [(0,)]


def test_another_lock_for_the_same_content_is_built_anew(animals: Fleet, index: PackageIndex) -> None:
    worker, manager = animals.worker_here(), animals.manager()
    prepare(animals)
    first = order(manager)
    assert worker.run(first.id) == "finished"
    index.add("zebra", "2.0")
    prepare(animals, number=1)
    second = order(manager)
    assert worker.run(second.id) == "finished"
    assert (first.result().stdout, second.result().stdout) == ("1.0\n", "2.0\n")


def test_a_worker_that_cannot_build_it_refuses_with_the_reason(animals: Fleet, index: PackageIndex) -> None:
    worker, manager = animals.worker_here(), animals.manager()
    prepare(animals)
    index.packages.clear()
    run = order(manager)
    assert worker.run(run.id) == "refused"
    with pytest.raises(ScriptRefusedError, match="cannot prepare the packages of 'animals'"):
        run.result()
    ends = [each for each in told(animals, "finished") if each.get("purpose") == "prepare" and each.get("worker")]
    assert "error" in ends[0]
    animals.verify()


def test_files_that_are_not_what_was_approved_are_not_installed(animals: Fleet, index: PackageIndex) -> None:
    worker, manager = animals.worker_here(), animals.manager()
    prepare(animals)
    (name,) = index.packages["zebra"]
    index.swapped[name] = index.packages["zebra"][name] + b"more"
    run = order(manager)
    assert worker.run(run.id) == "refused"
    index.swapped.clear()
    again = order(manager)
    assert worker.run(again.id) == "finished"
    assert again.result().stdout == "1.0\n"


def test_who_may_not_approve_for_all_prepares_for_this_machine_alone(animals: Fleet, index: PackageIndex) -> None:
    done = prepare(animals, "worker")
    assert "role approver" in done.alone
    assert animals.rows("select count(*) from locks") == [(0,)]
    again = prepare(animals)
    assert (again.was_ready, again.alone) == (True, ""), "who may, says it for all with nothing to build"
    assert animals.rows("select count(*) from locks") == [(1,)]
    assert index.asked


def test_packages_of_node_are_built_there_and_their_install_scripts_do_not_run(
    quiet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("npm")
    files = {"package.json": '{"dependencies": {"zebra": "^1.0.0"}}', "scripts/run.js": "console.log(require('zebra'))"}
    skill_folder(quiet.skills, "animals", files=files)
    worker, manager = quiet.worker_here(), quiet.manager()
    with serving_registry(f"touch {tmp_path / 'ran'}") as address:
        monkeypatch.setenv("npm_config_registry", address)
        prepare(quiet)
        run = order(manager)
        assert worker.run(run.id) == "finished"
    assert run.result().stdout == "striped\n", run.result().stderr
    assert not (tmp_path / "ran").exists()
