"""The macOS profile and command line, and the tiers that change no command, as text and values."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.run.sandbox.base import Confined, Reach, UnconfinedSandbox
from skillkit.core.run.sandbox.other_systems import SeatbeltSandbox, WindowsSandbox, profile_for
from skillkit.core.values.runs import Isolation

WALLS = Reach(skill="/Users/me/w/s/x", snapshot="/state/snap", work="/private/work", interpreter=("/opt/py",))


def rules(walls: Reach) -> list[str]:
    """The profile's rules with their parameters filled in."""
    profile, parameters = profile_for(walls)
    return re.sub(r'\(param "(\w+)"\)', lambda match: parameters[match[1]], profile).splitlines()


def test_everything_is_denied_first() -> None:
    assert rules(WALLS)[:2] == ["(version 1)", "(deny default)"]


def test_only_the_work_folder_is_writable() -> None:
    writing = [rule for rule in rules(WALLS) if "file-write*" in rule]
    assert writing == [
        "(deny file-write* (subpath /Users/me/w/s/x) (subpath /state/snap))",
        "(allow file-write* (subpath /private/work))",
    ]


def test_the_protected_and_the_folders_above_them_stay() -> None:
    walls = replace(WALLS, workspace="/Users/me/w", protected=("/Users/me/w/.git",))
    assert [rule for rule in rules(walls) if "file-write*" in rule or "unlink" in rule] == [
        "(allow file-write* (subpath /Users/me/w))",
        "(deny file-write* (subpath /Users/me/w/s/x) (subpath /state/snap) (subpath /Users/me/w/.git))",
        "(deny file-write-unlink (literal /Users/me/w) (literal /Users/me/w/s))",
        "(allow file-write* (subpath /private/work))",
    ]


def test_reading_is_the_system_and_what_was_granted() -> None:
    (reading,) = [rule for rule in rules(replace(WALLS, readable=("/data",))) if rule.startswith("(allow file-read*")]
    assert "(subpath /usr)" in reading
    assert "(subpath /opt/py)" in reading
    assert "(subpath /data)" in reading
    assert "/Users/me)" not in reading


def test_no_network_unless_granted() -> None:
    assert "network" not in profile_for(WALLS)[0]
    assert "(allow network-outbound (remote ip))" in profile_for(replace(WALLS, network=True))[0]


def test_no_path_becomes_part_of_the_profiles_text() -> None:
    nasty = '/data/") (allow default) ("'
    got = SeatbeltSandbox().confine(("/bin/sh", "x"), "/Users/me/w/s/x", {}, replace(WALLS, readable=(nasty,)))
    profile = got.argv[got.argv.index("-p") + 1]
    assert "allow default" not in profile
    assert any(word.endswith(f"={nasty}") for word in got.argv)
    assert got.argv[0] == "/usr/bin/sandbox-exec"
    assert got.argv[-2:] == ("/bin/sh", "x")
    assert (got.cwd, got.environment) == ("/Users/me/w/s/x", {"HOME": "/private/work", "TMPDIR": "/private/work"})
    assert (got.isolation.tier, got.isolation.kill) == ("seatbelt", "best-effort")


def test_without_walls_the_command_stays_as_it_is() -> None:
    got = UnconfinedSandbox().confine(("/bin/sh",), "/x", {"A": "b"}, WALLS)
    assert got == Confined(("/bin/sh",), "/x", {"A": "b"}, (), Isolation())


@pytest.mark.parametrize(
    ("walls", "missing"),
    [
        (WALLS, ("files", "network")),
        (replace(WALLS, network=True), ("files",)),
        (replace(WALLS, filesystem=True), ("network",)),
    ],
)
def test_windows_refuses_limits_it_cannot_keep(walls: Reach, missing: tuple[str, ...]) -> None:
    with pytest.raises(SandboxUnavailableError, match=r"ends the whole process tree.*WSL2") as caught:
        WindowsSandbox().confine(("python",), "C:\\", {}, walls)
    assert caught.value.missing == missing


def test_windows_runs_what_has_no_limits() -> None:
    got = WindowsSandbox().confine(("python",), "C:\\", {}, replace(WALLS, network=True, filesystem=True))
    assert (got.argv, got.isolation.tier) == (("python",), "job")
