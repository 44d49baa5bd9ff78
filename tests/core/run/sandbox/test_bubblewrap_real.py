"""The bubblewrap walls as a real process sees them: what is shown, what is kept, how a run ends."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest
from support import confined_runs
from support.confined_runs import Room, bubblewrap_refusal, ended, open_folder, users
from support.running import wait_for

from skillkit.core.values.policy import Limits

pytestmark = pytest.mark.skipif(bool(bubblewrap_refusal()), reason=f"no bubblewrap here: {bubblewrap_refusal()}")

PYTHON = "/usr/bin/python3"
STATUS = r"""
import json, os, resource
fields = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines())
names = ("user", "pid", "mnt", "net", "ipc", "uts")
print(json.dumps({
    "namespaces": {name: os.readlink(f"/proc/self/ns/{name}") for name in names},
    "kept": [fields[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp")],
    "limits": [resource.getrlimit(getattr(resource, f"RLIMIT_{name}")) for name in
               ("DATA", "FSIZE", "NPROC", "NOFILE", "CPU", "CORE")],
    "environment": dict(os.environ),
    "descriptors": sorted(int(name) for name in os.listdir("/proc/self/fd")),
}))
"""


@pytest.mark.parametrize("user", users())
def test_what_is_promised_is_in_force(user: int | None) -> None:
    with open_folder() as folder:
        room = Room.made(folder, user=user).with_walls(limits=Limits(512, 50, 40, 100, 8), timeout=9.5)
        seen = json.loads(room.run(PYTHON, "-c", STATUS)[1])
        shared = [name for name, link in seen["namespaces"].items() if link == os.readlink(f"/proc/self/ns/{name}")]
        megabyte = 1 << 20
        assert shared == []
        assert seen["kept"] == ["0000000000000000"] * 5 + ["1", "2"]
        assert seen["limits"] == [[value, value] for value in (512 * megabyte, 50 * megabyte, 40, 100, 15, 0)]
        assert {key: seen["environment"][key] for key in ("HOME", "TMPDIR", "LANG")} == {
            "HOME": "/tmp/home",
            "TMPDIR": "/tmp",
            "LANG": "C.UTF-8",
        }


TOP = {"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr", "nix", "gnu"}


@pytest.mark.parametrize("user", users())
def test_nothing_is_shown_but_the_system_the_skill_and_the_work_folder(user: int | None) -> None:
    """Wherever temporary files are: of each folder above the skill, only the way to it can be seen."""
    with open_folder() as folder:
        room = Room.made(folder, user=user)
        way = [room.root, *room.root.parents]
        expected = {str(above): {below.name} for above, below in zip(way[1:], way, strict=False)}
        expected[str(room.root)] = {"skill", "work"}
        expected["/tmp"] = expected.get("/tmp", set()) | {"home"}
        _, output, _ = room.run("/bin/bash", "-c", f"ls -A1 {' '.join(expected)} /home /root 2>/dev/null")
        sections = [section.split("\n") for section in output.strip().split("\n\n")]
        shown = {lines[0].removesuffix(":"): set(lines[1:]) for lines in sections}
        assert shown.pop("/") <= TOP | expected.pop("/")
        assert shown == expected


@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 0", 0), ("exit 1", 1), ("exit 77", 77), ("exit 255", 255), ("kill -SEGV $$", 139), ("kill -KILL $$", 137)],
)
def test_the_status_comes_through(script: str, status: int) -> None:
    with open_folder() as folder:
        assert Room.made(folder).run("/bin/bash", "-c", script)[0] == status


def test_bubblewraps_own_refusal_is_told_from_a_scripts_failure() -> None:
    with open_folder() as folder:
        room = Room.made(folder)
        without = room.with_walls(readable=(str(room.root / "gone"),))
        status, _, errors = without.run("/bin/true")
        assert without.confined("/bin/true").is_own_refusal(status, errors)
        status, _, errors = room.run("/bin/bash", "-c", "echo no >&2; exit 1")
        assert not room.confined("/bin/bash").is_own_refusal(status, errors)


@pytest.mark.parametrize("user", users())
def test_a_script_may_end_its_own_group(user: int | None) -> None:
    with open_folder() as folder:
        room = Room.made(folder, user=user, dies_with_thread=True)
        script = "trap '' TERM; sleep 50 & kill 0; exit 3"
        assert room.run("/bin/bash", "-c", script)[0] == 3


@pytest.mark.parametrize("user", users())
def test_a_granted_network_reaches_a_server_but_no_unix_socket(user: int | None) -> None:
    with open_folder() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        room = Room.made(folder, user=user).with_walls(network=True)
        port = server.getsockname()[1]
        status, _, errors = room.run(PYTHON, "-c", f"import socket; socket.create_connection(('localhost', {port}))")
        assert (status, errors) == (0, "")
        status, _, errors = room.run(PYTHON, "-c", "import socket; socket.socket(socket.AF_UNIX)")
        assert (status, "PermissionError" in errors) == (1, True)


@pytest.mark.parametrize("user", users())
def test_grants_show_what_was_granted_and_no_more(user: int | None) -> None:
    with open_folder() as folder:
        room = Room.made(folder, user=user)
        for name in ("read", "write", "hidden"):
            (room.outside / name).mkdir()
            (room.outside / name / "file").write_text(name)
        room.hand_over()
        room = room.with_walls(readable=(f"{room.outside}/read",), writable=(f"{room.outside}/write",))
        script = "cat read/file write/file hidden/file 2>/dev/null; echo new > read/new; echo new > write/new"
        _, output, _ = room.run("/bin/bash", "-c", f"cd {room.outside} && {script}")
        made = [path.name for path in room.outside.rglob("new")]
        assert (output, made, (room.outside / "write/new").exists()) == ("readwrite", ["new"], True)


BEAT = "while true; do echo . >> $0; sleep 0.02; done"
CALLER = r"""
import fcntl, os, sys, time
sys.path[:0] = sys.argv[1].split(os.pathsep)
from pathlib import Path
from support.confined_runs import Room
room = Room.made(Path(sys.argv[2]), dies_with_thread=sys.argv[3] == "thread")
read, write = os.pipe()
process = room.start(room.confined("/bin/bash", "-c", sys.argv[4], str(room.work / "beats")), pass_fds=(write,))
if sys.argv[3] == "pipe":
    fcntl.fcntl(write, fcntl.F_SETOWN, -process.pid)
    fcntl.fcntl(write, 10, 9)  # F_SETSIG, SIGKILL
    fcntl.fcntl(write, fcntl.F_SETFL, os.O_ASYNC)
os.close(write)
Path(sys.argv[2], "tied").touch()
time.sleep(100)
"""


@pytest.mark.parametrize("how", ["thread", "pipe"])
def test_a_run_ends_when_the_caller_is_killed(how: str) -> None:
    """Either the kernel ties the run to the thread, or a pipe whose other end only the caller has."""
    with open_folder() as folder:
        tests = os.path.dirname(str(confined_runs.__file__))
        places = os.pathsep.join((tests, *sys.path))
        caller = subprocess.Popen([sys.executable, "-c", CALLER, places, str(folder), how, BEAT])
        beats = folder / "work/beats"
        assert wait_for(lambda: (folder / "tied").exists() and beats.exists() and beats.stat().st_size > 0, 20)
        caller.kill()
        caller.wait()
        time.sleep(0.2)
        before = beats.stat().st_size
        time.sleep(0.2)
        assert beats.stat().st_size == before


@pytest.mark.parametrize("dies_with_thread", [False, True])
def test_a_run_outlives_its_thread_unless_it_is_tied_to_it(dies_with_thread: bool) -> None:
    with open_folder() as folder:
        room = Room.made(folder, dies_with_thread=dies_with_thread)
        processes: list[subprocess.Popen[str]] = []
        confined = room.confined("/bin/bash", "-c", f"touch {room.work}/started; sleep 1")

        def start() -> None:
            processes.append(room.start(confined))
            assert wait_for((room.work / "started").exists, 20)

        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        assert ended(processes[0])[0] == (-signal.SIGKILL if dies_with_thread else 0)


@pytest.mark.parametrize("dies_with_thread", [False, True])
def test_an_inherited_pipe_reaches_the_script_and_hangs_up_with_it(dies_with_thread: bool) -> None:
    with open_folder() as folder:
        room = Room.made(folder, dies_with_thread=dies_with_thread)
        read, write = os.pipe()
        high = fcntl.fcntl(write, fcntl.F_DUPFD_CLOEXEC, 200)
        os.close(write)
        process = room.start(room.confined("/bin/bash", "-c", f"echo there >&{high}"), pass_fds=(high,))
        os.close(high)
        assert ended(process)[0] == 0
        assert os.read(read, 100) == b"there\n"
        assert select.select([read], [], [], 5)[0] == [read]
        assert os.read(read, 100) == b""
        os.close(read)


@pytest.mark.skipif(os.getuid() != 0, reason="needs another user")
def test_root_shows_an_ordinary_user_and_says_what_does_not_hold() -> None:
    with open_folder() as folder:
        room = Room.made(folder)
        assert room.run("/usr/bin/id", "-u")[1] == "1000\n"
        assert "the limit of processes does not hold for root" in room.confined("/bin/true").isolation.degraded
