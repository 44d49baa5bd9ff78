from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from skillkit.core.run.process import Ahead, ProcessRequest, run_process, running
from skillkit.core.run.process.kernel import (
    UNKNOWN_STATUS,
    all_pids,
    environment_of,
    holds_inherited_end,
    last_pid,
    seconds_to_start_over,
    taken_status,
)
from skillkit.core.values.runs import ProcessExit, RunControl

# Three chains; each process leaves its session, forks and ends after 2 ms, and leaves a beat behind.
STORM = """
import os, sys, time
beats, stop, main_lives, pipes = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
until = time.monotonic() + 30
def chain(number):
    while time.monotonic() < until and not os.path.exists(stop):
        os.setsid()
        with open(f"{beats}/{number}", "ab") as file:
            file.write(b".")
        time.sleep(0.002)
        if os.fork():
            os._exit(0)
    os._exit(0)
for number in range(3):
    if os.fork() == 0:
        if pipes == "closed":
            os.closerange(0, 1024)
        chain(number)
time.sleep(main_lives)
"""

# A daemon by the book: two forks, a session of its own, every descriptor closed. It keeps its environment.
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
    os.closerange(0, 1024)
    time.sleep(60)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.005)
"""


def run(*argv: str, timeout: float = 30, cancel: threading.Event | None = None) -> ProcessExit:
    return run_process(ProcessRequest(argv, "/", {"PATH": os.defpath}, b"", timeout), RunControl(cancel=cancel))


def run_bash(text: str, *arguments: object, timeout: float = 30) -> ProcessExit:
    return run("/bin/bash", "-c", text, "bash", *map(str, arguments), timeout=timeout)


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def pid_in(file: Path) -> int:
    until = time.monotonic() + 10
    while not file.exists() or not file.read_text(encoding="utf-8"):
        assert time.monotonic() < until, f"{file} was never written"
        time.sleep(0.005)
    return int(file.read_text(encoding="utf-8"))


@pytest.fixture
def beats(tmp_path: Path) -> Path:
    folder = tmp_path / "beats"
    folder.mkdir()
    return folder


def total_beats(beats: Path) -> int:
    return sum(file.stat().st_size for file in beats.iterdir())


def is_growing(beats: Path) -> bool:
    before = total_beats(beats)
    time.sleep(0.3)
    return total_beats(beats) > before


def storm(beats: Path, main_lives: float, pipes: str = "open") -> tuple[str, ...]:
    return (sys.executable, "-c", STORM, str(beats), str(beats.parent / "stop"), str(main_lives), pipes)


def test_killing_the_group_alone_leaves_a_storm_running(beats: Path) -> None:
    """The positive control: what the next three facts end is really there."""
    group = subprocess.Popen(storm(beats, 60), start_new_session=True)
    try:
        while total_beats(beats) < 30:
            time.sleep(0.01)
        os.killpg(group.pid, signal.SIGKILL)
        group.wait()

        assert is_growing(beats)
    finally:
        (beats.parent / "stop").touch()
        while is_growing(beats):
            pass


@pytest.mark.parametrize("pipes", ["open", "closed"])
def test_a_storm_is_over_after_the_timeout(beats: Path, pipes: str) -> None:
    ended = run(*storm(beats, 60, pipes), timeout=1)

    assert (ended.status, ended.timed_out, ended.kill) == (-9, True, "best-effort")
    assert total_beats(beats) > 30
    assert not is_growing(beats)


@pytest.mark.parametrize("pipes", ["open", "closed"])
def test_a_storm_is_over_after_the_script_ended(beats: Path, pipes: str) -> None:
    ended = run(*storm(beats, 0.5, pipes))

    assert (ended.status, ended.timed_out, ended.kill) == (0, False, "best-effort")
    assert ended.leftovers_killed >= 3
    assert total_beats(beats) > 30
    assert not is_growing(beats)


def test_a_storm_is_over_after_cancelling(beats: Path) -> None:
    cancel = threading.Event()
    threading.Timer(0.5, cancel.set).start()

    ended = run(*storm(beats, 60), cancel=cancel)

    assert (ended.status, ended.cancelled, ended.kill) == (-9, True, "best-effort")
    assert total_beats(beats) > 30
    assert not is_growing(beats)


def test_a_daemon_survives_where_nobody_looks_for_it(tmp_path: Path) -> None:
    """The positive control for the next two facts."""
    file = tmp_path / "pid"
    subprocess.run((sys.executable, "-c", DAEMON, str(file)), check=True, timeout=30, start_new_session=True)
    daemon = pid_in(file)
    try:
        assert is_alive(daemon)
    finally:
        os.kill(daemon, signal.SIGKILL)


def test_a_daemon_with_every_descriptor_closed_dies_with_its_script(tmp_path: Path) -> None:
    file = tmp_path / "pid"

    ended = run(sys.executable, "-c", DAEMON, str(file))

    assert (ended.status, ended.leftovers_killed, ended.kill) == (0, 1, "best-effort")
    assert not is_alive(pid_in(file))


def test_a_daemon_dies_at_the_timeout(tmp_path: Path) -> None:
    file = tmp_path / "pid"

    ended = run(sys.executable, "-c", DAEMON + "\ntime.sleep(60)", str(file), timeout=1.5)

    assert (ended.timed_out, ended.leftovers_killed) == (True, 1)
    assert not is_alive(pid_in(file))


def test_who_was_there_before_its_run_began_is_killed_before_its_child(tmp_path: Path) -> None:
    """As in walls that waited: who has only its child killed goes on with the next line."""
    os.mkfifo(tmp_path / "go")
    helper = 'echo $$ > "$0/up"; read -r _ < "$0/go"; sleep 97.5; echo went on'
    words = ("/bin/bash", "-c", 'setsid /bin/bash -c "$1" "$0" & sleep 97.5', str(tmp_path), helper)
    request = ProcessRequest(words, "/", {"PATH": os.defpath}, b"", 1.0)
    ahead = Ahead(request)
    before = pid_in(tmp_path / "up")
    go = threading.Timer(0.2, (tmp_path / "go").write_text, ["\n"])
    go.start()
    ended = run_process(request, ahead=ahead)
    go.join()
    assert (ended.timed_out, ended.stdout, is_alive(before)) == (True, b"", False)


def test_children_in_the_background_are_killed_and_counted(tmp_path: Path) -> None:
    ended = run_bash(
        'sleep 60 & echo $! > "$1/group"; setsid sleep 60 & echo $! > "$1/session"; exec 1>&-; exit 3',
        tmp_path,
    )

    assert (ended.status, ended.leftovers_killed) == (3, 2)
    assert [is_alive(pid_in(tmp_path / name)) for name in ("group", "session")] == [False, False]


def test_a_child_that_cleared_its_environment_is_given_away_by_a_pipe(tmp_path: Path) -> None:
    ended = run_bash('setsid env -i /bin/sleep 60 >/dev/null 2>&1 & echo $! > "$1/pid"', tmp_path)

    assert (ended.status, ended.leftovers_killed, ended.kill) == (0, 1, "best-effort")
    assert not is_alive(pid_in(tmp_path / "pid"))


def test_a_child_that_cleared_its_environment_is_given_away_by_its_session(tmp_path: Path) -> None:
    """`set -m` gives the job a group of its own; closing every descriptor takes the pipes away."""
    ended = run_bash(
        'set -m; for fd in /proc/$$/fd/*; do fd=${fd##*/}; [ "$fd" -gt 2 ] && eval "exec $fd>&-"; done\n'
        'env -i /bin/sleep 60 <&- >&- 2>&- & echo $! > "$1/pid"',
        tmp_path,
    )

    assert (ended.status, ended.leftovers_killed) == (0, 1)
    assert not is_alive(pid_in(tmp_path / "pid"))


def test_without_walls_a_child_that_leaves_no_mark_at_all_survives() -> None:
    """What "best-effort" admits: no environment, no descriptor, no session."""
    text = (
        "import os, subprocess, sys\n"
        "child = subprocess.Popen(['/bin/sleep', '60'], env={}, start_new_session=True,\n"
        "    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)\n"
        "print(child.pid, flush=True)\n"
        "os._exit(0)"
    )
    ended = run(sys.executable, "-c", text)
    child = int(ended.stdout)
    try:
        assert (ended.leftovers_killed, ended.kill, is_alive(child)) == (0, "best-effort", True)
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_process_that_lives_on_in_its_second_thread_is_found(tmp_path: Path) -> None:
    text = (
        "import ctypes, os, sys, threading, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid(); os.closerange(3, 1024)\n"
        "    threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "    open(sys.argv[1], 'w').write(str(os.getpid()))\n"
        "    os.closerange(0, 1024)\n"
        "    ctypes.CDLL(None).syscall(60, 0)\n"  # exit, of this thread only
        "while not os.path.exists(sys.argv[1]) or f'State:\\tZ' not in open(\n"
        "    '/proc/' + (open(sys.argv[1]).read() or 'self') + '/status').read():\n"
        "    time.sleep(0.005)\n"
    )
    file = tmp_path / "pid"

    ended = run(sys.executable, "-c", text, str(file), timeout=20)

    assert (ended.status, ended.leftovers_killed) == (0, 1)
    assert not Path(f"/proc/{pid_in(file)}/task").exists() or not is_alive(pid_in(file))


def test_a_run_inside_a_run_dies_with_the_outer_one(tmp_path: Path) -> None:
    inner = (
        "import os, sys\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from skillkit.core.run.process import ProcessRequest, run_process\n"
        "argv = ('/bin/sh', '-c', 'echo $$ > \"$0\"; exec sleep 60', sys.argv[1])\n"
        "run_process(ProcessRequest(argv, '/', {'PATH': os.defpath}, b'', 60))\n"
    )
    file = tmp_path / "pid"

    ended = run(sys.executable, "-c", inner, str(file), timeout=2)

    assert (ended.timed_out, ended.leftovers_killed) == (True, 1)
    assert not is_alive(pid_in(file))


def test_the_last_lines_of_a_helper_that_outlives_its_script_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "LINGER_SECONDS", 20)  # so that a busy machine proves the same

    ended = run_bash("exec > >(sleep 0.02; cat); echo to the end")

    assert (ended.stdout, ended.status) == (b"to the end\n", 0)


def test_a_child_that_holds_the_output_does_not_delay_the_return() -> None:
    started = time.monotonic()

    ended = run_bash("echo done; sleep 60 &")

    assert (ended.stdout, ended.status, ended.leftovers_killed) == (b"done\n", 0, 1)
    assert time.monotonic() - started < 20


def test_strangers_and_other_runs_are_left_alone() -> None:
    stranger = subprocess.Popen(["/bin/sleep", "60"])
    try:
        results: list[ProcessExit] = []
        other = threading.Thread(target=lambda: results.append(run_bash("sleep 1; sleep 0.1; echo unharmed")))
        other.start()
        time.sleep(0.2)
        assert run_bash("setsid sleep 60 & exit 0").leftovers_killed == 1
        other.join()

        assert [(ended.status, ended.stdout) for ended in results] == [(0, b"unharmed\n")]
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("closed", ["nothing", "the read end"])
def test_a_copy_of_the_program_made_by_a_fork_is_no_survivor(closed: str) -> None:
    """Nor is a child on its way to exec, which closes one end before the other."""
    reader, writer = os.pipe()
    ready, set_ready = os.pipe()
    copy = os.fork()  # noqa: TID251 - the fact is about a caller that forks
    if copy == 0:
        if closed == "the read end":
            os.close(reader)
        os.write(set_ready, b"!")
        time.sleep(60)
        os._exit(0)
    child = subprocess.Popen(["/bin/sleep", "60"], pass_fds=[writer], env={})
    try:
        os.read(ready, 1)
        assert not holds_inherited_end(copy, (reader,))
        assert holds_inherited_end(child.pid, (reader,))
    finally:
        os.kill(copy, signal.SIGKILL)
        os.waitpid(copy, 0)
        child.kill()
        child.wait()
        for fd in (reader, writer, ready, set_ready):
            os.close(fd)


def test_proc_tells_pids_and_environments() -> None:
    child = subprocess.Popen(["/bin/sleep", "60"], env={"A": "b"})
    try:
        assert {os.getpid(), child.pid} <= all_pids()
        while (environment := environment_of(child.pid)) is None:  # in the middle of exec
            time.sleep(0.001)
        assert environment == b"A=b\0"
        assert last_pid() > 0
        assert seconds_to_start_over() > 0
    finally:
        child.kill()
        child.wait()
    assert environment_of(child.pid) == b""


def test_a_status_nobody_can_tell_is_unknown() -> None:
    assert taken_status(-1) == UNKNOWN_STATUS
