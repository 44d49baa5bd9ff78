"""Walls -> a macOS sandbox-exec profile and command line; never run on macOS by these tests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from skillkit.core.paths import is_inside
from skillkit.core.run.sandbox.base import Confined, Walls
from skillkit.core.runs import Isolation

__all__ = ["SeatbeltSandbox"]

SYSTEM = "/usr /bin /sbin /System /Library /private/etc /private/var/db/timezone /opt/homebrew /dev".split()
PERSONAL = "/Users /Volumes".split()
# What every program needs to start; the profile's text never contains a path of the user's.
OPENING = """(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-read-metadata)
(allow file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))
"""
NETWORK = """(allow network-outbound (remote ip))
(allow network-inbound (local ip))
(allow network-bind (local ip))
(allow system-socket)
(allow mach-lookup (global-name "com.apple.dnssd.service") (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.trustd.agent") (global-name "com.apple.networkd"))
(allow network-outbound (literal "/private/var/run/mDNSResponder"))
"""


@dataclass(frozen=True, slots=True)
class SeatbeltSandbox:
    """Walls of the macOS kernel: files and network; no limits, and no own process tree."""

    program: str = "/usr/bin/sandbox-exec"
    tier: str = "seatbelt"

    def confine(self, argv: tuple[str, ...], cwd: str, environment: Mapping[str, str], walls: Walls) -> Confined:
        profile, parameters = profile_for(walls)
        given = [word for name, value in parameters.items() for word in ("-D", f"{name}={value}")]
        private = {"TMPDIR": walls.work} if walls.filesystem else {"TMPDIR": walls.work, "HOME": walls.work}
        return Confined(
            argv=(self.program, *given, "-p", profile, *argv),
            cwd=cwd,
            environment={**environment, **private},
            contents=(),
            isolation=Isolation(
                tier=self.tier,
                files="the user's files (seatbelt)" if walls.filesystem else "seatbelt",
                network="the host's, without unix sockets" if walls.network else "none (seatbelt)",
                processes="signals only to its own",
                degraded=("limits", "file names and sizes outside are visible", "processes that leave the group"),
            ),
        )


def profile_for(walls: Walls) -> tuple[str, dict[str, str]]:
    """The profile and its parameters; of two rules that fit, the later one counts."""
    workspace = (walls.workspace,) if walls.workspace else ()
    personal = PERSONAL if walls.filesystem else []
    snapshot = (walls.snapshot,) if walls.snapshot else ()
    writable = [*personal, *workspace, *walls.writable]
    readable = [*SYSTEM, walls.skill, *snapshot, *walls.interpreter, *walls.readable, *writable, walls.work]
    kept = [walls.skill, *snapshot, *walls.protected]
    parameters: dict[str, str] = {}
    rules = [
        _rule("allow file-read*", "READ", readable, parameters, also='(literal "/")'),
        _rule("allow file-write*", "WRITE", writable, parameters),
        _rule("deny file-write*", "KEEP", kept, parameters),
        # Who could rename a folder above could put what is kept aside.
        _rule("deny file-write-unlink", "ABOVE", _above(kept, writable), parameters, kind="literal"),
        _rule("allow file-write*", "WORK", [walls.work], parameters),
    ]
    return OPENING + "".join(rules) + (NETWORK if walls.network else ""), parameters


def _rule(
    action: str, name: str, paths: list[str], parameters: dict[str, str], *, kind: str = "subpath", also: str = ""
) -> str:
    names = [f"{name}_{number}" for number in range(len(paths))]
    parameters.update(zip(names, paths, strict=True))
    places = " ".join(([also] if also else []) + [f'({kind} (param "{each}"))' for each in names])
    return f"({action} {places})\n" if places else ""


def _above(kept: list[str], writable: list[str]) -> list[str]:
    """Every folder between a writable one and what is kept inside it."""
    found = set()
    for path in kept:
        folder = os.path.dirname(path)
        while folder != "/" and any(is_inside(folder, each) for each in writable):
            found.add(folder)
            folder = os.path.dirname(folder)
    return sorted(found)
