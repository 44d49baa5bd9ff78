"""Walls -> a bubblewrap command line: own namespaces, a minimal read-only root, limits, a system call filter."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from skillkit.core.run.sandbox import seccomp
from skillkit.core.run.sandbox.base import Confined, Walls, descriptor
from skillkit.core.run.sandbox.machine import Machine, has_socket_in
from skillkit.core.run.sandbox.mounts import Mount, mounts_for, refusal_to_guard
from skillkit.core.runs import READ_FROM_CODE, Isolation

__all__ = ["BubblewrapSandbox"]

HOME = "/tmp/home"  # noqa: S108 - a folder inside the walls, on a file system of their own
TEMPORARY = "/tmp"  # noqa: S108 - as above
NAMESPACES = "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --cap-drop ALL".split()
# Without them bwrap's first process inside stays in the group that the runner kills, which is its only end.
WITH_THREAD = ("--die-with-parent", "--new-session")
# Root owns the host's devices; bwrap cannot make a device read-only and leave it usable.
ROOT_NOTES = (
    "the limit of processes does not hold for root",
    "root could change the modes of /dev/null, zero, full, random, urandom and tty",
)
MEGABYTE = 1_048_576
SPARE_CPU_SECONDS = 5  # the timeout comes first
UNMAPPED_ID = 65534  # what the kernel shows for ids that do not exist inside


def as_option(mount: Mount) -> list[str]:
    if not mount.source:
        return ["--tmpfs", mount.target, "--remount-ro", mount.target]
    return ["--bind" if mount.writable else "--ro-bind", mount.source, mount.target]


@dataclass(frozen=True, slots=True)
class BubblewrapSandbox:
    """Walls of Linux namespaces. `confine` looks only at which protected paths and sockets there are."""

    program: str
    prlimit: str
    machine: Machine
    has_disable_userns: bool = True
    dies_with_thread: bool = False
    """Whether the kernel ends a run with the thread that started it: also when the whole program is killed."""
    refusal_to_guard: Callable[[str], str] = refusal_to_guard
    has_socket_in: Callable[[tuple[str, ...]], bool] = has_socket_in
    tier: str = "bubblewrap"

    def confine(self, argv: tuple[str, ...], cwd: str, environment: Mapping[str, str], walls: Walls) -> Confined:
        folders = mounts_for(
            walls,
            system=tuple(path for path, target in self.machine.system if not target),
            personal=tuple(path for path, target in self.machine.personal if not target),
            refusal=self.refusal_to_guard,
        )
        granted = tuple(mount.target for mount in folders.mounts[:-1])
        unix_sockets = not (walls.network or walls.filesystem or self.has_socket_in(granted))
        contents = (seccomp.program(network=walls.network, unix_sockets=unix_sockets), *self._accounts())
        private = {"TMPDIR": TEMPORARY} if walls.filesystem else {"TMPDIR": TEMPORARY, "HOME": HOME}
        lifetime = WITH_THREAD if self.dies_with_thread else ()
        options = [*NAMESPACES, *lifetime, *self._identity(walls), *self._root(walls)]
        for mount in folders.mounts:
            options += as_option(mount)
        # Without these two a script could fill the host's memory through file systems nobody limits.
        options += ["--remount-ro", "/dev", "--remount-ro", "/"]
        options += ["--chdir", cwd, "--seccomp", descriptor(0), "--"]
        return Confined(
            argv=(self.program, *options, *self._limits(walls), *argv),
            cwd="/",
            environment={**environment, **private},
            contents=contents,
            isolation=self._isolation(walls, folders.unguarded, unix_sockets=unix_sockets),
        )

    def _identity(self, walls: Walls) -> list[str]:
        options = ["--uid", str(self.machine.uid), "--gid", str(self.machine.gid)]
        options += ["--disable-userns"] if self.has_disable_userns else []
        return options if walls.network else [*options, "--unshare-net"]

    def _root(self, walls: Walls) -> list[str]:
        """Everything that is not the user's: system, settings, accounts, devices, processes, temporary files."""
        size = ["--size", str(walls.limits.temporary_megabytes * MEGABYTE), "--tmpfs"]
        options: list[str] = []
        links = self.machine.personal if walls.filesystem else ()
        for path, target in (*self.machine.system, *self.machine.settings, *(each for each in links if each[1])):
            options += ["--symlink", target, path] if target else ["--ro-bind", path, path]
        for path in self.machine.network_settings if walls.network else ():
            options += ["--ro-bind-try", path, path]
        options += ["--file", descriptor(1), "/etc/passwd", "--file", descriptor(2), "/etc/group"]
        # Root could otherwise write the kernel's settings: bwrap covers them only for others.
        options += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
        options += ["--perms", "1777", *size, "/dev/shm", "--perms", "1777", *size, TEMPORARY]  # noqa: S108 - inside
        return [*options, "--perms", "0700", "--dir", HOME]

    def _accounts(self) -> tuple[bytes, bytes]:
        """A list of accounts that names nobody of the host."""
        uid, gid = self.machine.uid, self.machine.gid
        user = f"skill:x:{uid}:{gid}:skill:{HOME}:/bin/sh\n"
        nobody = "nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n" if uid != UNMAPPED_ID else ""
        nogroup = "nogroup:x:65534:\n" if gid != UNMAPPED_ID else ""
        return (user + nobody).encode(), (f"skill:x:{gid}:\n" + nogroup).encode()

    def _limits(self, walls: Walls) -> list[str]:
        wanted = {
            "data": walls.limits.data_megabytes * MEGABYTE,
            "fsize": walls.limits.file_megabytes * MEGABYTE,
            "nproc": walls.limits.processes,
            "nofile": walls.limits.open_files,
            "cpu": math.ceil(walls.timeout) + SPARE_CPU_SECONDS,
            "core": 0,
        }
        hard = self.machine.hard_limits
        return [
            self.prlimit,
            *(f"--{name}={min(value, hard.get(name, value))}" for name, value in wanted.items()),
            "--",
        ]

    def _isolation(self, walls: Walls, unguarded: tuple[str, ...], *, unix_sockets: bool) -> Isolation:
        limits = walls.limits
        processes = () if self.machine.is_root else (f"{limits.processes} processes",)
        without_network = "none (network namespace, system call filter)"
        return Isolation(
            tier=self.tier,
            files="the user's files (mount namespace)" if walls.filesystem else "mount namespace",
            network=("the host's, without unix sockets" if walls.network else without_network)
            + ("; unix sockets inside the walls" if unix_sockets else ""),
            processes="pid, ipc, uts and user namespaces, no capabilities, system call filter",
            kill="pid namespace",
            status=READ_FROM_CODE,
            limits=(
                f"{limits.data_megabytes} MB data a process",
                f"{limits.file_megabytes} MB a file",
                *processes,
                f"{limits.open_files} open files a process",
                f"{limits.temporary_megabytes} MB temporary files",
                f"{math.ceil(walls.timeout) + SPARE_CPU_SECONDS} s processor time a process",
            ),
            degraded=(*(ROOT_NOTES if self.machine.is_root else ()), *unguarded),
        )
