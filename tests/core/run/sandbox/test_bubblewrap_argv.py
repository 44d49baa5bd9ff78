"""Walls -> the exact command line of bubblewrap, on a machine that is written down here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillkit.core.paths import Judged
from skillkit.core.run.sandbox import seccomp
from skillkit.core.run.sandbox.base import Confined, Reach
from skillkit.core.run.sandbox.bubblewrap import BubblewrapSandbox
from skillkit.core.run.sandbox.machine import Machine, Mount, mounts_for
from skillkit.core.values.policy import Limits
from skillkit.core.values.runs import Isolation

MACHINE = Machine(
    system=(("/usr", ""), ("/bin", "/usr/bin"), ("/lib64", "/usr/lib64")),
    settings=(("/etc/alternatives", ""), ("/etc/localtime", "/usr/share/zoneinfo/UTC")),
    network_settings=("/etc/resolv.conf",),
    personal=(("/data", ""), ("/home", "/var/home"), ("/var/home", "")),
    uid=1001,
    gid=1002,
)
SANDBOX = BubblewrapSandbox(
    "/usr/bin/bwrap",
    "/usr/bin/prlimit",
    MACHINE,
    has_socket_in=lambda folders: "/w/sockets" in folders,
)
WALLS = Reach(skill="/s/skill", snapshot="/state/snap", work="/t/work", interpreter=("/opt/py",))


def confined(walls: Reach = WALLS, sandbox: BubblewrapSandbox = SANDBOX) -> Confined:
    return sandbox.confine(("/opt/py/bin/python3", "x.py"), "/s/skill", {"HOME": "/home/me", "A": "b"}, walls)


def test_the_whole_command_line() -> None:
    expected = """
/usr/bin/bwrap --unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --cap-drop ALL
--uid 1001 --gid 1002 --disable-userns --unshare-net
--ro-bind /usr /usr --symlink /usr/bin /bin --symlink /usr/lib64 /lib64
--ro-bind /etc/alternatives /etc/alternatives --symlink /usr/share/zoneinfo/UTC /etc/localtime
--file {1} /etc/passwd --file {2} /etc/group --file {3} /etc/hosts --file {4} /etc/nsswitch.conf --proc /proc --remount-ro /proc --dev /dev
--perms 1777 --size 67108864 --tmpfs /dev/shm --perms 1777 --size 67108864 --tmpfs /tmp --perms 0700 --dir /tmp/home
--ro-bind /opt/py /opt/py --ro-bind /state/snap /s/skill --bind /t/work /t/work
--remount-ro /dev --remount-ro / --chdir /s/skill --seccomp {0} --
/usr/bin/prlimit --data=1073741824 --fsize=104857600 --nproc=64 --nofile=256 --cpu=35 --core=0 --
/opt/py/bin/python3 x.py
"""
    words = [word.replace("{", "{descriptor ") for word in expected.split()]
    assert confined() == Confined(
        argv=tuple(words),
        cwd="/",
        environment={"HOME": "/tmp/home", "TMPDIR": "/tmp", "A": "b"},
        contents=(
            seccomp.program(network=False, unix_sockets=True, loopback=True),
            b"skill:x:1001:1002:skill:/tmp/home:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
            b"skill:x:1002:\nnogroup:x:65534:\n",
            b"127.0.0.1 localhost\n::1 localhost\n",
            b"passwd: files\ngroup: files\nhosts: files\n",
        ),
        isolation=Isolation(
            tier="bubblewrap",
            files="mount namespace; programs of /opt/py",
            network="its own loopback (network namespace, system call filter); unix sockets inside the walls",
            processes="pid, ipc, uts and user namespaces, no capabilities, system call filter",
            kill="pid namespace",
            status="128+N read as signal N for crashes",
            limits=(
                "1024 MB data a process, shared memory not counted",
                "100 MB a file",
                "64 processes",
                "256 open files a process",
                "64 MB temporary files, any number of them",
                "35 s processor time a process",
            ),
        ),
        refusals=((1, "bwrap: "), (125, "skillkit-walls: ")),
    )


def test_a_network_brings_its_settings_and_takes_unix_sockets() -> None:
    got = confined(replace(WALLS, network=True))
    assert "--unshare-net" not in got.argv
    assert "--ro-bind-try /etc/resolv.conf /etc/resolv.conf" in " ".join(got.argv)
    assert got.contents[0] == seccomp.program(network=True, unix_sockets=False, loopback=True)
    assert got.isolation.network == "the host's, without unix sockets"


def test_on_the_hosts_network_unix_sockets_need_the_scoper() -> None:
    scoping = replace(SANDBOX, scoper=("/usr/bin/python3", "/scoper.py"))
    got = confined(replace(WALLS, network=True), scoping)
    assert got.argv[:3] == ("/usr/bin/python3", "/scoper.py", "/usr/bin/bwrap")
    assert got.contents[0] == seccomp.program(network=True, unix_sockets=True, loopback=True)
    with_workspace = confined(replace(WALLS, network=True, workspace="/w"), scoping)
    assert with_workspace.argv[0] == "/usr/bin/bwrap"
    assert with_workspace.contents[0] == seccomp.program(network=True, unix_sockets=False, loopback=True)
    assert confined(WALLS, scoping).argv[0] == "/usr/bin/bwrap"


def test_a_home_that_stays_is_mounted_where_nothing_else_is() -> None:
    got = confined(replace(WALLS, home="/state/homes/x/1"))
    assert "--bind /state/homes/x/1 /home/skill" in " ".join(got.argv)
    assert got.environment["HOME"] == "/home/skill"
    assert b":/home/skill:" in got.contents[1]
    assert got.environment["GIT_CONFIG_GLOBAL"] == "/tmp/.gitconfig"
    elsewhere = confined(replace(WALLS, home="/state/homes/x/1", workspace="/home/skill/project"))
    assert elsewhere.environment["HOME"] == "/tmp/home"


@pytest.mark.parametrize(
    "opened", [{"workspace": "/w"}, {"readable": ("/w",)}, {"writable": ("/w",)}, {"interpreter": ("/w/sockets",)}]
)
def test_a_folder_of_the_users_takes_unix_sockets_and_so_does_an_interpreter_beside_one(opened: dict[str, Any]) -> None:
    got = confined(replace(WALLS, **opened))
    assert got.contents[0] == seccomp.program(network=False, unix_sockets=False, loopback=True)
    assert got.isolation.network == "its own loopback (network namespace, system call filter), without unix sockets"


def test_the_users_files_come_with_their_links_and_their_home() -> None:
    got = confined(replace(WALLS, filesystem=True))
    line = " ".join(got.argv)
    assert "--symlink /var/home /home" in line
    assert "--bind /data /data --ro-bind /opt/py /opt/py --bind /var/home /var/home" in line
    assert got.environment == {"HOME": "/home/me", "TMPDIR": "/tmp", "A": "b"}
    assert got.contents[0] == seccomp.program(network=False, unix_sockets=False, loopback=True)


def test_a_run_tied_to_its_thread_has_a_session_of_its_own() -> None:
    argv = confined(sandbox=replace(SANDBOX, dies_with_thread=True)).argv
    assert argv[8:10] == ("--die-with-parent", "--new-session")


def test_a_limit_is_never_above_what_the_caller_may_have() -> None:
    sandbox = replace(SANDBOX, machine=replace(MACHINE, hard_limits={"nofile": 128, "data": 1 << 40}))
    argv = confined(replace(WALLS, limits=Limits(open_files=500), timeout=1.2), sandbox).argv
    assert {"--nofile=128", "--data=1073741824", "--cpu=7"} <= set(argv)


def test_root_is_told_what_does_not_hold() -> None:
    got = confined(sandbox=replace(SANDBOX, machine=replace(MACHINE, is_root=True)))
    assert got.isolation.degraded == (
        "the limit of processes does not hold for root",
        "root could change the modes of /dev/null, zero, full, random, urandom and tty",
    )
    assert "64 processes" not in got.isolation.limits


def read(path: str) -> Mount:
    return Mount(path, path, writable=False)


def write(path: str) -> Mount:
    return Mount(path, path, writable=True)


SKILL, WORK = Mount("/state/snap", "/s/skill", writable=False), write("/t/work")
BASE = replace(WALLS, interpreter=())


@pytest.mark.parametrize(
    ("walls", "expected"),
    [
        pytest.param(BASE, [SKILL, WORK], id="nothing granted"),
        pytest.param(replace(BASE, snapshot=None), [read("/s/skill"), WORK], id="the folder itself"),
        pytest.param(
            replace(BASE, readable=("/usr/share/x", "/a", "/a/b"), writable=("/a/c",)),
            [read("/a"), write("/a/c"), SKILL, WORK],
            id="what is there already is not mounted again",
        ),
        pytest.param(
            replace(BASE, readable=("/a/b",), writable=("/a",)),
            [write("/a"), SKILL, WORK],
            id="writable covers readable",
        ),
        pytest.param(
            replace(BASE, readable=("/a",), writable=("/a",)), [write("/a"), SKILL, WORK], id="the same path twice"
        ),
        pytest.param(
            replace(BASE, workspace="/w", protected=("/w/.git", "/w/a/b/c", "/elsewhere")),
            [write("/w"), read("/w/.git"), write("/w/a"), write("/w/a/b"), read("/w/a/b/c"), SKILL, WORK],
            id="folders above a protected one are pinned",
        ),
        pytest.param(
            replace(BASE, skill="/w/skills/x", workspace="/w"),
            [write("/w"), write("/w/skills"), Mount("/state/snap", "/w/skills/x", writable=False), WORK],
            id="a skill in the workspace",
        ),
        pytest.param(
            replace(BASE, workspace="/p/w", protected=("/p",)), [read("/p/w"), SKILL, WORK], id="a protected workspace"
        ),
        pytest.param(
            replace(BASE, skill="/w", workspace="/w"),
            [read("/w"), Mount("/state/snap", "/w", writable=False), WORK],
            id="the workspace is the skill",
        ),
        pytest.param(
            replace(BASE, readable=("/proc/1", "/dev", "/sys/x", "/dev/shm/f")),
            [read("/dev/shm/f"), SKILL, WORK],
            id="never the host's processes and devices",
        ),
        pytest.param(replace(BASE, readable=("/",)), [read("/data"), SKILL, WORK], id="never the whole tree"),
        pytest.param(
            replace(BASE, filesystem=True, skill="/data/me/skills/x"),
            [
                write("/data"),
                write("/data/me"),
                write("/data/me/skills"),
                Mount("/state/snap", "/data/me/skills/x", writable=False),
                WORK,
            ],
            id="the user's files",
        ),
    ],
)
def test_the_order_of_mounts(walls: Reach, expected: list[Mount]) -> None:
    machine = replace(MACHINE, system=(("/usr", ""),), personal=(("/data", ""),))
    assert [mount for group in mounts_for(walls, machine) for mount in group] == expected


def test_what_is_hidden_is_covered_as_soon_as_it_is_there(tmp_path: Path) -> None:
    """The plan of a run is kept for the next one, and yet what exists is looked up each time."""
    state = tmp_path / "state"
    walls = replace(BASE, workspace=str(tmp_path), protected=(str(state),), hidden=(str(state),))
    cover = Mount("", str(state), writable=False)
    assert cover not in mounts_for(walls, MACHINE).covers
    state.mkdir()
    assert cover in mounts_for(walls, MACHINE).covers
    state.rmdir()
    assert cover not in mounts_for(walls, MACHINE).covers


GUARDED = replace(WALLS, workspace="/w", protected=("/w/.git", "/w/CLAUDE.md"), identities={"/w/.git": (1, 2)})
MOUNTER = replace(SANDBOX, mounter=("/usr/bin/python3", "/mounter.py"))


def test_few_guarded_places_are_mounted_by_bwrap() -> None:
    words = " ".join(confined(GUARDED, MOUNTER).argv)
    assert words.startswith("/usr/bin/bwrap ")
    assert " --ro-bind /w/.git /w/.git --ro-bind /w/CLAUDE.md /w/CLAUDE.md" in words


def test_a_link_is_guarded_by_the_mounter_alone() -> None:
    walls = replace(GUARDED, links=("/w/CLAUDE.md",))
    got = confined(walls, MOUNTER)
    assert got.argv[:7] == ("/usr/bin/python3", "/mounter.py", "{descriptor 5}", "8", "9", "--", "/usr/bin/bwrap")
    assert "/w/.git" not in got.argv
    assert got.contents[5] == b"1 2 r /w/.git\x00-1 -1 r /w/CLAUDE.md\x00"
    assert got.isolation.degraded == ()


def test_without_the_mounter_a_link_is_said_to_be_unguarded() -> None:
    got = confined(replace(GUARDED, links=("/w/CLAUDE.md",)))
    assert "/w/CLAUDE.md" not in got.argv
    assert "/w/.git" in got.argv
    assert got.isolation.degraded == ("/w/CLAUDE.md is a link and could be replaced",)


def test_many_guarded_places_are_left_to_the_mounter() -> None:
    walls = replace(WALLS, workspace="/w", protected=tuple(f"/w/{n}/.git" for n in range(100)))
    got = confined(walls, MOUNTER)
    assert got.contents[5].count(b"\0") == 200
    assert got.contents[5].startswith(b"-1 -1 w /w/0\x00-1 -1 r /w/0/.git\x00")


def test_the_script_waits_until_the_mounter_is_done_and_stops_without_its_word() -> None:
    words = confined(replace(GUARDED, links=("/w/CLAUDE.md",)), MOUNTER).argv
    at = words.index("/bin/sh")
    assert words[at + 3 : at + 5] == ("skillkit-walls", "/usr/bin/prlimit")
    assert '[ "$go" = go ]' in words[at + 2]
    assert "|| exit 125" in words[at + 2]


def test_what_is_mounted_by_name_is_compared_by_the_mounter_too() -> None:
    walls = replace(GUARDED, links=("/w/CLAUDE.md",), identities={"/w": (7, 8)})
    assert confined(walls, MOUNTER).contents[5].startswith(b"7 8 c /w\x00-1 -1 r /w/.git\x00")


def test_the_mounter_leaves_out_what_the_skill_covers_and_keeps_the_work_folder_writable() -> None:
    protected = ("/w/.claude", "/w/skills/demo/.git", "/w/CLAUDE.md")
    walls = replace(
        WALLS,
        workspace="/w",
        skill="/w/skills/demo",
        work="/w/.claude/work",
        protected=protected,
        links=("/w/CLAUDE.md",),
    )
    lines = confined(walls, MOUNTER).contents[5].split(b"\0")[:-1]
    assert lines == [b"-1 -1 r /w/.claude", b"-1 -1 r /w/CLAUDE.md", b"-1 -1 w /w/skills", b"-1 -1 w /w/.claude/work"]


def test_what_is_mounted_by_name_is_looked_at_before_the_script_starts() -> None:
    words = confined(replace(GUARDED, identities={"/w": (7, 8), "/w/.git": (1, 2)})).argv
    at = words.index("/bin/sh")
    assert words[at + 3 : at + 8] == ("skillkit-walls", "/usr/bin/stat", "7:8\n1:2", "/w", "/w/.git")
    assert words[at + 8] == "/usr/bin/prlimit"
    assert "/w" not in words[at + 2].replace("skillkit-walls", "")


def test_what_was_judged_is_mounted_by_descriptor_where_bwrap_can() -> None:
    walls = replace(GUARDED, identities={"/w": (7, 8), "/w/.git": (1, 2)})
    got = confined(walls, replace(SANDBOX, has_bind_fd=True))
    assert got.places == (Judged("/w", 7, 8), Judged("/w/.git", 1, 2))
    words = " ".join(got.argv)
    assert " --bind-fd {descriptor 5} /w " in words
    assert " --ro-bind-fd {descriptor 6} /w/.git --ro-bind /w/CLAUDE.md /w/CLAUDE.md" in words
    assert "/bin/sh" not in got.argv, "nothing that was judged is left to compare"


def test_what_is_beyond_the_number_of_descriptors_is_compared() -> None:
    paths = tuple(f"/r{number}" for number in range(60))
    walls = replace(WALLS, readable=paths, identities=dict.fromkeys(paths, (1, 2)))
    got = confined(walls, replace(SANDBOX, has_bind_fd=True))
    assert len(got.places) == 40
    at = got.argv.index("/bin/sh")
    assert [word for word in got.argv[at:] if word.startswith("/r")] == sorted(paths)[40:]
