"""A hundred runs that wait for a person, four processes that answer, and any of them killed: counted by effects."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.approving import ASKING
from support.asking import started_program
from support.running import kinds, made_manager, wait_for

from skillkit import SkillManager, World
from skillkit.approvers.store import StoreApprover

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL"),
]

# Each effect is one byte in a file named by the argument, so that a second run of the same shows.
FILES = {"scripts/run.sh": 'printf x >> "$1"\n'}

ASKER = """
import sys, threading
from pathlib import Path
from support.approving import ASKING
from skillkit import SkillKitError, SkillManager, World
from skillkit.approvers.store import StoreApprover
folder, first = Path(sys.argv[1]), int(sys.argv[2])
manager = SkillManager(folder / "skills", "", [], [], policy=ASKING, session_id="s", state_dir=folder / "state",
                       approver=StoreApprover(World(folder / "state"), 120))
def run(number):
    word = "yes" if number % 2 else "no"
    try:
        manager.execute_skill_script("demo", "run", argv=[str(folder / "effects" / f"{word}-{number}")])
        outcome = "ran"
    except SkillKitError as error:
        outcome = type(error).__name__
    (folder / "outcomes" / f"{outcome}-{number}").touch()
threads = [threading.Thread(target=run, args=(first + number,)) for number in range(25)]
for thread in threads: thread.start()
for thread in threads: thread.join()
manager.close()
"""

# Says yes to what it is shown as a yes; several of them race for every question.
ANSWERER = """
import sys, time
from pathlib import Path
from skillkit import RequestClosedError, StateUnavailableError, World
from skillkit.core.values.questions import Prompt
folder, world = Path(sys.argv[1]), World(Path(sys.argv[1]) / "state")
while not (folder / "stop").exists():
    try:
        for request in world.pending():
            word = Path(Prompt.from_context(request.context).commands[0].argv[0]).name
            world.answer(request.id, "yes_once" if word.startswith("yes") else "no", sys.argv[2])
    except (RequestClosedError, StateUnavailableError):
        pass
    time.sleep(0.02)
"""


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed leaves its work folder there."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))


@contextmanager
def ended_at_last(*programs: subprocess.Popen[str]) -> Iterator[list[subprocess.Popen[str]]]:
    try:
        yield list(programs)
    finally:
        for program in programs:
            program.kill()
            program.communicate()


@contextmanager
def world_of(folder: Path) -> Iterator[SkillManager]:
    for name in ("effects", "outcomes"):
        (folder / name).mkdir()
    with World(folder / "state") as world:
        approver = StoreApprover(world, 60)
        with made_manager(folder, FILES, policy=ASKING, session_id="s", approver=approver) as manager:
            yield manager


def effects(folder: Path) -> Counter[tuple[str, int]]:
    """By what the person says to it, and how often it happened."""
    return Counter((path.name.partition("-")[0], path.stat().st_size) for path in (folder / "effects").iterdir())


def outcomes(folder: Path) -> Counter[str]:
    return Counter(path.name.partition("-")[0] for path in (folder / "outcomes").iterdir())


def test_a_hundred_runs_are_answered_once_each_by_four_processes(tmp_path: Path) -> None:
    with world_of(tmp_path):
        askers = [started_program(ASKER, tmp_path, number) for number in (0, 25, 50, 75)]
        answerers = [started_program(ANSWERER, tmp_path, f"answerer-{number}") for number in range(4)]
        with ended_at_last(*askers, *answerers):
            assert wait_for(lambda: sum(outcomes(tmp_path).values()) == 100, 120), outcomes(tmp_path)
            (tmp_path / "stop").touch()
    assert outcomes(tmp_path) == {"ran": 50, "ApprovalDeclinedError": 50}
    assert effects(tmp_path) == {("yes", 1): 50}
    assert Counter(kinds(tmp_path)) == {"started": 50, "finished": 50, "refused": 50}
    with World(tmp_path / "state") as world:
        past = world.history(200)
        assert world.pending() == []
    assert Counter(each.outcome for each in past) == {"answered": 100}
    assert len({each.request.id for each in past}) == 100


def test_whoever_is_killed_nothing_runs_unapproved_and_the_world_goes_on(tmp_path: Path) -> None:
    chance = random.Random(5)
    with world_of(tmp_path) as manager:
        askers = [started_program(ASKER, tmp_path, number) for number in (0, 25, 50, 75)]
        answerers = [started_program(ANSWERER, tmp_path, f"answerer-{number}") for number in range(4)]
        with ended_at_last(*askers, *answerers):
            assert wait_for(lambda: sum(outcomes(tmp_path).values()) >= 5, 60)
            for victim in (askers[0], answerers[0], askers[1], answerers[1]):
                time.sleep(chance.uniform(0.0, 0.3))
                victim.kill()
            for asker in askers[2:]:
                asker.wait(120)
            left = outcomes(tmp_path)
            assert left["ran"] + left["ApprovalDeclinedError"] == left.total() >= 50, "those who live are all answered"
            with ThreadPoolExecutor(1) as pool:
                last = pool.submit(manager.execute_skill_script, "demo", "run", argv=[str(tmp_path / "effects/yes-x")])
                assert last.result(60).exit_code == 0, "the world goes on"
            (tmp_path / "stop").touch()
    found = effects(tmp_path)
    assert set(found) == {("yes", 1)}, "nothing that was declined or never answered, and nothing twice"
    assert found["yes", 1] <= kinds(tmp_path).count("started")
