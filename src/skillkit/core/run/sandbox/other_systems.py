"""The walls of macOS (a sandbox-exec profile) and of Windows (a job object); never run there by these tests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.paths import is_inside
from skillkit.core.run.sandbox.base import Confined, Reach, Sandbox, home_variables
from skillkit.core.values.runs import Isolation

__all__ = ["SeatbeltSandbox", "WindowsSandbox"]

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
WINDOWS_REMEDY = (
    "Run skillkit in WSL2, or allow both (allow_filesystem and allow_network), or use sandbox='off' to run with "
    "the caller's own rights."
)


@dataclass(frozen=True, slots=True)
class SeatbeltSandbox(Sandbox):
    """Walls of the macOS kernel: files and network; no limits, and no own process tree."""

    tier = "seatbelt"

    program: str = "/usr/bin/sandbox-exec"

    def confine(self, argv: tuple[str, ...], cwd: str, environment: Mapping[str, str], reach: Reach) -> Confined:
        profile, parameters = profile_for(reach)
        given = [word for name, value in parameters.items() for word in ("-D", f"{name}={value}")]
        home = {} if reach.filesystem else {"HOME": reach.home or reach.work}
        own = home_variables(reach.work) if reach.home else {}
        return Confined(
            argv=(self.program, *given, "-p", profile, *argv),
            cwd=cwd,
            environment={**own, **environment, "TMPDIR": reach.work, **home},
            contents=(),
            isolation=Isolation(
                tier=self.tier,
                files="the user's files (seatbelt)" if reach.filesystem else "seatbelt",
                network="the host's, without unix sockets" if reach.network else "none (seatbelt)",
                processes="signals only to its own",
                degraded=("limits", "file names and sizes outside are visible", "processes that leave the group"),
            ),
        )


def profile_for(reach: Reach) -> tuple[str, dict[str, str]]:
    """The profile and its parameters; of two rules that fit, the later one counts."""
    workspace = (reach.workspace,) if reach.workspace else ()
    personal = PERSONAL if reach.filesystem else []
    snapshot = (reach.snapshot,) if reach.snapshot else ()
    writable = [*personal, *workspace, *reach.writable]
    own = [reach.work, *([reach.home] if reach.home else [])]
    readable = [*SYSTEM, reach.skill, *snapshot, *reach.interpreter, *reach.readable, *writable, *own]
    kept = [reach.skill, *snapshot, *reach.protected]
    parameters: dict[str, str] = {}
    rules = [
        _rule("allow file-read*", "READ", readable, parameters, also='(literal "/")'),
        _rule("allow file-write*", "WRITE", writable, parameters),
        _rule("deny file-write*", "KEEP", kept, parameters),
        # Who could rename a folder above could put what is kept aside.
        _rule("deny file-write-unlink", "ABOVE", _above(kept, writable), parameters, kind="literal"),
        _rule("allow file-write*", "WORK", own, parameters),
    ]
    return OPENING + "".join(rules) + (NETWORK if reach.network else ""), parameters


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


@dataclass(frozen=True, slots=True)
class WindowsSandbox(Sandbox):
    """A job object: it ends a whole process tree, but hides no file and stops no connection."""

    tier = "job"
    limits_reach = False

    def confine(self, argv: tuple[str, ...], cwd: str, environment: Mapping[str, str], reach: Reach) -> Confined:
        """Refuse what nothing here can keep; what is left needs no change of the command."""
        limited = {"files": not reach.filesystem, "network": not reach.network}
        missing = [name for name, is_limited in limited.items() if is_limited]
        if missing:
            raise SandboxUnavailableError.because(
                f"Policy limits what a script may reach ({', '.join(missing)}); on Windows a job object ends the whole "
                "process tree and nothing here limits files or network",
                WINDOWS_REMEDY,
                missing=missing,
            )
        limits = reach.limits
        isolation = Isolation(
            tier=self.tier,
            kill="job object",
            limits=(f"{limits.data_megabytes} MB data a process", f"{limits.processes} processes"),
            degraded=("skill read-only", "size of files", "open files"),
        )
        return Confined(argv, cwd, environment, (), isolation, job_limits=limits)
