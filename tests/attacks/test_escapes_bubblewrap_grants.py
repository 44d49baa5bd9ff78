"""Attacks on what the bubblewrap walls grant: workspace, user's files, root, the snapshot, and the run's own end."""

from __future__ import annotations

import os
import pty
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.confined_runs import NOBODY, Room, bubblewrap_refusal, ended, open_folder, started, users

from skillkit.core.values.policy import Limits

pytestmark = pytest.mark.skipif(bool(bubblewrap_refusal()), reason=f"no bubblewrap here: {bubblewrap_refusal()}")
ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="an attack that only root's own walls have to stop")

BASH = ("/bin/bash", "-c")
PYTHON = "/usr/bin/python3"
WORKSPACE_ATTACKS = {
    "write_git_settings": ("echo evil >> .git/config", ".git/config"),
    "add_a_git_hook": ("mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit", ".git/hooks/pre-commit"),
    "move_git_aside": ("mv .git old; mkdir .git; echo evil > .git/config", ".git/config"),
    "replace_a_protected_file": ("echo evil > new; mv -f new skillkit.toml", "skillkit.toml"),
    "link_a_protected_file": ("ln .git/config linked && echo evil >> linked", ".git/config"),
    "move_the_folder_above_aside": (
        "mv nested old; mkdir -p nested/deep/skills; echo evil > nested/deep/skills/SKILL.md",
        "nested/deep/skills/SKILL.md",
    ),
    "exchange_the_folder_above": (
        "mkdir -p other/skills; echo evil > other/skills/SKILL.md; mv nested/deep old; mv other nested/deep",
        "nested/deep/skills/SKILL.md",
    ),
}
PROTECTED = (".git", "skillkit.toml", "nested/deep/skills")


def workspace(room: Room) -> Room:
    """A workspace with things to protect."""
    folder = room.root / "workspace"
    (folder / ".git/hooks").mkdir(parents=True)
    (folder / ".git/config").write_text("good\n")
    (folder / "skillkit.toml").write_text("good\n")
    (folder / "nested/deep/skills").mkdir(parents=True)
    (folder / "nested/deep/skills/SKILL.md").write_text("good\n")
    room.hand_over()
    return room.with_walls(workspace=str(folder), protected=tuple(str(folder / name) for name in PROTECTED))


def is_evil(path: Path) -> bool:
    return path.exists() and "evil" in path.read_text()


@pytest.mark.parametrize("name", WORKSPACE_ATTACKS)
@pytest.mark.parametrize("user", users())
def test_the_workspace_keeps_its_protected_files_against(name: str, user: int | None) -> None:
    script, target = WORKSPACE_ATTACKS[name]
    with open_folder() as folder:
        room = workspace(Room.made(folder, user=user))
        at = room.root / "workspace"
        allowed = "touch allowed nested/deep/allowed && echo in"
        _, output, _ = room.run(*BASH, f"cd {at} && {allowed}; {script}")
        assert (output, (at / "allowed").exists()) == ("in\n", True)
        assert not is_evil(at / target)


@pytest.mark.parametrize("name", WORKSPACE_ATTACKS)
def test_without_walls_the_workspace_loses_to(name: str) -> None:
    script, target = WORKSPACE_ATTACKS[name]
    with open_folder() as folder:
        room = workspace(Room.made(folder, user=users()[-1]))
        room.run_bare(*BASH, f"cd {room.root}/workspace && {script}")
        assert is_evil(room.root / "workspace" / target)


@pytest.mark.parametrize("user", users())
def test_a_socket_in_the_workspace_is_out_of_reach(user: int | None) -> None:
    with open_folder() as folder:
        room = workspace(Room.made(folder, user=user))
        path = f"{room.root}/workspace/control.sock"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            os.chmod(path, 0o777)
            server.listen()
            server.settimeout(0.3)
            connect = f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"
            status, _, errors = room.run(PYTHON, "-c", connect)
            with pytest.raises(TimeoutError):
                server.accept()
            assert (status, "Permission denied" in errors) == (1, True)
            control = replace(room, user=users()[-1])
            assert control.run_bare(PYTHON, "-c", connect)[0] == 0


@pytest.mark.parametrize("user", users())
def test_with_the_users_files_the_skill_and_the_protected_stay(user: int | None, home: Path) -> None:
    """The folder lies where users' files are, because temporary folders are never the user's."""
    room = workspace(Room.made(home, user=user)).with_walls(filesystem=True)
    (room.skill / "SKILL.md").write_text("good\n")
    script = f"""
echo mine > {room.outside}/allowed
echo evil > {room.skill}/SKILL.md
mv {room.skill} {room.root}/old; mkdir -p {room.skill}; echo evil > {room.skill}/SKILL.md
mv {room.root} {room.root}-old; mkdir -p {room.skill}; echo evil > {room.skill}/SKILL.md
echo evil >> {room.root}/workspace/.git/config
ls /run /var/lib > {room.work}/loot
"""
    status, _, errors = room.run(*BASH, script)
    assert (room.outside / "allowed").exists(), (status, errors)
    assert not is_evil(room.skill / "SKILL.md")
    assert not is_evil(room.root / "workspace/.git/config")
    assert (room.work / "loot").read_text() == ""


@pytest.mark.parametrize("user", users())
def test_with_the_users_files_no_socket_answers(user: int | None, home: Path) -> None:
    room = Room.made(home, user=user).with_walls(filesystem=True)
    path = f"{room.outside}/agent.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        os.chmod(path, 0o777)
        server.listen()
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"
        assert room.run(PYTHON, "-c", connect)[0] == 1
        assert replace(room, user=users()[-1]).run_bare(PYTHON, "-c", connect)[0] == 0


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder outside the temporary ones, removed afterwards."""
    places = ("/srv", pwd.getpwuid(os.getuid()).pw_dir, os.getcwd())
    usable = [place for place in places if os.access(place, os.W_OK) and not place.startswith(("/tmp", "/var/"))]
    if not usable:
        pytest.skip(f"no writable folder outside the temporary ones; tried {', '.join(places)}")
    folder = Path(usable[0]) / f"skillkit-room-{os.getpid()}-{time.monotonic_ns()}"
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("user", users())
def test_a_readable_path_is_not_writable(user: int | None) -> None:
    with open_folder() as folder:
        room = Room.made(folder, user=user)
        (room.outside / "data").write_text("good")
        room.hand_over()
        room = room.with_walls(readable=(str(room.outside / "data"),))
        data = room.outside / "data"
        _, output, _ = room.run(*BASH, f"cat {data}; echo evil > {data}; chmod 777 {data}; rm -f {data}")
        assert (output, data.read_text(), oct(data.stat().st_mode)) == ("good", "good", "0o100644")


@pytest.mark.parametrize("swap", ["rename", "write in place", "link"])
@pytest.mark.parametrize("user", users())
def test_a_script_swapped_after_the_check_does_not_run(swap: str, user: int | None) -> None:
    with open_folder() as folder:
        room = Room.made(folder, user=user)
        script = room.skill / "script.sh"
        script.write_text("echo approved")
        snapshot = room.root / "snapshot"
        shutil.copytree(room.skill, snapshot)
        (room.outside / "evil.sh").write_text("echo swapped")
        room.hand_over()
        confined = room.with_walls(snapshot=str(snapshot)).confined("/bin/bash", str(script))
        if swap == "rename":
            os.replace(room.outside / "evil.sh", script)
        elif swap == "link":
            script.unlink()
            script.symlink_to(room.outside / "evil.sh")
        else:
            script.write_text("echo swapped")
        assert ended(room.start(confined)) == (0, "approved\n", "")
        assert ended(started(room.bare("/bin/bash", str(script)), user=users()[-1]))[1] == "swapped\n"


ROOT_ATTACKS = {
    "read the passwords": "cat /etc/shadow > loot",
    "write the kernel's settings": "(exec 9>/proc/sys/kernel/core_pattern) && echo opened > loot",
    "reach the host's processes by sysrq": "(exec 9>/proc/sysrq-trigger) && echo opened > loot",
    "make a disk": "mknod disk b $(stat -c '0x%t 0x%T' /dev/null) && echo made > loot",
    "mount": "mount -t tmpfs none /tmp && echo mounted > loot",
    "become somebody else": f"chown {NOBODY} /tmp/home && echo changed > loot",
    "name the host": "hostname evil && echo named > loot",
    "read the kernel's memory": "head -c 1 /proc/kcore > loot",
    "read the kernel's log": "dmesg > loot",
}


@ROOT_ONLY
@pytest.mark.parametrize("name", ROOT_ATTACKS)
def test_root_inside_cannot(name: str) -> None:
    """No control: it would have to run as root."""
    with open_folder() as folder:
        room = Room.made(folder)
        room.run(*BASH, f"cd {room.work} && touch ran; {ROOT_ATTACKS[name]}")
        loot = room.work / "loot"
        assert (room.work / "ran").exists()
        assert not loot.exists() or loot.read_bytes() == b""


@ROOT_ONLY
def test_a_setuid_program_gives_no_rights() -> None:
    with open_folder() as folder:
        room = Room.made(folder, user=NOBODY)
        program = room.outside / "id"
        shutil.copy("/usr/bin/id", program)
        program.chmod(0o4755)
        assert room.run_bare(str(program), "-u")[1] == "0\n"
        assert room.with_walls(readable=(str(program),)).run(str(program), "-u")[1] == f"{NOBODY}\n"


@pytest.mark.parametrize("user", users())
def test_a_terminal_takes_no_typed_ahead_input(user: int | None) -> None:
    typing = "import fcntl; fcntl.ioctl(0, 0x5412, b'X')"
    with open_folder() as folder:
        room = Room.made(folder, user=user)
        assert "X" not in typed(room, room.confined(PYTHON, "-c", typing).argv, room)
        control = Room(room.root, room.sandbox, room.walls, users()[-1])
        if "X" not in typed(control, (PYTHON, "-c", typing), control):
            pytest.skip("this kernel lets nobody type for others")


def typed(room: Room, argv: tuple[str, ...], owner: Room) -> str:
    """What a command puts into the terminal that controls it."""
    confined = room.confined("/bin/true")
    master, slave = pty.openpty()
    if owner.user is not None:
        os.fchown(slave, owner.user, owner.user)
    prefix = ("/usr/bin/setsid", "--ctty", "--wait")
    whole = confined._replace(argv=(*prefix, *argv))
    process = started(whole, user=owner.user, stdin=slave)
    ended(process)
    os.close(slave)
    os.set_blocking(master, False)
    try:
        return os.read(master, 100).decode()
    except OSError:
        return ""
    finally:
        os.close(master)


BOMB = """
import os, time
made = 0
try:
    while made < 400:
        if os.fork() == 0: time.sleep(3); os._exit(0)
        made += 1
except OSError: pass
open('LOOT_PATH', 'w').write(str(made))
"""


def test_a_fork_bomb_stays_small() -> None:
    with open_folder() as folder:
        room = Room.made(folder, user=users()[-1])
        script = BOMB.replace("LOOT_PATH", f"{room.work}/loot")
        room.run(PYTHON, "-c", script)
        assert int((room.work / "loot").read_text()) < 64
        room.run_bare(PYTHON, "-c", script)
        assert int((room.work / "loot").read_text()) == 400


@pytest.mark.parametrize("user", users())
def test_memory_and_files_have_ends(user: int | None) -> None:
    limits = Limits(data_megabytes=256, file_megabytes=10, temporary_megabytes=8)
    with open_folder() as folder:
        room = Room.made(folder, user=user).with_walls(limits=limits)
        hog = "x = [bytearray(1 << 20) for _ in range(600)]; print('got it')"
        assert room.run(PYTHON, "-c", hog)[1] == ""
        room.run(*BASH, f"head -c 30000000 /dev/zero > {room.work}/big")
        assert (room.work / "big").stat().st_size == 10 << 20
        for place in ("/tmp", "/dev/shm", "/", "/dev", "/etc", "/tmp/home"):
            fill = f"for i in 1 2 3; do head -c 5000000 /dev/zero > {place}/fill$i; done; cat {place}/fill* | wc -c"
            assert int(room.run(*BASH, fill)[1]) <= 8 << 20
        control = replace(room, user=users()[-1])
        assert control.run_bare(PYTHON, "-c", hog)[1] == "got it\n"
        control.run_bare(*BASH, f"head -c 30000000 /dev/zero > {room.outside}/big")
        assert user is None or (room.outside / "big").stat().st_size == 30_000_000


STORM = """
import os, sys, time
def chain():
    while True:
        os.setsid()
        if os.fork(): os._exit(0)
        with open(sys.argv[1], 'a') as file: file.write('.')
        time.sleep(0.002)
for _ in range(3):
    if os.fork() == 0: chain(); os._exit(0)
os.environ.clear()
print('storming', flush=True)
time.sleep(60)
"""


def has_stopped(beats: Path) -> bool:
    before = beats.stat().st_size
    time.sleep(0.2)
    return beats.stat().st_size == before


@pytest.mark.parametrize("dies_with_thread", [False, True])
@pytest.mark.parametrize("user", users())
def test_killing_the_group_ends_a_storm(user: int | None, dies_with_thread: bool) -> None:
    with open_folder() as folder:
        room = Room.made(folder, user=user, dies_with_thread=dies_with_thread)
        beats = room.work / "beats"
        for _ in range(3):
            process = room.start(room.confined(PYTHON, "-c", STORM, str(beats)))
            assert process.stdout
            assert process.stdout.readline() == "storming\n"
            time.sleep(0.1)
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            assert has_stopped(beats)


def test_without_walls_a_storm_outlives_its_group() -> None:
    with open_folder() as folder:
        room = Room.made(folder, user=users()[-1])
        beats = room.work / "beats"
        limited = ("/usr/bin/timeout", "--signal=KILL", "--foreground", "5")
        storm = STORM.replace("while True", "for _ in range(400)")
        process = room.start(room.bare(*limited, PYTHON, "-c", storm, str(beats)))
        assert process.stdout
        assert process.stdout.readline() == "storming\n"
        time.sleep(0.1)
        os.killpg(process.pid, signal.SIGKILL)
        assert not has_stopped(beats)
        process.communicate(timeout=30)


@pytest.mark.parametrize("user", users())
def test_what_is_left_ends_with_the_script(user: int | None) -> None:
    with open_folder() as folder:
        room = Room.made(folder, user=user)
        beats = room.work / "beats"
        storm = STORM.replace("time.sleep(60)", "time.sleep(0.1)")
        status, output, _ = room.run(PYTHON, "-c", storm, str(beats))
        assert (status, output) == (0, "storming\n")
        assert has_stopped(beats)


@pytest.mark.parametrize("user", users())
def test_a_script_cannot_end_its_own_guard(user: int | None) -> None:
    """Whatever it kills of its own group, nothing of it is left when the run is over."""
    with open_folder() as folder:
        room = Room.made(folder, user=user)
        beats = room.work / "beats"
        # Only once the storm rages: before its first beat there would be nothing to look at.
        rage = "while not os.path.exists(sys.argv[1]): time.sleep(0.01)"
        script = STORM.replace("time.sleep(60)", f"{rage}\nos.kill(0, 9)")
        process = room.start(room.confined(PYTHON, "-c", script, str(beats)))
        ended(process)
        assert has_stopped(beats)


def test_attacks_leave_nothing_running() -> None:
    marker = "skillkit-room-"
    listing = subprocess.run(["/bin/ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert [line for line in listing.splitlines() if line.startswith("bwrap") and marker in line] == []
