"""The keeper: nothing starts outside a layer, nothing outlives the script, its status comes out unchanged."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.landlock_runs import NEEDS_LANDLOCK, PYTHON, Place, alive, name_of, place, users

from skillkit.core.run.process import run_confined
from skillkit.core.values.policy import Limits

pytestmark = NEEDS_LANDLOCK

# Three chains in which each process leaves its session, starts the next and ends; each beat is a line in a file.
STORM = """
import os, sys, time
marker, beats = sys.argv[1], sys.argv[2]
for chain in range(3):
    if os.fork() == 0:
        while True:
            if os.fork():
                os._exit(0)
            os.setsid()
            with open(beats, "a") as file:
                file.write("x")
            time.sleep(0.002)
os.close(1)
os.close(2)
time.sleep(float(sys.argv[3]))
"""
BOMB = """
import os, time
count = 0
try:
    while count < 400:
        if os.fork() == 0:
            time.sleep(30)
        count += 1
except BlockingIOError:
    pass
print(count)
"""
DAEMON = "(setsid setsid bash -c 'trap \"\" TERM HUP INT; sleep 300; :' {0} <&- >&- 2>&- &) "


@pytest.fixture(params=users(), ids=name_of)
def here(request: pytest.FixtureRequest) -> Iterator[Place]:
    with place(user=request.param) as made:
        yield made


@pytest.mark.parametrize("code", [0, 1, 7, 124, 125, 139, 255])
def test_the_exit_code_is_the_scripts(here: Place, code: int) -> None:
    assert here.run("/bin/bash", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize("name", "SIGSEGV SIGKILL SIGTERM SIGINT SIGABRT SIGPIPE SIGHUP SIGXCPU SIGSYS".split())
def test_death_by_a_signal_is_seen_as_that_signal(here: Place, name: str) -> None:
    number = getattr(signal, name)
    assert here.run("/bin/bash", "-c", f"kill -{number} $$").returncode == -number


def test_the_streams_pass_through_untouched(here: Place) -> None:
    confined = here.confined(("/bin/bash", "-c", "cat; printf 'err\\377' >&2"))
    data = bytes(range(256)) * 4096
    with here.started(confined) as process:
        assert process.communicate(data, timeout=60) == (data, b"err\xff")


def test_output_ends_when_the_script_closes_it(here: Place) -> None:
    with here.started(here.confined(("/bin/bash", "-c", "echo x; exec >&- 2>&-; read line"))) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b"x\n"
        assert process.poll() is None


def test_the_script_leads_a_session_of_its_own(here: Place) -> None:
    """As it does without walls; `kill 0`, a usual way to end one's helpers, reaches nobody else."""
    ended = here.run("/bin/bash", "-c", "trap 'echo mine; exit 4' TERM; kill 0; sleep 5")
    assert (ended.stdout, ended.returncode) == ("mine\n", 4)


# Signals 32 and 33, which no program can set through the C library; they may come down ignored from anywhere.
LIBRARYS_OWN = 0b11 << 31


def test_signals_that_the_caller_ignores_change_nothing(here: Place) -> None:
    """A caller that ignores SIGCHLD would make every wait fail, its own too: here another waits for the first process."""
    confined = here.confined(("/bin/bash", "-c", "sleep 0.05 & wait $!; grep SigIgn /proc/self/status; exit 6"))
    ignoring = (
        "import os, signal, sys\n"
        "for number in (1, 2, 3, 10, 13, 15, 17): signal.signal(number, signal.SIG_IGN)\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    with here.started(confined._replace(argv=(PYTHON, "-I", "-c", ignoring, *confined.argv))) as process:
        out, _ = process.communicate(timeout=60)
    ignored = int(out.split()[1], 16) & ~LIBRARYS_OWN
    assert (ignored, process.returncode) == (0, 6)


def test_of_inherited_descriptors_only_a_runners_mark_reaches_the_script(here: Place) -> None:
    secret = here.file("outside/secret")
    low_read, low_write = os.pipe()
    numbers = [os.open(secret, os.O_RDONLY), low_read, low_write]
    numbers += [fcntl.fcntl(each, fcntl.F_DUPFD, 200) for each in numbers]
    mark = numbers[-1]
    try:
        ended = here.run("/bin/ls", "/proc/self/fd", pass_fds=tuple(numbers))
    finally:
        for number in numbers:
            os.close(number)
    assert sorted(ended.stdout.split(), key=int) == ["0", "1", "2", "3", str(mark)]  # 3 is the listing itself


def gone(marker: str) -> bool:
    deadline = time.monotonic() + 5
    while alive(marker):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def wait_until(found: Path) -> None:
    deadline = time.monotonic() + 20
    while not (found.exists() and found.stat().st_size):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_still(beats: Path) -> bool:
    before = beats.stat().st_size
    time.sleep(0.3)
    return beats.stat().st_size == before


def test_a_daemon_does_not_outlive_the_script(here: Place) -> None:
    marker = f"daemon-{here.root.name}"
    ended = here.run("/bin/bash", "-c", DAEMON.format(marker) + "; sleep 0.2; echo done")
    assert (ended.stdout, ended.returncode) == ("done\n", 0)
    assert alive(marker) == []


def test_a_daemon_survives_without_the_keeper(here: Place) -> None:
    if here.user is None and os.geteuid() == 0:
        pytest.skip("controls never run as root")
    marker = f"control-{here.root.name}"
    here.run_bare("/bin/bash", "-c", DAEMON.format(marker) + "; sleep 0.2")
    left = alive(marker)
    for pid in left:
        os.killpg(pid, signal.SIGKILL)  # it leads a session, with a child in it
    assert left


@pytest.mark.parametrize("trial", range(3))
def test_a_storm_of_forks_leaves_nobody(here: Place, trial: int) -> None:
    marker, beats = f"storm-{trial}-{here.root.name}", here.work / "beats"
    ended = here.run(PYTHON, "-I", "-c", STORM, marker, str(beats), "0.3")
    assert (ended.returncode, alive(marker)) == (0, [])
    assert is_still(beats)


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "SIGHUP", "SIGKILL of the group", "hang-up"])
def test_whatever_ends_the_first_process_ends_the_storm(here: Place, how: str) -> None:
    marker, beats = f"ended-{here.root.name}", here.work / "beats"
    confined = here.confined((PYTHON, "-I", "-c", STORM, marker, str(beats), "300"))
    read, write = os.pipe()
    lifeline = os.dup2(read, 231)
    with here.started(confined, pass_fds=(lifeline,)) as process:
        os.close(read)
        os.close(lifeline)
        wait_until(beats)
        if how == "hang-up":
            os.close(write)
        elif how == "SIGKILL of the group":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.send_signal(getattr(signal, how))
        assert process.wait(timeout=20) == -signal.SIGKILL
        assert gone(marker)
    assert is_still(beats)
    if how != "hang-up":
        os.close(write)


def test_when_the_keeper_is_killed_nothing_stays_either(here: Place) -> None:
    marker, beats = f"keeper-{here.root.name}", here.work / "beats"
    with here.started(here.confined((PYTHON, "-I", "-c", STORM, marker, str(beats), "300"))) as process:
        wait_until(beats)
        (keeper,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(keeper), signal.SIGKILL)
        assert process.wait(timeout=20) == -signal.SIGKILL
        assert alive(marker) == []


def test_the_keeper_carries_no_mark_of_the_run(here: Place) -> None:
    """Who hunts left-overs by their environment must not end the one process that can end them all."""
    with here.started(here.confined(("/bin/bash", "-c", "echo; read line"))) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (keeper,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        (script,) = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
        environments = [Path(f"/proc/{pid}/environ").read_bytes() for pid in (keeper, script)]
        sessions = {os.getsid(int(pid)) for pid in (process.pid, keeper, script)}
        held = {os.readlink(f"/proc/{keeper}/fd/{number}") for number in (0, 1, 2)}
    assert [b"SKILLKIT_RUN=" in each for each in environments] == [False, True]
    assert len(sessions) == 3
    assert held == {"/dev/null"}


# Layers are made to fail in a process of our own that then does what the keeper does.
FORCED = """
import ctypes, os, sys
sys.path.append(sys.argv[1])
from sandbox import keeper, layers
layer, number = sys.argv[2], int(sys.argv[3])
def refuse(*_):
    raise OSError(number, os.strerror(number))
targets = {
    "supervisor": (layers, "become_subreaper"), "session": (os, "setsid"), "seccomp": (layers, "set_filter"),
    "exec": (os, "execve"),
}
first, close_descriptors = os.getpid(), keeper.close_descriptors
if layer == "session":
    setsid, calls = os.setsid, []
    def refuse_second():
        calls.append(1)
        return setsid() if len(calls) == 1 else refuse()
    os.setsid = refuse_second
elif layer == "descriptors":
    is_waiting = lambda: first in (os.getpid(), os.getppid())
    keeper.close_descriptors = lambda kept: close_descriptors(kept) if is_waiting() else refuse()
elif layer in targets:
    setattr(*targets[layer], refuse)
elif layer.startswith("call "):
    layers.call = refuse
elif layer.startswith("control "):
    control = layers.control
    layers.control = lambda option, *rest: refuse() if option == int(layer.split()[1]) else control(option, *rest)
elif layer in layers.LAYERS:
    layers.LAYERS[layer] = refuse
sys.argv[1:4] = []
keeper.main()
"""


def run_forced(here: Place, layer: str, number: int) -> subprocess.CompletedProcess[str]:
    confined = here.confined(("/bin/bash", "-c", f"echo ran; echo ran > {here.work}/ran"))
    at = confined.argv.index(here.parts)
    forced = (FORCED, here.parts, layer, str(number))
    with here.started(confined._replace(argv=(*confined.argv[: at - 1], *forced, *confined.argv[at + 1 :]))) as process:
        out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess((), process.returncode, out.decode(), err.decode())


LAYERS = "supervisor session folders limits no_new_privs capabilities landlock descriptors seccomp exec".split()
REASONS = ("ENOSYS", "EAGAIN", "ENOMEM")


@pytest.mark.parametrize(
    ("layer", "name"), [*((each, "EPERM") for each in LAYERS), *(("landlock", each) for each in REASONS)]
)
def test_a_layer_that_fails_stops_everything_before_the_script(here: Place, layer: str, name: str) -> None:
    ended = run_forced(here, layer, getattr(errno, name))
    assert (ended.returncode, ended.stdout, ended.stderr) == (125, "", f"skillkit-walls: {layer}: {name}\n")
    assert not (here.work / "ran").exists()


@pytest.mark.parametrize(
    ("call", "layer"),
    [
        pytest.param("control 36", "supervisor", id="subreaper"),
        pytest.param("control 38", "no_new_privs", id="no_new_privs"),
        pytest.param("control 47", "capabilities", id="ambient"),
        pytest.param("call 444", "landlock", id="landlock"),
        pytest.param("control 22", "seccomp", id="seccomp"),
    ],
)
def test_a_system_call_that_fails_is_named_by_its_layer(here: Place, call: str, layer: str) -> None:
    ended = run_forced(here, call, errno.ENOSYS)
    assert (ended.returncode, ended.stdout, ended.stderr) == (125, "", f"skillkit-walls: {layer}: ENOSYS\n")
    assert not (here.work / "ran").exists()


def test_without_a_forced_failure_the_same_process_runs_the_script(here: Place) -> None:
    ended = run_forced(here, "none", 0)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "ran\n", "")


def test_a_filter_that_the_kernel_refuses_stops_everything(here: Place) -> None:
    confined = here.confined(("/bin/bash", "-c", "echo ran"))
    with here.started(confined._replace(contents=(confined.contents[0], b"\xff" * 8))) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (125, b"", b"skillkit-walls: seccomp: EINVAL\n")


def test_a_version_that_the_kernel_does_not_have_stops_everything(here: Place) -> None:
    confined = here.confined(("/bin/bash", "-c", "echo ran"))
    unknown = confined.contents[0].replace(b'"ruleset": [65535,', b'"ruleset": [4611686018427387903,')
    with here.started(confined._replace(contents=(unknown, confined.contents[1]))) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (125, b"", b"skillkit-walls: landlock: EINVAL\n")


@pytest.mark.parametrize("contents", [(b"", b""), (b"{", b""), (b"{}", b"")], ids=["empty", "broken", "lacking"])
def test_instructions_that_make_no_sense_stop_everything(here: Place, contents: tuple[bytes, bytes]) -> None:
    confined = here.confined(("/bin/bash", "-c", "echo ran"))
    with here.started(confined._replace(contents=contents)) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (125, b"")
    assert err.startswith(b"skillkit-walls: ")


def test_a_program_that_does_not_exist_is_named(here: Place) -> None:
    ended = here.run("/nowhere/program")
    assert (ended.returncode, ended.stderr) == (125, "skillkit-walls: exec: ENOENT\n")


def test_what_the_keeper_loads_is_little() -> None:
    """Each of these costs more than all the walls together."""
    folder = Path(__file__).parents[4] / "src/skillkit/core/run"
    code = f"import sys; sys.path.append({str(folder)!r}); import sandbox.keeper; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    heavy = {"re", "enum", "json", "signal", "typing", "subprocess", "ctypes.util", "dataclasses", "skillkit"}
    assert heavy & set(loaded.stdout.split()) == set()


def test_processes_are_limited_beside_those_the_user_has(here: Place) -> None:
    if here.user is None and os.geteuid() == 0:
        pytest.skip("the kernel does not limit root")
    ended = here.run(PYTHON, "-I", "-c", BOMB, limits=Limits(processes=40))
    assert 10 <= int(ended.stdout) <= 60  # others of the same user come and go meanwhile


# A daemon that gives up everything by which it could be told: session, environment, descriptors.
EVASIVE = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(3, 1024):
            try: os.close(number)
            except OSError: pass
        null = os.open("/dev/null", os.O_RDWR)
        for number in (0, 1, 2): os.dup2(null, number)
        os.execve(sys.executable, [sys.executable, "-I", "-c", sys.argv[3], sys.argv[1], sys.argv[2]], {})
    os._exit(0)
time.sleep(float(sys.argv[4]))
"""
BEAT = "import sys, time\nwhile True:\n    open(sys.argv[2], 'a').write('x')\n    time.sleep(0.01)"


@pytest.mark.slow
@pytest.mark.parametrize("seconds", ["0.5", "300"], ids=["script ends", "timeout"])
def test_under_the_real_runner_even_a_daemon_without_marks_dies(seconds: str) -> None:
    with place(user=None) as here:
        marker, beats = f"evasive-{here.root.name}", here.work / "beats"
        confined = here.confined((PYTHON, "-I", "-c", EVASIVE, marker, str(beats), BEAT, seconds))
        ended = run_confined(confined, stdin=b"", timeout=2.0, output_limit=1000)
        assert (ended.timed_out, ended.status) == ((False, 0) if seconds == "0.5" else (True, -9))
        assert beats.stat().st_size > 0
        assert gone(marker)
        assert is_still(beats)
