"""Control groups: where one may be made, what is written to it, who is in it, and that none is left."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from support.running import made_manager

from skillkit import STANDARD, Limits, SandboxUnavailableError
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.base import Confined
from skillkit.core.run.sandbox.group import Groups, Room, find_room, settings_for
from skillkit.core.values.runs import Isolation

WALLS = replace(STANDARD, sandbox="required", limits=Limits(data_megabytes=64))
TRUE = Confined(("/bin/true",), "/", {}, (), Isolation(tier="bubblewrap", limits=("a limit",)))
# More than a process may have, shared, so that no limit of a process counts it.
SHARED_MAPS = "import mmap\nkept = [mmap.mmap(-1, 50 << 20) for _ in range(8)]\n"
SHARED_MAPS += "for each in kept:\n    each.write(b'x' * (50 << 20))\nprint('had 400 MB')\n"


def laid_out(folder: Path, *, controllers: str = "cpu memory pids") -> str:
    """As the kernel shows it, in plain files; gives the line of the mount."""
    for name in ("", "app.slice", "app.slice/terminal.scope"):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "cgroup.subtree_control").write_text(controllers + "\n")
        (folder / name / "cgroup.procs").touch()
    return f"cgroup2 {folder} cgroup2 rw,nosuid 0 0\n"


def test_a_run_gets_a_group_beside_the_one_that_this_program_is_in(tmp_path: Path) -> None:
    mounts = "proc /proc proc rw 0 0\n" + laid_out(tmp_path)
    found = find_room("1:name=systemd:/x\n0::/app.slice/terminal.scope\n", mounts, is_allowed=lambda _: True)
    assert found == Room(f"{tmp_path}/app.slice")
    assert find_room("0::/\n", mounts, is_allowed=lambda _: True) == Room(str(tmp_path))


@pytest.mark.parametrize("own", ["", "4:memory:/x\n", "0::/../outside\n", "0::/gone/away\n"])
def test_there_is_none_where_the_system_names_no_place(tmp_path: Path, own: str) -> None:
    assert find_room(own, laid_out(tmp_path), is_allowed=lambda _: True) is None
    assert find_room("0::/app.slice/x\n", "tmpfs /tmp tmpfs rw 0 0\n", is_allowed=lambda _: True) is None


def test_there_is_none_where_memory_is_not_counted_or_this_user_may_not_write(tmp_path: Path) -> None:
    own, mounts = "0::/app.slice/terminal.scope\n", laid_out(tmp_path, controllers="hugetlb pids")
    assert find_room(own, mounts, is_allowed=lambda _: True) is None
    laid_out(tmp_path)
    assert find_room(own, mounts, is_allowed=lambda path: not path.endswith("cgroup.procs")) is None
    assert find_room(own, mounts, is_allowed=lambda path: path.endswith("cgroup.procs")) is None


def test_all_processes_together_have_as_much_as_four_at_their_limit() -> None:
    limits = Limits(data_megabytes=100, temporary_megabytes=10, processes=20)
    assert settings_for(limits) == {
        "memory.max": str(410 << 20),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": "28",
    }


def test_without_a_group_nothing_changes() -> None:
    with Groups(None).around(TRUE, Limits()) as inside:
        assert inside is TRUE


def test_a_group_that_cannot_be_made_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    """In a plain folder there is no file to write a limit to."""
    groups = Groups(Room(str(tmp_path)))
    with pytest.raises(SandboxUnavailableError, match="No control group could be made"), groups.around(TRUE, Limits()):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def room() -> Room:
    """A real one, whatever it counts."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        if line.split()[2] == "cgroup2" and os.access(line.split()[1], os.W_OK):
            return Room(line.split()[1])
    pytest.skip("no control groups that this user may write")


def some_setting(_: Limits) -> dict[str, str]:
    return {"cgroup.max.depth": "7"}


def test_the_command_and_its_children_are_in_the_group_and_it_is_gone_afterwards(room: Room) -> None:
    script = "cat /proc/self/cgroup; (setsid cat /proc/self/cgroup)"
    command = TRUE._replace(argv=("/bin/sh", "-c", script))
    with Groups(room, some_setting).around(command, Limits()) as inside:
        (path,) = [Path(word).parent for word in inside.argv if word.endswith("/cgroup.procs")]
        assert (path / "cgroup.max.depth").read_text() == "7\n"
        said = subprocess.run(inside.argv, capture_output=True, text=True, check=True).stdout
        assert said.count(f"/{path.name}\n") == 2
    assert inside.isolation.limits == ("a limit", "4160 MB memory and 64 processes in all")
    assert not path.exists()


def test_a_group_that_cannot_be_entered_starts_nothing(room: Room, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with Groups(room, some_setting).around(TRUE._replace(argv=("/bin/touch", str(mark))), Limits()) as inside:
        (path,) = [Path(word).parent for word in inside.argv if word.endswith("/cgroup.procs")]
        path.rmdir()
        ended = subprocess.run(inside.argv, capture_output=True, text=True, check=False)
    assert ended.returncode == 125
    assert "skillkit-walls: group:" in ended.stderr
    assert not mark.exists()


def test_what_a_killed_program_left_is_removed_and_what_another_uses_is_not(room: Room) -> None:
    over = subprocess.Popen(["/bin/true"])
    over.wait()
    stale, used = Path(room.path, f"skillkit-{over.pid}-a"), Path(room.path, f"skillkit-{os.getpid()}-b")
    for path in (stale, used):
        path.mkdir()
    try:
        with Groups(room, some_setting).around(TRUE, Limits()):
            assert not stale.exists()
            assert used.exists()
    finally:
        used.rmdir()


def test_shared_maps_are_counted(tier: str, tmp_path: Path) -> None:
    if not tiers.run_groups().are_there:
        pytest.skip(f"no group that counts memory: {tiers.run_groups().what}")
    with made_manager(tmp_path, {"scripts/run.py": SHARED_MAPS}, policy=WALLS) as manager:
        result = manager.execute_skill_script("demo", "run")
    assert "had" not in result.stdout, tier


def test_where_no_group_can_be_had_the_report_says_that_shared_memory_is_not_counted(
    tier: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above: without a group the same script gets its memory."""
    monkeypatch.setattr(tiers, "run_groups", lambda: Groups(None))
    with made_manager(tmp_path, {"scripts/run.py": SHARED_MAPS}, policy=WALLS) as manager:
        result = manager.execute_skill_script("demo", "run")
    assert "had" in result.stdout, tier
    assert any("shared memory not counted" in limit for limit in result.isolation.limits)
    assert not any("in all" in limit for limit in result.isolation.limits)
