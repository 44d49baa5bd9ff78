"""What a run may reach -> a bubblewrap command line: own namespaces, a minimal root, limits, a system call filter.

Theory of operation. Bubblewrap (`bwrap`) starts the command in namespaces of its own: other processes, the network and
the host's files are not there. What is there it mounts, in the order of its options, a later mount over an earlier one:

1. the system, read-only, with a few settings and a list of accounts that names nobody, own /proc, /dev and /tmp;
2. what was granted: the interpreter, readable and writable paths, the workspace (`Mounts.grants`);
3. on itself, read-only, what is guarded in a writable folder (`Mounts.guards`);
4. the skill as it was hashed, nothing in the place of what is hidden, and the work folder (`Mounts.covers`).

Then /dev and / become read-only, and the filter is set. Between these walls and the script stand a shell and `prlimit`,
which becomes the script. Paths are judged before a run (device and inode), and a script of another run may put
something else in their place meanwhile. So what was judged is handed over as a descriptor where bwrap takes one, and
else compared inside, where nobody can change it any more: by the shell, or by the mounter (`mounter.py`), which does
the third step where there are links or many places to guard.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from skillkit.core.paths import Judged, is_inside
from skillkit.core.run.sandbox import seccomp
from skillkit.core.run.sandbox.base import MEGABYTE, WAY_OUT, Confined, Reach, Sandbox, descriptor, home_variables
from skillkit.core.run.sandbox.machine import NEW_HOME, Machine, Mount, Mounts, has_socket_in, home_inside, mounts_for
from skillkit.core.run.sandbox.network import CERTIFICATES, network_variables
from skillkit.core.values.runs import READ_FROM_CODE, Isolation

__all__ = ["MOUNTER", "SCOPER", "BubblewrapSandbox", "closing_words", "mounter_lines", "option_for"]

MOUNTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mounter.py")
SCOPER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scoper.py")
READY, GO = 8, 9  # its descriptors; single digits, a plain shell takes no others
MOST_PLACES = 40  # that are mounted by descriptor; the others by name, and then compared
FEW_GUARDS = 12  # as many mounts bwrap makes sooner than the mounter starts

TEMPORARY = "/tmp"  # noqa: S108 - as above
PROGRAMS = "/run/skillkit/bin"  # the caller's interpreters by the names that scripts call
NAMESPACES = "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --cap-drop ALL".split()
# Without them bwrap's first process inside stays in the group that the runner kills, which is its only end.
WITH_THREAD = ("--die-with-parent", "--new-session")
# Without these two a script could fill the host's memory through file systems nobody limits.
CLOSED = ("--remount-ro", "/dev", "--remount-ro", "/")
# Root owns the host's devices; bwrap cannot make a device read-only and leave it usable.
ROOT_NOTES = (
    "the limit of processes does not hold for root",
    "root could change the modes of /dev/null, zero, full, random, urandom and tty",
)
REFUSALS = ((1, "bwrap: "), (125, "skillkit-walls: "))
# On its own network a run knows one name; whoever asks for others is told at once that there are none.
OWN_NAMES = {
    "/etc/hosts": b"127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files\n",
}
UNMAPPED_ID = 65534  # what the kernel shows for ids that do not exist inside
# Tell the mounter that the walls stand, wait until it has guarded all, and go on to the words that follow.
_WAIT = (
    f"echo >&{READY}; exec {READY}>&-; "
    f'{{ read -r go <&{GO} && [ "$go" = go ] && ! read -r go <&{GO}; }} || exit 125; exec {GO}<&-; exec "$@"'
)
WAIT_FOR_MOUNTER = ("/bin/sh", "-c", _WAIT, "skillkit-walls")


@dataclass(frozen=True, slots=True)
class BubblewrapSandbox(Sandbox):
    """Walls of Linux namespaces. `confine` looks only at which sockets there are."""

    tier = "bubblewrap"
    shows_snapshot = opens_hosts = True

    program: str
    prlimit: str
    machine: Machine
    stat: str = "/usr/bin/stat"
    mounter: tuple[str, ...] = ()
    """The words that start the mounter; empty where it does not work."""
    scoper: tuple[str, ...] = ()
    """The words that start the scoper; empty where it does not work."""
    has_disable_userns: bool = True
    has_bind_fd: bool = False
    """Whether it takes what it mounts by descriptor, too."""
    dies_with_thread: bool = False
    """Whether the kernel ends a run with the thread that started it: also when the whole program is killed."""
    has_socket_in: Callable[[tuple[str, ...]], bool] = has_socket_in

    def confine(self, argv: tuple[str, ...], cwd: str, environment: Mapping[str, str], reach: Reach) -> Confined:
        mounts = mounts_for(reach, self.machine)
        unix_sockets = self.may_have_unix_sockets(reach) and not (reach.network and not self.scoper)
        program = seccomp.program(network=reach.network, unix_sockets=unix_sockets, loopback=True)
        own_files = self.own_files(reach)
        contents: tuple[bytes, ...] = (program, *own_files.values())
        start: tuple[str, ...] = self.scoper if unix_sockets and reach.network else ()
        places: list[Judged] = []
        if self.mounter and _is_crowded(mounts, reach):
            start = (*self.mounter, descriptor(len(contents)), str(READY), str(GO), "--")
            contents = (*contents, mounter_lines(mounts, reach))
            options = [word for mount in (*mounts.grants, *mounts.covers) for word in option_for(mount)]
            before = list(WAIT_FOR_MOUNTER)
        else:
            options, before = self._mount(mounts, reach, len(contents), places)
        at = len(contents) + len(places)
        way_out = [word for number, option in enumerate(WAY_OUT, at) for word in (option, descriptor(number))]
        return Confined(
            argv=(
                *(
                    *start,
                    self.program,
                    *(way_out if reach.hosts else ()),
                    *NAMESPACES,
                    *(WITH_THREAD if self.dies_with_thread else ()),
                ),
                *(*self.identity_words(reach), *self.root_words(reach, own_files), *options, *closing_words(mounts)),
                *(*CLOSED, "--chdir", cwd, "--seccomp", descriptor(0), "--", *before, *self.limit_words(reach), *argv),
            ),
            cwd="/",
            environment=self.inner_environment(environment, reach),
            contents=contents,
            isolation=self._isolation(reach, unix_sockets=unix_sockets),
            places=tuple(places),
            refusals=REFUSALS,
        )

    def may_have_unix_sockets(self, reach: Reach) -> bool:
        """Where only private folders are in sight, nobody outside has one that a file stands for."""
        return not (reach.opens_folders or self.has_socket_in(reach.interpreter))

    def needs_scoper(self, reach: Reach) -> bool:
        """Whether sockets without a file have to be kept apart from the host's, whose network it uses."""
        return reach.network and bool(self.scoper) and self.may_have_unix_sockets(reach)

    def inner_environment(self, environment: Mapping[str, str], reach: Reach) -> dict[str, str]:
        own = {"TMPDIR": TEMPORARY} if reach.filesystem else {"TMPDIR": TEMPORARY, "HOME": home_inside(reach)}
        if reach.programs or reach.searched_first:
            own["PATH"] = reach.search_path(PROGRAMS, environment.get("PATH") or os.defpath)
        told = network_variables(has_certificates=bool(reach.certificates)) if reach.hosts else {}
        return {**(home_variables(TEMPORARY) if reach.home else {}), **environment, **told, **own}

    def needs_mounter(self, reach: Reach) -> bool:
        """Whether bwrap alone could not guard all, or would take too long for it."""
        return _is_crowded(mounts_for(reach, self.machine), reach)

    def _mount(self, mounts: Mounts, reach: Reach, first: int, places: list[Judged]) -> tuple[list[str], list[str]]:
        """Options for bwrap, and words that compare what it takes by name; `places` get what it takes by descriptor."""
        guards = (mount for mount in mounts.guards if mount.target not in reach.links)
        options: list[str] = []
        by_name = []
        for mount in (*mounts.grants, *guards, *mounts.covers):
            if self.has_bind_fd and mount.source in reach.identities and len(places) < MOST_PLACES:
                kind = "--bind-fd" if mount.writable else "--ro-bind-fd"
                options += (kind, descriptor(first + len(places)), mount.target)
                places.append(Judged(mount.source, *reach.identities[mount.source]))
            else:
                options += option_for(mount)
                by_name.append(mount)
        return options, _compare(self.stat, _identities(by_name, reach))

    def identity_words(self, reach: Reach) -> list[str]:
        options = ["--uid", str(self.machine.uid), "--gid", str(self.machine.gid)]
        options += ["--disable-userns"] if self.has_disable_userns else []
        return options if reach.network else [*options, "--unshare-net"]

    def root_words(self, reach: Reach, own_files: Iterable[str]) -> list[str]:
        """Everything that is not the user's: system, settings, accounts, devices, processes, temporary files."""
        size = ["--size", str(reach.limits.temporary_megabytes * MEGABYTE), "--tmpfs"]
        options: list[str] = []
        links = self.machine.personal if reach.filesystem else ()
        for path, target in (*self.machine.system, *self.machine.settings, *(each for each in links if each[1])):
            options += ["--symlink", target, path] if target else ["--ro-bind", path, path]
        for path in self.machine.network_settings if reach.network else ():
            options += ["--ro-bind-try", path, path]
        for name, target in reach.programs.items():
            options += ["--symlink", target, f"{PROGRAMS}/{name}"]
        for number, path in enumerate(own_files, 1):
            options += ["--file", descriptor(number), path]
        # Root could otherwise write the kernel's settings: bwrap covers them only for others.
        options += ["--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev"]
        options += ["--perms", "1777", *size, "/dev/shm", "--perms", "1777", *size, TEMPORARY]  # noqa: S108 - inside
        return options if reach.home else [*options, "--perms", "0700", "--dir", NEW_HOME]

    def own_files(self, reach: Reach) -> dict[str, bytes]:
        """Settings that are not the host's: accounts of nobody there, and on its own network the one name it has."""
        uid, gid = self.machine.uid, self.machine.gid
        user = f"skill:x:{uid}:{gid}:skill:{home_inside(reach)}:/bin/sh\n"
        nobody = "nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n" if uid != UNMAPPED_ID else ""
        nogroup = "nogroup:x:65534:\n" if gid != UNMAPPED_ID else ""
        files = {"/etc/passwd": (user + nobody).encode(), "/etc/group": (f"skill:x:{gid}:\n" + nogroup).encode()}
        files |= {} if reach.network else OWN_NAMES
        return files | ({CERTIFICATES: reach.certificates} if reach.certificates else {})

    def limit_words(self, reach: Reach) -> list[str]:
        hard = self.machine.hard_limits
        wanted = reach.process_limits.items()
        return [self.prlimit, *(f"--{name}={min(value, hard.get(name, value))}" for name, value in wanted), "--"]

    def _isolation(self, reach: Reach, *, unix_sockets: bool) -> Isolation:
        limits = reach.limits
        unguarded = () if self.mounter else (f"{path} is a link and could be replaced" for path in reach.links)
        processes = () if self.machine.is_root else (f"{limits.processes} processes",)
        return Isolation(
            tier=self.tier,
            files=("the user's files (mount namespace)" if reach.filesystem else "mount namespace")
            + reach.own_programs,
            network=_network(reach) + ("; unix sockets inside the walls" if unix_sockets else ", without unix sockets"),
            processes="pid, ipc, uts and user namespaces, no capabilities, system call filter",
            kill="pid namespace",
            status=READ_FROM_CODE,
            limits=(
                f"{limits.data_megabytes} MB data a process, shared memory not counted",
                f"{limits.file_megabytes} MB a file",
                *processes,
                f"{limits.open_files} open files a process",
                f"{limits.temporary_megabytes} MB temporary files, any number of them",
                f"{reach.process_limits['cpu']} s processor time a process",
            ),
            degraded=(*(ROOT_NOTES if self.machine.is_root else ()), *unguarded, *reach.notes),
        )


def _network(reach: Reach) -> str:
    if reach.network:
        return "the host's"
    if reach.hosts:
        return f"{', '.join(reach.hosts)} through a proxy (network namespace)"
    return "its own loopback (network namespace, system call filter)"


def _is_crowded(mounts: Mounts, reach: Reach) -> bool:
    return bool(reach.links) or len(mounts.guards) > FEW_GUARDS


def option_for(mount: Mount) -> list[str]:
    if not mount.source:
        return ["--tmpfs", mount.target]
    return ["--bind" if mount.writable else "--ro-bind", mount.source, mount.target]


def closing_words(mounts: Mounts) -> list[str]:
    """What covers others is closed at the end: until then, what is shown all the same can be mounted in it."""
    return [word for mount in mounts.covers if not mount.source for word in ("--remount-ro", mount.target)]


def _identities(mounts: Iterable[Mount], reach: Reach) -> dict[str, tuple[int, int]]:
    """What must stand inside at each of these places, as far as it was judged."""
    return {each.target: reach.identities[each.source] for each in mounts if each.source in reach.identities}


def mounter_lines(mounts: Mounts, reach: Reach) -> bytes:
    """What it guards, and what it only compares: the walls take those by name. -1 stands for anything but a link."""

    def line(path: str, kind: str, identities: Mapping[str, tuple[int, int]]) -> bytes:
        device, inode = identities.get(path, (-1, -1))
        return b"%d %d %s %s\0" % (device, inode, kind.encode(), os.fsencode(path))

    covers = [each.target for each in mounts.covers if each.target == reach.work or not each.writable]
    guards = [each for each in mounts.guards if not any(is_inside(each.target, cover) for cover in covers)]
    by_name = _identities((*mounts.grants, *mounts.covers), reach)
    lines = [line(path, "c", by_name) for path in by_name]
    lines += [line(each.target, "w" if each.writable else "r", reach.identities) for each in guards]
    if any(is_inside(reach.work, each.target) and not each.writable for each in guards):
        lines.append(line(reach.work, "w", {}))
    return b"".join(lines)


def _compare(program: str, identities: Mapping[str, tuple[int, int]]) -> list[str]:
    """Words that look, inside the walls, whether each path is what was judged, and go on to the words that follow.

    The text is the same for every path: what was judged and the paths come as words of their own.
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
