"""A program that is killed in the middle of a run: what it started does not go on without it, and nothing of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.confined_runs import bubblewrap_refusal
from support.running import anybody_runs, wait_for
from support.skill_folders import skill_folder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing sees to it")

# Its second process leaves the session, so that no signal to a group reaches it.
SCRIPT = 'setsid sleep "$2" & touch "$1"; sleep "$2"; wait\n'
CALLER = """
import os, sys, time
from skillkit import TRUSTED, SkillManager
from skillkit.core.run.process import survivors
folder, begun, mark = sys.argv[1:4]
if "forks" in sys.argv and os.fork() == 0:
    time.sleep(60)
with SkillManager(folder + "/skills", "", [], [], policy=TRUSTED, state_dir=folder + "/state") as manager:
    if "fork after" in sys.argv:
        manager.execute_skill_script("demo", "brief")
        if os.fork() == 0:
            time.sleep(60)
    script = "brief" if "brief" in sys.argv else "run"
    result = manager.execute_skill_script("demo", script, argv=[begun, mark], timeout=100)
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print(survivors.own_mark(), result.stdout.strip())
"""
# Killed the moment there is a process, which is held up: bubblewrap has not asked yet to be ended with its caller.
STARTING = """
import os, signal, sys, time
from dataclasses import replace
from skillkit import STANDARD, SkillManager
from skillkit.core.run import process
from skillkit.core.run.process import running, survivors
folder, begun, mark, what, keeping = sys.argv[1:6]
spawn = running.spawn_process
def spawn_and_die(start, born):
    os.kill(spawn(start, born), signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGKILL)
if keeping == "no keeper":
    process.start_keeper = lambda: None
print(survivors.own_mark(), flush=True)
policy = replace(STANDARD, warm="auto" if what == "spare" else "off")
with SkillManager(folder + "/skills", "", [], [], policy=policy, state_dir=folder + "/state") as manager:
    manager.execute_skill_script("demo", "brief")
    running.spawn_process = spawn_and_die
    if what == "run":
        manager.execute_skill_script("demo", "sleeps", argv=[mark], timeout=100)
    time.sleep(60)
"""
OWN_PROGRAM = """
import sys
from skillkit.sources.programs import run_program
run_program(("/bin/bash", "-c", sys.argv[4], "bash", *sys.argv[2:4]))
"""
PLAIN = "import subprocess, sys\nsubprocess.run(['/bin/bash', '-c', sys.argv[4], 'bash', *sys.argv[2:4]])\n"


@pytest.fixture
def mark() -> Iterator[str]:
    """How long the script sleeps, by which it is known; whatever happens, it is over at the end."""
    length = f"97.{os.getpid()}{os.urandom(2).hex().translate(str.maketrans('abcdef', '012345'))}"
    yield length
    send(signal.SIGKILL, anybody_runs(length))


def send(number: int, pids: list[int]) -> None:
    """To those that are there: walls that end take who is inside with them."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def caller(folder: Path, mark: str, *words: str, code: str = CALLER) -> subprocess.Popen[str]:
    files = {"scripts/run.sh": SCRIPT, "scripts/brief.sh": "echo brief\n", "scripts/sleeps.sh": 'sleep "$1"\n'}
    skill_folder(folder / "skills", "demo", files=files)
    return subprocess.Popen(
        [sys.executable, "-c", code, str(folder), str(folder / "begun"), mark, *words],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def killed(process: subprocess.Popen[str], folder: Path) -> None:
    assert wait_for((folder / "begun").exists, 30)
    process.kill()
    process.wait()


def test_control_a_script_outlives_a_plain_caller(tmp_path: Path, mark: str) -> None:
    with caller(tmp_path, mark, SCRIPT, code=PLAIN) as process:
        killed(process, tmp_path)
        assert not wait_for(lambda: not anybody_runs(mark), 1)


@pytest.mark.parametrize("way", ["alone", "forks", "fork after"])
def test_a_script_without_walls_ends_with_its_caller(tmp_path: Path, mark: str, way: str) -> None:
    with caller(tmp_path, mark, way) as process:
        killed(process, tmp_path)
        # A fork of the caller is no part of the run, and lives on.
        assert wait_for(lambda: len(anybody_runs(mark)) == (way != "alone"), 20)


def test_a_program_of_ours_ends_with_its_caller(tmp_path: Path, mark: str) -> None:
    """As git, which fetches outside all walls."""
    with caller(tmp_path, mark, SCRIPT, code=OWN_PROGRAM) as process:
        killed(process, tmp_path)
        assert wait_for(lambda: not anybody_runs(mark), 20)


def test_a_program_that_ends_leaves_no_keeper_and_has_no_child_of_ours(tmp_path: Path, mark: str) -> None:
    with caller(tmp_path, mark, "brief") as process:
        said, _ = process.communicate(timeout=30)
    keeper, output = said.split()
    assert output == "brief"
    assert wait_for(lambda: not anybody_runs(keeper), 20)


def left_of_a_start(folder: Path, mark: str, what: str, keeping: str) -> str:
    """By which whatever is left of it is known, with its caller gone."""
    with caller(folder, mark, what, keeping, code=STARTING) as process:
        assert process.wait(30) == -signal.SIGKILL
        assert process.stdout is not None
        return process.stdout.read().strip()


@pytest.mark.skipif(bool(bubblewrap_refusal()), reason=f"no bubblewrap here: {bubblewrap_refusal()}")
@pytest.mark.parametrize("what", ["run", "spare"])
def test_walls_that_are_being_put_up_end_with_their_caller(tmp_path: Path, mark: str, what: str) -> None:
    left = left_of_a_start(tmp_path, mark, what, "keeper")
    assert wait_for(lambda: not anybody_runs(left), 20)


@pytest.mark.skipif(bool(bubblewrap_refusal()), reason=f"no bubblewrap here: {bubblewrap_refusal()}")
@pytest.mark.parametrize("what", ["run", "spare"])
def test_control_without_the_keeper_they_stay(tmp_path: Path, mark: str, what: str) -> None:
    staying = list[int]()
    for number in range(5):  # where this program has to wait for its turn, they may stand before they are held up
        if not staying:
            left = left_of_a_start(tmp_path / str(number), mark, what, "no keeper")
            send(signal.SIGCONT, anybody_runs(left))
            time.sleep(1)
            staying = anybody_runs(left)
    send(signal.SIGKILL, staying)
    assert staying
