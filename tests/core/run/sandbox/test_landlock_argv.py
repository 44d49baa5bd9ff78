"""The Landlock tier as a pure function: command and walls in, keeper's command line and instructions out."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.run.sandbox import landlock, seccomp
from skillkit.core.run.sandbox.base import Confined, Reach
from skillkit.core.values.policy import Limits
from skillkit.core.values.runs import Isolation

WALLS = Reach(skill="/s/skill", snapshot=None, work="/w", interpreter=("/opt/py",))
READ = 0b1101


def confined(walls: Reach = WALLS, *, version: int = 7, is_root: bool = False, **environment: str) -> Confined:
    sandbox = landlock.LandlockSandbox("/usr/bin/python3", version=version, is_root=is_root)
    return sandbox.confine(("/bin/bash", "x.sh", "--", "{descriptor 9}"), "/s/skill", environment, walls)


def instructions(walls: Reach = WALLS, *, version: int = 7) -> Any:
    return json.loads(confined(walls, version=version).contents[0])


def grants(walls: Reach, *, version: int = 7) -> dict[str, list[tuple[int, tuple[str, ...]]]]:
    found: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
    for each in instructions(walls, version=version)["grants"]:
        found.setdefault(each["path"], []).append((each["rights"], tuple(each["spared"])))
    return found


def test_the_command_line_runs_the_keeper_without_skillkit() -> None:
    made = confined(LANG="C", HOME="/home/me", TMPDIR="/tmp")
    assert made.argv == (
        *("/usr/bin/python3", "-I", "-S", "-X", "utf8", "-c", landlock.START, landlock.PARTS),
        *("{descriptor 0}", "{descriptor 1}", "--"),
        *("/bin/bash", "x.sh", "--", "{descriptor 9}"),
    )
    assert made.cwd == "/s/skill"
    assert made.environment == {"GIT_CONFIG_NOSYSTEM": "1", "LANG": "C", "HOME": "/w/.home", "TMPDIR": "/w/.tmp"}


def test_confining_twice_gives_the_same() -> None:
    assert confined() == confined()


@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("version", [1, 2, 3, 7])
def test_the_filter_has_no_unix_sockets_and_guards_what_the_version_lacks(version: int, *, network: bool) -> None:
    assert confined(replace(WALLS, network=network), version=version).contents[1] == seccomp.program(
        network=network, unix_sockets=False, fake_metadata=True, guard_truncate=version < 3
    )


@pytest.mark.parametrize(
    ("version", "ruleset", "writable"),
    [
        pytest.param(1, [0x1FFF], 0x17BF, id="1"),
        pytest.param(2, [0x3FFF], 0x37BF, id="2"),
        pytest.param(3, [0x7FFF], 0x77BF, id="3"),
        pytest.param(4, [0x7FFF, 3], 0x77BF, id="4"),
        pytest.param(5, [0xFFFF, 3], 0x77BF, id="5"),
        pytest.param(6, [0xFFFF, 3, 3], 0x77BF, id="6"),
        pytest.param(7, [0xFFFF, 3, 3], 0x77BF, id="7"),
        pytest.param(12, [0xFFFF, 3, 3], 0x77BF, id="one of the future"),
    ],
)
def test_the_ruleset_has_the_size_and_the_rights_of_its_version(
    version: int, ruleset: list[int], writable: int
) -> None:
    assert instructions(version=version)["ruleset"] == ruleset
    assert grants(WALLS, version=version)["/w"] == [(writable, ())]


def test_with_network_no_port_is_handled() -> None:
    assert instructions(replace(WALLS, network=True))["ruleset"] == [0xFFFF, 0, 3]


def test_only_what_the_walls_name_is_granted() -> None:
    found = grants(WALLS)
    system = {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/proc"}
    devices = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
    others = {path for path in found if not path.startswith("/etc/")}
    assert others == system | devices | {"/opt/py", "/s/skill", "/w"}
    assert all(rights == READ for path in others - devices - {"/w"} for rights, _ in found[path])
    assert "/etc/resolv.conf" not in found
    assert not {"/etc/shadow", "/etc/sudoers", "/etc"} & found.keys()


def test_the_snapshot_is_granted_instead_of_the_folder() -> None:
    found = grants(replace(WALLS, snapshot="/state/snapshot"))
    assert found["/state/snapshot"] == [(READ, ())]
    assert "/s/skill" not in found


def test_a_workspace_is_granted_around_what_is_protected() -> None:
    walls = replace(WALLS, workspace="/p", protected=("/p/.git", "/p/skillkit.toml", "/elsewhere/.git"))
    assert grants(walls)["/p"] == [(READ, ()), (0x77BF, ("/p/.git", "/p/skillkit.toml"))]


def test_a_workspace_that_holds_the_skill_is_granted_around_it() -> None:
    assert grants(replace(WALLS, workspace="/s"))["/s"] == [(READ, ()), (0x77BF, ("/s/skill",))]


@pytest.mark.parametrize("path", ["/s/skill", "/s/skill/data", "/p/.git/hooks"])
def test_what_is_protected_stays_read_only_even_when_named_writable(path: str) -> None:
    walls = replace(WALLS, writable=(path,), protected=("/p/.git",))
    assert 0x77BF not in [rights for rights, _ in grants(walls)[path]]


def test_a_name_that_only_begins_alike_is_not_protected() -> None:
    assert grants(replace(WALLS, writable=("/s/skill-data",)))["/s/skill-data"] == [(READ, ()), (0x77BF, ())]


def test_the_users_files_are_granted_around_the_system_the_skill_and_what_is_protected() -> None:
    made = confined(replace(WALLS, filesystem=True, protected=("/home/me/state",)), HOME="/home/me")
    found = {each["rights"]: each["spared"] for each in json.loads(made.contents[0])["grants"] if each["path"] == "/"}
    assert found == {
        READ: list(landlock.NOT_THE_USERS),
        0x77BF: [*landlock.NOT_THE_USERS, "/s/skill", "/home/me/state"],
    }
    assert {"/run", "/dev", "/sys", "/etc", "/proc", "/var"} <= set(landlock.NOT_THE_USERS)
    assert made.environment["HOME"] == "/home/me"


def test_limits_become_numbers_of_the_kernel() -> None:
    limits = Limits(data_megabytes=2, file_megabytes=3, processes=5, open_files=7)
    made = instructions(replace(WALLS, limits=limits, timeout=1.5))
    assert made["limits"] == {
        "RLIMIT_DATA": [2 << 20, 2 << 20],
        "RLIMIT_FSIZE": [3 << 20, 3 << 20],
        "RLIMIT_NOFILE": [7, 7],
        "RLIMIT_CORE": [0, 0],
        "RLIMIT_CPU": [7, 8],
    }
    assert made["processes"] == 5


def test_paths_that_are_no_text_survive_the_instructions() -> None:
    walls = replace(WALLS, work="/w/\udcff\u20ac")
    assert grants(walls)["/w/\udcff\u20ac"] == [(0x77BF, ())]


def test_the_report_names_every_layer_and_what_is_missing() -> None:
    assert confined().isolation == Isolation(
        tier="landlock",
        files="landlock ABI 7; programs of /opt/py",
        network="seccomp + landlock tcp",
        processes="landlock scope",
        kill="subreaper",
        limits=(
            "data 1024 MB a process, shared memory not counted",
            "file 100 MB",
            "open files 256",
            "cpu 35 s",
            "core 0",
            "processes 64 beside the user's others",
        ),
        degraded=(*landlock.VISIBLE, landlock.NO_LOOPBACK),
    )


def test_the_report_of_an_old_kernel_names_what_it_lacks() -> None:
    isolation = confined(version=1).isolation
    assert (isolation.network, isolation.processes) == ("seccomp", "session")
    assert isolation.degraded == (
        *(*landlock.VISIBLE, *landlock.BEFORE_ABI.values()),
        landlock.NO_LOOPBACK,
    )
    assert confined(version=5).isolation.degraded == (
        *(*landlock.VISIBLE, landlock.BEFORE_ABI[6]),
        landlock.NO_LOOPBACK,
    )


def test_the_report_says_that_roots_processes_are_not_counted() -> None:
    isolation = confined(is_root=True).isolation
    assert landlock.ROOT_PROCESSES in isolation.degraded
    assert not any(limit.startswith("processes") for limit in isolation.limits)


def test_the_report_says_that_the_workspace_is_granted_entry_by_entry() -> None:
    walls = replace(WALLS, workspace="/p", protected=("/p/.git",))
    assert landlock.ENTRY_BY_ENTRY in confined(walls).isolation.degraded
    assert landlock.ENTRY_BY_ENTRY not in confined(replace(WALLS, workspace="/p")).isolation.degraded


def test_without_landlock_nothing_is_confined() -> None:
    with pytest.raises(SandboxUnavailableError, match=r"no Landlock.*Linux 5\.13"):
        confined(version=0)


def test_asking_for_the_version_never_raises() -> None:
    assert landlock.abi() >= 0


def test_folders_out_of_reach_are_no_place_to_look_for_programs() -> None:
    path = "/home/me/.pyenv/shims:/opt/tool/bin:/usr/local/bin:/data/bin:/usr/bin:/bin:/usrlocal"
    walls = replace(WALLS, interpreter=("/opt/tool",), readable=("/data",))
    sandbox = landlock.LandlockSandbox("/usr/bin/python3", version=7, is_root=False)
    found = sandbox.confine(("/bin/true",), "/", {"PATH": path}, walls).environment["PATH"]
    assert found == "/opt/tool/bin:/usr/local/bin:/data/bin:/usr/bin:/bin"
    everything = sandbox.confine(("/bin/true",), "/", {"PATH": path}, replace(walls, filesystem=True))
    assert everything.environment["PATH"] == path
