"""A scope of the user's systemd: who is helped by one, who is in it, what it keeps from a script, and that it goes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.running import made_manager, wait_for

from skillkit import STANDARD, Limits, SandboxUnavailableError
from skillkit.core.run import scope, tiers
from skillkit.core.run.sandbox.base import Confined
from skillkit.core.run.sandbox.group import Groups, NoRoom, Room, this_machines_groups
from skillkit.core.run.scope import scope_room, slice_of_login
from skillkit.core.values.runs import Isolation

NOTHING = Confined(("/bin/true",), "/", {"PATH": os.defpath}, (), Isolation(tier="bubblewrap"))
WALLS = replace(STANDARD, sandbox="required")
SLICE = "/user.slice/user-1000.slice"
ROOM = Room(f"/sys/fs/cgroup{SLICE}/user@1000.service/app.slice/a.scope", "user@1000.service", "/usr/bin/busctl")
# Starts a run that sleeps, and says where the groups of its process are.
SLEEPER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support.running import made_manager
from skillkit import STANDARD
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import MAKERS, Choice
from skillkit.core.run.sandbox.group import Groups
from skillkit.core.run.scope import scope_room
folder, tier = Path(sys.argv[2]), sys.argv[3]
tiers.this_machines = Choice({tier: MAKERS["linux"][tier]})
tiers.run_groups = lambda: Groups(scope_room())
script = {"scripts/run.py": "import time\\ntime.sleep(600)\\n"}
with made_manager(folder, script, policy=STANDARD) as manager:
    print(scope_room().path, flush=True)
    manager.execute_skill_script("demo", "run")
"""


def ended(confined: Confined) -> tuple[int, str]:
    done = subprocess.run(
        confined.argv, capture_output=True, text=True, check=False, env=dict(confined.environment), cwd=confined.cwd
    )
    return done.returncode, done.stdout + done.stderr


def no_room() -> NoRoom:
    return NoRoom("there is none beside")


@pytest.mark.parametrize(
    ("group", "found"),
    [
        (f"{SLICE}/session-3.scope", SLICE),
        (f"/machine.slice{SLICE}/session-c1.scope", f"/machine.slice{SLICE}"),
        (f"{SLICE}/user@1000.service/app.slice/terminal.scope", ""),
        ("/user.slice/user-1001.slice/session-3.scope", ""),
        (f"{SLICE}/session-3.scope/below", ""),
        ("/system.slice/cron.service", ""),
        ("/system.slice/x.service/session-3.scope", ""),
        ("", ""),
    ],
)
def test_only_a_login_of_this_user_is_helped(group: str, found: str) -> None:
    """A service of the system may have limits that a run would leave behind."""
    assert slice_of_login(group, 1000) == found


def test_who_is_in_no_login_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope, "read_own", lambda _: "0::/system.slice/x.service\n")
    monkeypatch.setattr(scope, "find_own_program", pytest.fail)
    found = scope._scope_room.__wrapped__()
    assert isinstance(found, NoRoom)
    assert "login" in found.why


def test_where_systemd_does_not_run_nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    user = os.geteuid()
    monkeypatch.setattr(scope, "read_own", lambda _: f"0::/user.slice/user-{user}.slice/session-1.scope\n")
    monkeypatch.setattr(scope, "_runtime_folder", lambda _: "/nonexistent")
    monkeypatch.setattr(scope, "find_own_program", pytest.fail)
    assert scope._scope_room.__wrapped__() == NoRoom("no systemd of this user runs here")


@pytest.mark.parametrize("says", ["echo Failed to connect to bus; exit 1", "exit 1", "cat /proc/self/cgroup"])
def test_a_systemd_that_gives_none_is_a_reason_and_leaves_nothing(tmp_path: Path, says: str) -> None:
    """A holder in any other group than the scope that was asked for is none."""
    program = tmp_path / "systemd-run"
    program.write_text(f"#!/bin/sh\n{says}\n")
    program.chmod(0o755)
    before = os.listdir("/proc/self/fd")
    found = scope._asked(str(program), "/usr/bin/busctl", SLICE, 1000)
    assert isinstance(found, NoRoom)
    assert found.why.startswith("systemd gave no scope: ")
    assert os.listdir("/proc/self/fd") == before


def test_a_systemd_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(scope, "ANSWER_SECONDS", 0.2)
    program = tmp_path / "systemd-run"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o755)
    found = scope._asked(str(program), "/usr/bin/busctl", SLICE, 1000)
    assert found == NoRoom("systemd gave no scope: it did not answer")


def test_the_first_way_that_works_is_taken_and_reasons_are_told() -> None:
    groups = this_machines_groups(ended, NOTHING, (no_room, lambda: NoRoom("nor elsewhere")))
    assert not groups.are_there
    assert groups.what == "none: there is none beside; nor elsewhere"


def test_a_room_that_cannot_be_entered_is_not_taken(tmp_path: Path) -> None:
    groups = this_machines_groups(ended, NOTHING, (lambda: Room(str(tmp_path)), no_room))
    assert not groups.are_there
    assert groups.what.startswith("none: beside this program's own group none can be entered (No control group")


@pytest.mark.parametrize("answers", [0, 1])
def test_a_command_that_systemd_did_not_move_does_not_start(tmp_path: Path, answers: int) -> None:
    """Whatever the answer is, and whatever variables say."""
    busctl, mark, folder = tmp_path / "busctl", tmp_path / "mark", tmp_path / "user@1000.service"
    busctl.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/said\nexit {answers}\n')
    busctl.chmod(0o755)
    folder.mkdir()
    groups = Groups(Room(str(folder), "user@1000.service", str(busctl)), lambda _: {})
    command = NOTHING._replace(argv=("/bin/touch", str(mark)), environment={"is_in": "1", "PATH": os.defpath})
    with groups.around(command, Limits()) as inside:
        (name,) = [path.name for path in folder.iterdir()]
        status, said = ended(inside)
    assert (status, said) == (125, "skillkit-walls: group: it cannot be entered\n")
    assert not mark.exists()
    asked = (tmp_path / "said").read_text()
    assert f"AttachProcessesToUnit ssau user@1000.service /{name} 1 " in asked
    assert list(folder.iterdir()) == []


def test_no_group_can_be_made_in_a_scope_that_is_gone() -> None:
    gone = ROOM._replace(path="/nonexistent/user@1000.service/a.scope")
    with (
        pytest.raises(SandboxUnavailableError, match="start this program again"),
        Groups(gone).around(NOTHING, Limits()),
    ):
        pass


@pytest.fixture
def room() -> Room:
    found = scope_room()
    if isinstance(found, NoRoom):
        pytest.skip(f"no scope here: {found.why}")
    return found


@pytest.fixture
def in_scope(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where another way would be taken."""
    monkeypatch.setattr(tiers, "run_groups", lambda: Groups(room))


def test_a_command_and_its_children_are_in_a_group_of_the_scope_and_it_is_gone_afterwards(room: Room) -> None:
    command = NOTHING._replace(argv=("/bin/sh", "-c", "cat /proc/self/cgroup; (setsid cat /proc/self/cgroup)"))
    before = set(Path(room.path).glob("skillkit-*"))
    with Groups(room).around(command, Limits(data_megabytes=100, temporary_megabytes=10)) as inside:
        (path,) = set(Path(room.path).glob("skillkit-*")) - before
        assert (path / "memory.max").read_text() == f"{410 << 20}\n"
        assert (path / "pids.max").read_text() == "72\n"
        status, said = ended(inside)
    assert status == 0
    assert said.count(f"/{Path(room.path).name}/{path.name}\n") == 2
    assert wait_for(lambda: not path.exists() or not (path / "cgroup.procs").read_text())


def test_a_command_whose_caller_is_gone_does_not_start(room: Room, tmp_path: Path) -> None:
    """Nobody would end it any more; here another program stands between."""
    mark = tmp_path / "mark"
    with Groups(room).around(NOTHING._replace(argv=("/bin/touch", str(mark))), Limits()) as inside:
        status, said = ended(inside._replace(argv=("/bin/sh", "-c", '"$@"; exit $?', "between", *inside.argv)))
    assert (status, said) == (125, "skillkit-walls: group: it cannot be entered\n")
    assert not mark.exists()


@pytest.mark.usefixtures("in_scope")
def test_a_script_in_a_scope_gets_no_way_to_the_users_systemd(tier: str, tmp_path: Path) -> None:
    script = "import os\nprint(*os.environ)\nprint(*os.listdir('/proc/self/fd'))\n"
    with made_manager(tmp_path, {"scripts/run.py": script}, policy=WALLS) as manager:
        result = manager.execute_skill_script("demo", "run")
    assert result.success, (tier, result.stderr)
    assert any("in all" in limit for limit in result.isolation.limits)
    for name in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "INVOCATION_ID"):
        assert name not in result.stdout


def test_nothing_is_left_of_a_scope_after_a_kill(tier: str, room: Room, tmp_path: Path) -> None:
    words = [sys.executable, "-c", SLEEPER, str(Path(__file__).parents[2]), str(tmp_path), tier]
    program = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    path = Path(program.stdout.readline().strip())
    try:
        assert path != Path(room.path)
        assert wait_for(lambda: any((group / "cgroup.procs").read_text() for group in path.glob("skillkit-*")), 60)
    finally:
        program.send_signal(signal.SIGKILL)
        program.communicate()
    assert wait_for(lambda: not path.exists(), 60)


def test_doctor_says_which_way_is_taken() -> None:
    from skillkit.cli.doctor import tiers as tiers_found

    for tier in tiers_found():
        if tier.works:
            said = dict(tier.layers)
            assert said["group"] == tiers.run_groups().what
            assert ("in all" in said["limits"]) == (not said["group"].startswith("none: "))
