"""Walls -> a bubblewrap command line: own namespaces, a minimal read-only root, limits, a system call filter."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from skillkit.core.paths import Judged, is_inside
from skillkit.core.run.sandbox import seccomp
from skillkit.core.run.sandbox.base import Confined, Walls, descriptor
from skillkit.core.run.sandbox.machine import Machine, has_socket_in
from skillkit.core.run.sandbox.mounts import Mount, Mounts, mounts_for
from skillkit.core.runs import READ_FROM_CODE, Isolation

__all__ = ["MOUNTER", "BubblewrapSandbox"]

MOUNTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mounter.py")
READY, GO = 8, 9  # its descriptors; single digits, a plain shell takes no others
MOST_PLACES = 40  # that are mounted by descriptor; the others by name, and then compared
FEW_GUARDS = 12  # as many mounts bwrap makes sooner than the mounter starts

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


def _as_option(mount: Mount) -> list[str]:
    if not mount.source:
        return ["--tmpfs", mount.target, "--remount-ro", mount.target]
    return ["--bind" if mount.writable else "--ro-bind", mount.source, mount.target]


def _as_option_by_descriptor(mount: Mount, number: int) -> list[str]:
    return ["--bind-fd" if mount.writable else "--ro-bind-fd", descriptor(number), mount.target]


def _as_place(path: str, kind: str, identities: Mapping[str, tuple[int, int]]) -> bytes:
    """One line for the mounter; -1 where being no link is all that counts."""
    device, inode = identities.get(path, (-1, -1))
    return b"%d %d %s %s\0" % (device, inode, kind.encode(), os.fsencode(path))


def _identities(mounts: Iterable[Mount], walls: Walls) -> dict[str, tuple[int, int]]:
    """What must stand inside at each of these places, as far as it was judged."""
    return {each.target: walls.identities[each.source] for each in mounts if each.source in walls.identities}


def _for_mounter(folders: Mounts, walls: Walls) -> bytes:
    """What it guards, and what it only compares: the walls take those by name."""
    covers = [each.target for each in folders.covers if each.target == walls.work or not each.writable]
    guards = [each for each in folders.guards if not any(is_inside(each.target, cover) for cover in covers)]
    lines = [_as_place(each.target, "w" if each.writable else "r", walls.identities) for each in guards]
    if any(is_inside(walls.work, each.target) and not each.writable for each in guards):
        lines.append(_as_place(walls.work, "w", {}))
    by_name = _identities((*folders.grants, *folders.covers), walls)
    return b"".join((*(_as_place(path, "c", by_name) for path in by_name), *lines))


def _wait_for_mounter() -> list[str]:
    """Words that tell the mounter that the walls stand, wait until it has guarded all, and go on to what follows."""
    text = (
        f"echo >&{READY}; exec {READY}>&-; "
        f'{{ read -r go <&{GO} && [ "$go" = go ] && ! read -r go <&{GO}; }} || exit 125; exec {GO}<&-; exec "$@"'
    )
    return ["/bin/sh", "-c", text, "skillkit-walls"]


def _compare(program: str, identities: Mapping[str, tuple[int, int]]) -> list[str]:
    """Words that look, inside the walls, whether each path is what was judged, and go on to the words that follow.

    Walls are put up by name, and a script that runs meanwhile may have put something else there. Once they stand
    nobody can. The text is the same for every path: what was judged and the paths come as words of their own.
    """
    if not identities:
        return []
    count = len(identities)
    paths = " ".join(f'"${{{number}}}"' for number in range(3, 3 + count))
    text = (
        f'[ "$("$1" -c %d:%i -- {paths} 2>&1)" = "$2" ] || {{ '
        "echo 'skillkit-walls: identity: a folder was replaced while the walls were put up' >&2; exit 125; }; "
        f'shift {2 + count}; exec "$@"'
    )
    judged = "\n".join(f"{device}:{inode}" for device, inode in identities.values())
    return ["/bin/sh", "-c", text, "skillkit-walls", program, judged, *identities]


@dataclass(frozen=True, slots=True)
class BubblewrapSandbox:
    """Walls of Linux namespaces. `confine` looks only at which sockets there are."""

    program: str
    prlimit: str
    machine: Machine
    stat: str = "/usr/bin/stat"
    mounter: tuple[str, ...] = ()
    """The words that start the mounter; empty where it does not work."""
    has_disable_userns: bool = True
    has_bind_fd: bool = False
    """Whether it takes what it mounts by descriptor, too."""
    dies_with_thread: bool = False
    """Whether the kernel ends a run with the thread that started it: also when the whole program is killed."""
    has_socket_in: Callable[[tuple[str, ...]], bool] = has_socket_in
    tier: str = "bubblewrap"

    def confine(self, argv: tuple[str, ...], cwd: str, environment: Mapping[str, str], walls: Walls) -> Confined:
        folders = self.mounts(walls)
        unix_sockets = not (walls.network or walls.opens_folders or self.has_socket_in(walls.interpreter))
        contents: tuple[bytes, ...] = (
            seccomp.program(network=walls.network, unix_sockets=unix_sockets),
            *self._accounts(),
        )
        private = {"TMPDIR": TEMPORARY} if walls.filesystem else {"TMPDIR": TEMPORARY, "HOME": HOME}
        lifetime = WITH_THREAD if self.dies_with_thread else ()
        prefix: tuple[str, ...] = ()
        guards = tuple(mount for mount in folders.guards if mount.target not in walls.links)
        mounts: list[str] = []
        places: list[Judged] = []
        if self.needs_mounter(walls) and self.mounter:
            prefix = (*self.mounter, descriptor(len(contents)), str(READY), str(GO), "--")
            contents = (*contents, _for_mounter(folders, walls))
            guards, before = (), _wait_for_mounter()
            for mount in (*folders.grants, *folders.covers):
                mounts += _as_option(mount)
        else:
            by_name = []
            for mount in (*folders.grants, *guards, *folders.covers):
                if self.has_bind_fd and mount.source in walls.identities and len(places) < MOST_PLACES:
                    mounts += _as_option_by_descriptor(mount, len(contents) + len(places))
                    places.append(Judged(mount.source, *walls.identities[mount.source]))
                else:
                    mounts += _as_option(mount)
                    by_name.append(mount)
            before = _compare(self.stat, _identities(by_name, walls))
        options = [*NAMESPACES, *lifetime, *self._identity(walls), *self._root(walls), *mounts]
        # Without these two a script could fill the host's memory through file systems nobody limits.
        options += ["--remount-ro", "/dev", "--remount-ro", "/"]
        options += ["--chdir", cwd, "--seccomp", descriptor(0), "--"]
        return Confined(
            argv=(*prefix, self.program, *options, *before, *self._limits(walls), *argv),
            cwd="/",
            environment={**environment, **private},
            contents=contents,
            isolation=self._isolation(walls, unix_sockets=unix_sockets),
            places=tuple(places),
        )

    def mounts(self, walls: Walls) -> Mounts:
        """What stands inside, beside the system."""
        return mounts_for(
            walls,
            system=tuple(path for path, target in self.machine.system if not target),
            personal=tuple(path for path, target in self.machine.personal if not target),
        )

    def needs_mounter(self, walls: Walls) -> bool:
        """Whether bwrap alone could not guard all, or would take too long for it."""
        return bool(walls.links) or len(self.mounts(walls).guards) > FEW_GUARDS

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

    def _isolation(self, walls: Walls, *, unix_sockets: bool) -> Isolation:
        limits = walls.limits
        unguarded = () if self.mounter else (f"{path} is a link and could be replaced" for path in walls.links)
        processes = () if self.machine.is_root else (f"{limits.processes} processes",)
        return Isolation(
            tier=self.tier,
            files="the user's files (mount namespace)" if walls.filesystem else "mount namespace",
            network=("the host's" if walls.network else "none (network namespace, system call filter)")
            + ("; unix sockets inside the walls" if unix_sockets else ", without unix sockets"),
            processes="pid, ipc, uts and user namespaces, no capabilities, system call filter",
            kill="pid namespace",
            status=READ_FROM_CODE,
            limits=(
                f"{limits.data_megabytes} MB data a process, shared memory not counted",
                f"{limits.file_megabytes} MB a file",
                *processes,
                f"{limits.open_files} open files a process",
                f"{limits.temporary_megabytes} MB temporary files, any number of them",
                f"{math.ceil(walls.timeout) + SPARE_CPU_SECONDS} s processor time a process",
            ),
            degraded=(*(ROOT_NOTES if self.machine.is_root else ()), *unguarded, *walls.notes),
        )
