"""How a run with hosts ends: however it does, nothing of it is left; and where its way out breaks, it has no network."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from support.network import NAME, POLICY, HostWorld, echo, host_world, listening, many_open_files
from support.running import wait_for

from skillkit import ScriptExecutionResult, SkillManager
from skillkit.core.run.hosts import way_out
from skillkit.core.run.hosts.proxy import Proxy
from skillkit.core.run.warm import attaching
from skillkit.testing import skill_folder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these walls are of Linux")

# Says in which network it is, holds connections of every kind, and does what its argument says.
HOLDER = f"""
import os, socket, sys, time
def dial(text):
    s = socket.create_connection(("127.0.0.1", 3128), 20)
    s.sendall(text)
    return s
held = [dial(b"CONNECT {NAME}:443 HTTP/1.1\\r\\n\\r\\n") for _ in range(5)]
assert all(b" 200 " in s.recv(1000) for s in held)
held += [dial(b"CONNECT {NAME}"), dial(b"")]
print("inside", os.stat("/proc/self/ns/net").st_ino, flush=True)
if sys.argv[1] == "send":
    while True:
        held[0].sendall(bytes(100_000))
        held[0].recv(1 << 20)
if sys.argv[1] == "wait":
    time.sleep(600)
"""
REACH = f"""
import socket
try:
    s = socket.create_connection(("127.0.0.1", 3128), 20)
    s.sendall(b"CONNECT {NAME}:443 HTTP/1.1\\r\\n\\r\\n")
    print("reached" if b" 200 " in s.recv(1000) else "refused")
except OSError as error:
    print("closed:", error)
"""
CALLER = """
import os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from support.network import POLICY
from skillkit import SkillManager
folder = Path(sys.argv[2])
with SkillManager(folder / "skills", "", [], [], policy=POLICY, state_dir=folder / "state") as manager:
    os.write(1, b"ready\\n")
    manager.execute_skill_script("net", "hold.py", argv=[sys.argv[3]], on_output=lambda _, data: os.write(1, data))
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostWorld]:
    with host_world(tmp_path, monkeypatch) as made, listening(echo) as port:
        made.outside.hosts[f"{NAME}:443"] = port
        skill_folder(tmp_path / "skills", "net", files={"scripts/hold.py": HOLDER, "scripts/reach.py": REACH})
        yield made


class Left:
    """What this process has now that it had not before: threads of ours, and whatever is open.

    The helpers of this process stay for its next run: who opens the way out, and who attaches what comes late to warm
    runs.
    """

    def __init__(self) -> None:
        self._before = self._now()

    @staticmethod
    def _now() -> set[str]:
        found = {each.name for each in threading.enumerate() if each.name.startswith("skillkit host")}
        for number in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/self/fd/{number}"))
        helpers = filter(None, (way_out._DOOR._helper, attaching._helper._socket))
        own = {f"socket:[{os.fstat(each.fileno()).st_ino}]" for each in helpers}
        return {each for each in found - own if not each.startswith("/proc/")}

    def __call__(self) -> set[str]:
        return self._now() - self._before


def processes_in(network: int) -> list[str]:
    """Those in a network namespace."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "ns/net").stat().st_ino == network:
                found.append(entry.name)
    return found


def helper_of(pid: int) -> list[int]:
    """The program that opens sockets inside, by what stands in its command line."""
    mark, found = f" 0 3128 {pid} ".encode(), []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "cmdline").read_bytes().replace(b"\0", b" "):
                found.append(int(entry.name))
    return found


def run(
    world: HostWorld, script: str, *argv: str, timeout: float = 60, cancel_after: float = 0
) -> ScriptExecutionResult:
    cancel = threading.Event()
    with SkillManager(world.folder / "skills", "", [], [], policy=POLICY, state_dir=world.folder / "state") as manager:
        if cancel_after:
            heard = lambda *_: threading.Timer(cancel_after, cancel.set).start()  # noqa: E731
            return manager.execute_skill_script("net", script, argv=argv, cancel=cancel, on_output=heard)
        return manager.execute_skill_script("net", script, argv=argv, timeout=timeout)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["plain", "timeout", "cancel"])
@pytest.mark.parametrize("doing", ["wait", "send"])
def test_nothing_is_left_however_a_run_ends(world: HostWorld, ending: str, doing: str) -> None:
    run(world, "reach.py")  # the helper stays for the next run, and is here already
    left = Left()
    if ending == "plain":
        result = run(world, "hold.py", "end")
    elif ending == "timeout":
        result = run(world, "hold.py", doing, timeout=3)
        assert result.timed_out
    else:
        result = run(world, "hold.py", doing, cancel_after=0.3)
        assert result.cancelled
    assert sum(use.connections for use in result.hosts) == 5
    network = int(result.stdout.split()[1])
    assert wait_for(lambda: not left(), 20), left()
    assert wait_for(lambda: not processes_in(network), 20)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["starting", "wait", "send"])
def test_nothing_is_left_when_the_caller_is_killed(world: HostWorld, moment: str) -> None:
    words = [sys.executable, "-c", CALLER, str(Path(__file__).parents[1]), str(world.folder)]
    caller = subprocess.Popen([*words, "wait" if moment == "starting" else moment], stdout=subprocess.PIPE)
    assert caller.stdout is not None
    with caller.stdout as said:
        assert said.readline() == b"ready\n"
        if moment == "starting":
            assert wait_for(lambda: bool(helper_of(caller.pid)), 30), "the walls go up, the script has not begun"
            network = 0
        else:
            network = int(said.readline().split()[1])
            assert processes_in(network), "the control: it is found while it runs"
        helpers = helper_of(caller.pid)
        assert helpers
        caller.send_signal(signal.SIGKILL)
        caller.wait()
    assert wait_for(lambda: not helper_of(caller.pid), 20)
    assert wait_for(lambda: not any(Path(f"/proc/{each}").exists() for each in helpers), 20)
    assert wait_for(lambda: not (network and processes_in(network)), 20)
    assert wait_for(lambda: not scripts_of(world), 20)


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["starting", "wait", "send"])
def test_no_file_is_left_either_once_skillkit_is_used_again(world: HostWorld, moment: str) -> None:
    """Nobody can tidy up at the moment of a kill; whoever comes next does."""
    temporary = world.folder / "temporary"
    temporary.mkdir()
    # What is known of files is kept only once they are settled; by then a run leaves all that it ever does.
    assert wait_for(lambda: any("readings/" in each for each in killed_then_used(world, temporary, "")), 60)
    world_before = killed_then_used(world, temporary, "")
    for _ in range(3):
        assert killed_then_used(world, temporary, moment) == world_before
    assert list(temporary.iterdir()) == []


def killed_then_used(world: HostWorld, temporary: Path, moment: str) -> set[str]:
    """Every file of the world, and of temporary ones, after a caller was killed and another one ended well."""
    environment = {**os.environ, "TMPDIR": str(temporary)}
    words = [sys.executable, "-c", CALLER, str(Path(__file__).parents[1]), str(world.folder)]
    if moment:
        with subprocess.Popen(
            [*words, "wait" if moment == "starting" else moment], stdout=subprocess.PIPE, env=environment
        ) as caller:
            assert caller.stdout is not None
            caller.stdout.readline()
            if moment == "starting":
                assert wait_for(lambda: bool(helper_of(caller.pid)), 30)
            else:
                caller.stdout.readline()
            caller.send_signal(signal.SIGKILL)
        assert list(temporary.iterdir()), "the control: something has to be tidied up"
        assert wait_for(lambda: not scripts_of(world), 20)
    subprocess.run([*words, "end"], check=True, stdout=subprocess.PIPE, env=environment)
    return {str(path.relative_to(world.folder)) for path in world.folder.rglob("*")}


def scripts_of(world: HostWorld) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            if os.fsencode(world.folder) in words and entry.name != str(os.getpid()):
                found.append(entry.name)
    return found


def test_a_helper_that_was_killed_is_replaced(world: HostWorld) -> None:
    assert run(world, "reach.py").stdout.strip() == "reached"
    for pid in (helpers := helper_of(os.getpid())):
        os.kill(pid, signal.SIGKILL)
    assert helpers
    assert run(world, "reach.py").stdout.strip() == "reached"


def test_where_no_socket_can_be_opened_inside_there_is_no_network(
    world: HostWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(world, "reach.py").stdout.strip() == "reached", "the control"

    def fail(*_: object) -> NoReturn:
        raise OSError("there is no such program")

    monkeypatch.setattr(way_out, "_ask", fail)
    result = run(world, "reach.py")
    assert result.stdout.startswith("closed: ")
    assert any("no host can be reached" in each for each in result.isolation.degraded)
    assert result.hosts == ()


def test_a_helper_that_hangs_costs_the_run_its_network_and_not_its_start(
    world: HostWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(way_out, "ANSWER_SECONDS", 0.5)

    def hang(*_: object) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        silent.append(theirs)
        return ours

    silent: list[socket.socket] = []
    monkeypatch.setattr(way_out, "_start_helper", hang)
    monkeypatch.setattr(way_out, "_DOOR", way_out._Door())
    result = run(world, "reach.py")
    assert silent
    for each in silent:
        each.close()
    way_out._DOOR.forget()
    assert result.stdout.startswith("closed: ")
    assert any("does not answer" in each for each in result.isolation.degraded)


@pytest.mark.parametrize("place", ["serve", "_answer"])
def test_a_proxy_that_dies_opens_nothing(world: HostWorld, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    assert run(world, "reach.py").stdout.strip() == "reached", "the control"

    def die(*_: object) -> NoReturn:
        raise AssertionError("a fault of our own")

    monkeypatch.setattr(Proxy, place, die)
    monkeypatch.setattr(threading, "excepthook", lambda *_: None)
    world.outside.asked.clear()
    result = run(world, "reach.py", timeout=20)
    assert "reached" not in result.stdout
    assert world.outside.asked == []


@pytest.mark.slow
def test_a_script_that_floods_its_proxy_is_stopped_in_time_and_holds_up_no_other_run(world: HostWorld) -> None:
    flood = f"""
import os, socket
print("begun", flush=True)
for _ in range(3):
    os.fork()
held = []
while True:
    try:
        s = socket.create_connection(("127.0.0.1", 3128), 5)
        s.sendall(b"CONNECT {NAME}:443 HTTP/1.1\\r\\n\\r\\n" if len(held) % 2 else b"GET http://evil.test/ HTTP/1.1\\r\\n\\r\\n")
        held.append(s)
        if len(held) > 100:
            held.pop(0).close()
    except OSError:
        pass
"""
    skill_folder(world.folder / "skills", "flood", files={"scripts/flood.py": flood})
    run(world, "reach.py")  # as above
    left = Left()
    with (
        many_open_files(),
        SkillManager(world.folder / "skills", "", [], [], policy=POLICY, state_dir=world.folder / "state") as manager,
    ):
        begun, results = threading.Event(), list[ScriptExecutionResult]()

        def run_flood() -> None:
            results.append(
                manager.execute_skill_script("flood", "flood.py", timeout=15, on_output=lambda *_: begun.set())
            )

        thread = threading.Thread(target=run_flood)
        thread.start()
        assert begun.wait(30)
        time.sleep(1)
        assert manager.execute_skill_script("net", "reach.py", timeout=60).stdout.strip() == "reached"
        thread.join(60)
        assert not thread.is_alive()
    (result,) = results
    assert result.timed_out
    assert sum(use.connections for use in result.hosts) > 100
    assert wait_for(lambda: not left(), 30), left()
