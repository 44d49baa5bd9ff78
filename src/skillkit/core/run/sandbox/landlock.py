"""What a run may reach -> the keeper's command line and instructions, for the Landlock of this kernel."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.paths import is_inside
from skillkit.core.run.sandbox import seccomp
from skillkit.core.run.sandbox.base import PRIVATE_FOLDERS, Confined, Reach, Sandbox, descriptor, home_variables
from skillkit.core.run.sandbox.machine import SYSTEM
from skillkit.core.values.runs import Isolation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.run.sandbox.layers import Grant, Instructions

__all__ = ["LandlockSandbox", "abi"]

PARTS = os.path.abspath(__file__).rsplit(os.sep, 2)[0]
# Loaded like this, its parts are compiled once, not for each run, and bring nothing else of skillkit along.
START = "import sys; sys.path.append(sys.argv.pop(1)); from sandbox.keeper import main; main()"
REFUSALS = ((125, "skillkit-walls: "),)

# From linux/landlock.h.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
READ = EXECUTE | READ_FILE | READ_DIR
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
BIND_TCP, CONNECT_TCP = 1, 2
ABSTRACT_SOCKETS, SIGNALS = 1, 2
ALL_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
TRUNCATE_ABI, TCP_ABI, IOCTL_ABI, SCOPES_ABI = 3, 4, 5, 6

READABLE = (*SYSTEM, "/proc")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
ETC = """
ld.so.cache ld.so.conf ld.so.conf.d hosts nsswitch.conf passwd group localtime timezone ssl ca-certificates pki
alternatives mime.types os-release services protocols host.conf gai.conf locale.alias fonts magic terminfo inputrc
python3 python3.11 python3.12 python3.13 python3.14 perl ruby
""".split()
# Beside the system's folders, what is at the root and does not belong to the user.
NOT_THE_USERS = (*READABLE, "/sys", "/dev", "/run", "/boot", "/etc", "/var")

VISIBLE = (
    "command lines of other processes are visible",
    "names, sizes, times and link targets of files outside are visible",
    "changes of mode, owner, times and attributes are answered but not done; extended attributes are not shown",
    "no watching of files (inotify)",
    "no shared memory: locks and pools of multiprocessing fail",
    "temporary files are limited one by one, not in total",
)
NO_LOOPBACK = "loopback is closed too: nobody reaches a server that the script starts"
ENTRY_BY_ENTRY = "folders with protected entries are granted entry by entry: nothing new can be made directly in them"
ROOT_PROCESSES = "the number of processes is not limited for root"
BEFORE_ABI = {
    2: "files cannot be moved or linked from one folder to another",
    TRUNCATE_ABI: "files can be emptied only when they are open for writing",
    IOCTL_ABI: "requests to devices are not limited",
    SCOPES_ABI: "other processes of the user can be signalled",
}


@cache
def abi() -> int:
    """The version of Landlock that this kernel offers and allows; 0: none."""
    if sys.platform != "linux":
        return 0
    try:
        import ctypes

        # Asked directly: the kernel's list of security modules is missing on some systems that have it.
        answer = ctypes.CDLL(None).syscall(ctypes.c_long(444), None, ctypes.c_long(0), ctypes.c_long(1))
        return max(0, int(answer))
    except (ImportError, OSError, AttributeError):
        return 0


@dataclass(frozen=True, slots=True)
class LandlockSandbox(Sandbox):
    """Walls without namespaces: a program (`keeper.py`) puts them around itself and becomes the script."""

    tier = "landlock"
    guards_single_files = False

    python: str
    version: int = field(default_factory=abi)
    is_root: bool = field(default_factory=lambda: sys.platform == "linux" and os.geteuid() == 0)

    def confine(self, argv: tuple[str, ...], cwd: str, environment: Mapping[str, str], reach: Reach) -> Confined:
        if self.version < 1:
            remedy = "Use Linux 5.13 or later with Landlock enabled."
            raise SandboxUnavailableError.because("This kernel has no Landlock", remedy, missing=(self.tier,))
        is_old = self.version < TRUNCATE_ABI
        program = seccomp.program(network=reach.network, unix_sockets=False, fake_metadata=True, guard_truncate=is_old)
        home, temporary, programs = (os.path.join(reach.work, name) for name in PRIVATE_FOLDERS)
        folders = [temporary, *([] if reach.home else [home]), *([programs] if reach.programs else [])]
        own = {"TMPDIR": temporary} if reach.filesystem else {"TMPDIR": temporary, "HOME": reach.home or home}
        if "PATH" in environment and not reach.filesystem:
            own["PATH"] = _reachable(environment["PATH"], reach)
        if reach.programs or reach.searched_first:
            own["PATH"] = reach.search_path(programs, own.get("PATH") or environment.get("PATH") or os.defpath)
        keeper = (self.python, "-I", "-S", "-X", "utf8", "-c", START, PARTS, descriptor(0), descriptor(1), "--")
        return Confined(
            argv=(*keeper, *argv),
            cwd=cwd,
            # git gives up on a configuration that it sees and may not read.
            environment={
                "GIT_CONFIG_NOSYSTEM": "1",
                **(home_variables(temporary) if reach.home else {}),
                **environment,
                **own,
            },
            contents=(
                json.dumps(self._instructions(reach, folders)).encode(),
                program,
            ),
            isolation=self._isolation(reach),
            refusals=REFUSALS,
        )

    def _instructions(self, reach: Reach, folders: list[str]) -> Instructions:
        limits = {f"RLIMIT_{name.upper()}": [size, size] for name, size in reach.process_limits.items()}
        del limits["RLIMIT_NPROC"]  # counted from what the user has at the time
        limits["RLIMIT_CPU"][1] += 1  # the signal that a program can take comes first
        return {
            "folders": folders,
            "links": {os.path.join(folders[-1], name): target for name, target in reach.programs.items()},
            "limits": limits,
            "processes": reach.limits.processes,
            "ruleset": self._ruleset(reach),
            "file_rights": FILE_RIGHTS,
            "grants": list(self._grants(reach)),
        }

    def _ruleset(self, reach: Reach) -> list[int]:
        """What is handled: files, TCP and scopes, as many of them as this version knows."""
        if self.version < TCP_ABI:
            return [self._all_rights]
        network = [0 if reach.network else BIND_TCP | CONNECT_TCP]
        scopes = [ABSTRACT_SOCKETS | SIGNALS] if self.version >= SCOPES_ABI else []
        return [self._all_rights, *network, *scopes]

    @property
    def _all_rights(self) -> int:
        return ALL_RIGHTS[min(self.version, max(ALL_RIGHTS))]

    @property
    def _write(self) -> int:
        return self._all_rights & ~(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV)

    def _grants(self, reach: Reach) -> Iterator[Grant]:
        etc = (*ETC, "resolv.conf") if reach.network else ETC
        for path in (*READABLE, *(f"/etc/{name}" for name in etc)):
            yield _grant(path, READ, is_optional=True)
        for path in DEVICES:
            yield _grant(path, self._all_rights & FILE_RIGHTS & ~EXECUTE, is_optional=True)
        for path in (*reach.interpreter, *reach.readable):
            yield from _reading(path, reach, is_optional=True)
        for path in reach.environments:
            yield _grant(path, READ, reach=reach)
        yield _grant(reach.snapshot or reach.skill, READ, reach=reach)
        if reach.end_of_search:
            yield _grant(reach.end_of_search, READ)
        for path in (reach.work, *([reach.home] if reach.home else [])):
            yield _grant(path, self._write, reach=reach)
        if reach.filesystem:
            yield from _reading("/", reach, spared=NOT_THE_USERS)
            yield _grant("/", self._write, spared=(*NOT_THE_USERS, *_read_only(reach)))
        for path in _shared(reach):
            is_optional = path != reach.workspace
            yield from _reading(path, reach, is_optional=is_optional)
            if not any(is_inside(path, each) for each in _read_only(reach)):
                spared = tuple(each for each in _read_only(reach) if is_inside(each, path))
                yield _grant(path, self._write, spared=spared, is_optional=is_optional, reach=reach)

    def _isolation(self, reach: Reach) -> Isolation:
        limits = reach.limits
        enforced = [
            f"data {limits.data_megabytes} MB a process, shared memory not counted",
            f"file {limits.file_megabytes} MB",
            f"open files {limits.open_files}",
            f"cpu {reach.process_limits['cpu']} s",
            "core 0",
        ]
        degraded = [*VISIBLE, *(lack for needed, lack in BEFORE_ABI.items() if self.version < needed)]
        if reach.filesystem or any(is_inside(each, path) for each in _read_only(reach) for path in _shared(reach)):
            degraded.append(ENTRY_BY_ENTRY)
        degraded += [*([] if reach.network else [NO_LOOPBACK]), *reach.notes]
        if self.is_root:
            degraded.append(ROOT_PROCESSES)
        else:
            enforced.append(f"processes {limits.processes} beside the user's others")
        closed = "seccomp + landlock tcp" if self.version >= TCP_ABI else "seccomp"
        return Isolation(
            tier=self.tier,
            files=f"landlock ABI {self.version}{reach.own_programs}",
            network="open, no unix sockets" if reach.network else closed,
            processes="landlock scope" if self.version >= SCOPES_ABI else "session",
            kill="subreaper",
            limits=tuple(enforced),
            degraded=tuple(degraded),
        )


def _grant(
    path: str, rights: int, *, spared: tuple[str, ...] = (), is_optional: bool = False, reach: Reach | None = None
) -> Grant:
    """`reach` says which thing that path has to be."""
    identity = reach.identities.get(path) if reach else None
    return {
        "path": path,
        "rights": rights,
        "spared": list(spared),
        "is_optional": is_optional,
        "identity": list(identity) if identity else None,
    }


def _reading(path: str, reach: Reach, *, spared: tuple[str, ...] = (), is_optional: bool = False) -> Iterator[Grant]:
    """Around what is hidden below, entry by entry; the folders can be listed all the same."""
    hidden = tuple(each for each in (*reach.hidden, *reach.masked) if is_inside(each, path))
    if hidden:
        yield _grant(path, READ_DIR, spared=spared, is_optional=is_optional, reach=reach)
    yield _grant(path, READ, spared=(*spared, *hidden), is_optional=is_optional, reach=reach)


def _shared(reach: Reach) -> tuple[str, ...]:
    """Folders and files of the user that a script may change."""
    return (*((reach.workspace,) if reach.workspace else ()), *reach.writable)


def _read_only(reach: Reach) -> tuple[str, ...]:
    """Never writable, wherever it is; also what does not exist yet, so that it cannot be made."""
    return (reach.skill, *((reach.snapshot,) if reach.snapshot else ()), *reach.protected)


def _reachable(path: str, reach: Reach) -> str:
    """The search path without folders out of reach: a shell gives up at a program that it sees and may not start."""
    own = (*reach.interpreter, *reach.environments)
    within = (*READABLE, *own, *reach.readable, reach.snapshot or reach.skill, *_shared(reach))
    kept = [entry for entry in path.split(os.pathsep) if any(is_inside(entry, each) for each in within)]
    return os.pathsep.join(kept) or os.defpath
