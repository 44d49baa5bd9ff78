"""A program that is killed in the middle of a run: its script does not go on without it, and nothing of it stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
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
PLAIN = "import subprocess, sys\nsubprocess.run(['/bin/bash', '-c', sys.argv[4], 'bash', *sys.argv[2:4]])\n"


@pytest.fixture
def mark() -> Iterator[str]:
    """How long the script sleeps, by which it is known; whatever happens, it is over at the end."""
    length = f"97.{os.getpid()}{os.urandom(2).hex().translate(str.maketrans('abcdef', '012345'))}"
    yield length
    for pid in anybody_runs(length):
        os.kill(pid, signal.SIGKILL)


def caller(folder: Path, mark: str, *words: str, code: str = CALLER) -> subprocess.Popen[str]:
    files = {"scripts/run.sh": SCRIPT, "scripts/brief.sh": "echo brief\n"}
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


def test_a_program_that_ends_leaves_no_keeper_and_has_no_child_of_ours(tmp_path: Path, mark: str) -> None:
    with caller(tmp_path, mark, "brief") as process:
        said, _ = process.communicate(timeout=30)
    keeper, output = said.split()
    assert output == "brief"
    assert wait_for(lambda: not anybody_runs(keeper), 20)
