"""Everything that runs scripts for a model or a person does so through workers, without knowing it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.brokers import Broker
from support.databases import Database
from support.fleets import Fleet, fleet_at
from support.running import wait_for
from support.skill_folders import skill_folder
from support.surfaces import BODY, SURFACES, told_on

from skillkit import GUARDED, World
from skillkit.testing import ScriptedApprover

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fleet(databases: Database, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet_at(databases, broker.url, tmp_path_factory.mktemp("fleet")) as made:
        skill_folder(
            made.skills, "demo", body=BODY, files={"scripts/run.py": "import sys\nprint('ran', int(sys.argv[1]) * 7)\n"}
        )
        data = made.folder / "data"
        data.mkdir()
        made.start_worker("--policy", "guarded", "--volume", f"data={data}")
        yield made


def say_yes(fleet: Fleet) -> None:
    with World(fleet.folder / "person", state=fleet.address(fleet.approver)) as person:
        assert wait_for(person.pending, 60)
        person.answer(person.pending()[0].id, "yes_once", "test")


@pytest.mark.parametrize("surface", SURFACES)
def test_each_surface_runs_on_workers(fleet: Fleet, surface: str) -> None:
    before = fleet.rows("select count(*) from runs where state = 'finished'")[0][0]
    manager = fleet.manager(GUARDED, login=fleet.person, approver=ScriptedApprover(*["yes_in_session"] * 3))
    other = threading.Thread(target=say_yes, args=(fleet,))
    if surface == "mcp":  # its question waits in the shared world
        other.start()
    assert "ran 21" in told_on(surface, manager)
    assert fleet.rows("select count(*) from runs where state = 'finished'")[0][0] == before + 1
    fleet.verify()


def test_the_command_line_runs_on_workers(fleet: Fleet, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "skillkit", "run", "demo", "run", "--skills", str(fleet.skills), "--yes", "--json"]
    words += ["--broker", fleet.broker, "--state", fleet.address(fleet.person), "--state-dir", str(tmp_path / "state")]
    own = {**os.environ, "SKILLKIT_SESSION": "one"}
    done = subprocess.run([*words, "--", "6"], capture_output=True, text=True, check=False, cwd=tmp_path, env=own)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["stdout"] == "ran 42\n"
    (login,) = fleet.rows(
        "select fields::json ->> 'login' from audit where kind = 'finished' order by seq desc limit 1"
    )[0]
    assert login == fleet.worker


@pytest.mark.parametrize("way", ["--volume", "SKILLKIT_VOLUMES", "no volume"])
def test_the_current_folder_in_a_volume_is_the_workspace_there(fleet: Fleet, tmp_path: Path, way: str) -> None:
    """Without a volume the current folder, which nobody named, does not go along."""
    skill_folder(fleet.skills, "writer", files={"scripts/write.sh": 'echo "$1" > "${SKILL_WORKSPACE:-.}/written"\n'})
    inner, named = fleet.folder / "data" / way.strip("-").replace(" ", "-"), f"data={fleet.folder / 'data'}"
    inner.mkdir()
    words = [sys.executable, "-m", "skillkit", "run", "writer", "write", "--skills", str(fleet.skills), "--yes"]
    words += ["--broker", fleet.broker, "--state", fleet.address(fleet.person), "--state-dir", str(tmp_path / "state")]
    words += ["--volume", named] if way == "--volume" else []
    own = {**os.environ, "SKILLKIT_SESSION": way} | ({way: named} if way == "SKILLKIT_VOLUMES" else {})
    done = subprocess.run([*words, "--", way], capture_output=True, text=True, check=False, cwd=inner, env=own)
    if way == "no volume":
        assert done.returncode != 0
        assert list(inner.iterdir()) == []
        return
    assert done.returncode == 0, done.stderr
    assert (inner / "written").read_text() == f"{way}\n"


def test_a_front_alone_leaves_the_question_to_people(fleet: Fleet, tmp_path: Path) -> None:
    """`run --wait` at a machine whose login may not approve; somebody answers elsewhere."""
    words = [sys.executable, "-m", "skillkit", "run", "demo", "run", "--skills", str(fleet.skills), "--wait"]
    words += ["--broker", fleet.broker, "--state", fleet.address(fleet.front), "--state-dir", str(tmp_path / "state")]
    own = {**os.environ, "SKILLKIT_SESSION": "two"}
    with (
        subprocess.Popen(
            [*words, "--", "5"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=own
        ) as asks,
        World(tmp_path / "person", state=fleet.address(fleet.approver)) as person,
    ):
        try:
            assert wait_for(person.pending, 60)
            person.answer(person.pending()[0].id, "yes_once", "test")
            said, problems = asks.communicate(timeout=60)
        finally:
            asks.kill()
    assert said == "ran 35\n", problems
