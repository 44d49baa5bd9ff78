"""A script that wants to live on: after its end, its timeout, its cancellation."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.running import STORM, anybody_runs, beats_go_on, made_manager, runnable, wait_for

from skillkit import TRUSTED, ScriptExecutor

# A daemon by the book: two forks, a session of its own, every descriptor closed.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 1024)
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    time.sleep(60)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.005)
print("over")
"""

# Hides its mark: the environment is emptied by exec; only the pipes are kept.
WITHOUT_ENVIRONMENT = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)", sys.argv[1]], {})
time.sleep(0.3)
"""

IGNORES_EVERYTHING = """
import os, signal, sys, time
for number in range(1, 32):
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(60)
"""


@pytest.fixture
def beats(tmp_path: Path) -> Iterator[Path]:
    """Where a storm beats; whatever happens, it stops at the end."""
    folder = tmp_path / "beats"
    folder.mkdir()
    yield folder
    (folder / "stop").touch()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_control_a_storm_outlives_plain_subprocess(tmp_path: Path, beats: Path) -> None:
    script = tmp_path / "storm.py"
    script.write_text(STORM)
    process = subprocess.Popen(
        [sys.executable, str(script), str(beats), "60"], stdout=subprocess.PIPE, start_new_session=True
    )
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert beats_go_on(beats)
        (beats / "stop").touch()


def test_a_storm_is_over_after_a_timeout(tmp_path: Path, beats: Path) -> None:
    with runnable(tmp_path, STORM, name="scripts/storm.py") as manager:
        result = manager.execute_skill_script("demo", "storm", argv=[str(beats), "60"], timeout=1)
    assert (result.stdout, result.timed_out) == ("raging\n", True)
    assert not beats_go_on(beats)


def test_a_storm_is_over_after_a_normal_end(tmp_path: Path, beats: Path) -> None:
    with runnable(tmp_path, STORM, name="scripts/storm.py") as manager:
        result = manager.execute_skill_script("demo", "storm", argv=[str(beats), "0"], timeout=30)
    assert (result.stdout, result.exit_code) == ("raging\n", 0)
    assert not beats_go_on(beats)


def test_a_storm_is_over_after_cancellation(tmp_path: Path, beats: Path) -> None:
    cancel = threading.Event()
    with runnable(tmp_path, STORM, name="scripts/storm.py") as manager:
        result = manager.execute_skill_script(
            "demo", "storm", argv=[str(beats), "60"], cancel=cancel, on_output=lambda *_: cancel.set()
        )
    assert result.cancelled
    assert not beats_go_on(beats)


def test_a_storm_is_over_after_the_listener_raised(tmp_path: Path, beats: Path) -> None:
    def listen(_stream: str, _data: bytes) -> None:
        raise RuntimeError("enough")

    with (
        runnable(tmp_path, STORM, name="scripts/storm.py") as manager,
        pytest.raises(RuntimeError, match="enough"),
    ):
        manager.execute_skill_script("demo", "storm", argv=[str(beats), "60"], on_output=listen)
    assert not beats_go_on(beats)


def test_a_storm_is_over_after_the_executors_own_run(tmp_path: Path, beats: Path) -> None:
    manager = made_manager(tmp_path, {"scripts/storm.py": STORM})
    executor = ScriptExecutor(policy=TRUSTED, state_dir=tmp_path / "state")
    skill = manager.load_skill("demo")
    result = executor.execute(
        "scripts/storm.py", None, skill.base_directory, skill.metadata, 0.7, argv=[str(beats), "60"]
    )
    executor.close()
    assert result.timed_out
    assert not beats_go_on(beats)


def test_control_a_daemon_outlives_plain_subprocess(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", DAEMON, str(tmp_path / "pid")], check=True, capture_output=True)
    pid = int((tmp_path / "pid").read_text())
    assert is_alive(pid)
    os.kill(pid, signal.SIGKILL)


def test_a_daemon_is_gone_when_its_script_has_ended(tmp_path: Path) -> None:
    with runnable(tmp_path, DAEMON, name="scripts/daemon.py") as manager:
        result = manager.execute_skill_script("demo", "daemon", argv=[str(tmp_path / "pid")])
    assert (result.exit_code, result.stdout) == (0, "over\n")
    assert not is_alive(int((tmp_path / "pid").read_text()))


def test_a_child_without_its_environment_is_given_away_by_its_pipes(tmp_path: Path) -> None:
    mark = f"mark-{os.getpid()}-{tmp_path.name}"
    with runnable(tmp_path, WITHOUT_ENVIRONMENT, name="scripts/hide.py") as manager:
        result = manager.execute_skill_script("demo", "hide", argv=[mark])
    assert result.exit_code == 0
    assert wait_for(lambda: not anybody_runs(mark), 5)


def test_a_script_deaf_to_every_signal_ends_at_its_timeout(tmp_path: Path) -> None:
    with runnable(tmp_path, IGNORES_EVERYTHING, name="scripts/deaf.py") as manager:
        result = manager.execute_skill_script("demo", "deaf", timeout=1)
    assert (result.stdout, result.timed_out) == ("deaf\n", True)


def test_a_stopped_script_ends_at_its_timeout(tmp_path: Path) -> None:
    with runnable(tmp_path, "echo stopped; kill -STOP $$\n") as manager:
        result = manager.execute_skill_script("demo", "run", timeout=1)
    assert (result.stdout, result.timed_out) == ("stopped\n", True)


def test_strangers_and_the_callers_own_children_live_on(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as own, runnable(tmp_path, "sleep 60 & exit 0\n") as manager:
        manager.execute_skill_script("demo", "run")
        assert own.poll() is None
        own.kill()
