"""Limits and this machine -> a control group for each run, which counts all its processes together, if it can be had.

Theory of operation. Limits of a process do not count what processes share, and not their sum; a control group of
version 2 does both. A run's group stands beside the one that this program is in, if this user may make groups there:
a desktop's terminal, a user's service, a scope of one's own, root. Elsewhere it stands in a scope that the user's
systemd gives (`core/run/scope.py`). A shell that does nothing else puts itself into the group, or has itself put there
by systemd, and becomes the walls' own program, so that nothing of a run is ever outside.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.run.sandbox.base import Confined
from skillkit.core.values.policy import Limits

__all__ = [
    "Groups",
    "NoRoom",
    "Room",
    "find_mount",
    "find_room",
    "has_controllers",
    "own_group",
    "read_own",
    "room_here",
    "settings_for",
    "this_machines_groups",
]

PREFIX = "skillkit-"
CONTROLLERS = {"memory", "pids"}
MEGABYTE = 1_048_576
PROCESSES_AT_THEIR_LIMIT = 4  # that much memory all processes of a run have together
OWN_PROCESSES = 8  # of the walls themselves: shell, launcher, keeper
REFUSE = '{ echo "skillkit-walls: group: it cannot be entered" >&2; exit 125; }'
ENTER = f'echo 0 >"$1" || {REFUSE}; shift; exec "$@"'
SYSTEMD = "org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager"
# What systemd answers is not believed: the shell looks where it is. Whoever is there ends when the program that called
# does; so it looks, once it is there, whether that is still its parent.
ASK = (
    f'"$1" --system --quiet --timeout=10 call {SYSTEMD} AttachProcessesToUnit ssau "$2" "$3" 1 $$ '
    "</dev/null >/dev/null 2>&1; is_in=; parent=; "
    'while read -r line; do case "$line" in 0::*"$3") is_in=1 ;; esac; done </proc/$$/cgroup; '
    'while read -r name value; do case "$name" in PPid:) parent=$value ;; esac; done </proc/$$/status; '
    f'[ "$is_in$parent" = "1$4" ] || {REFUSE}; shift 4; exec "$@"'
)


class Room(NamedTuple):
    """A folder of the control groups in which this user may make more."""

    path: str
    unit: str = ""
    """What systemd calls the part of the groups that is this user's, where only systemd may move a process here."""
    busctl: str = ""
    """The program that asks systemd to do so."""

    @property
    def what(self) -> str:
        return f"in a scope of {self.unit}" if self.unit else "beside this program's own group"


class NoRoom(NamedTuple):
    """There is none, in words for a report on this machine."""

    why: str


def find_room(own: str, mounts: str, *, is_allowed: Callable[[str], bool]) -> Room | None:
    """From what `/proc/self/cgroup` and `/proc/self/mounts` say; a group may have children only beside processes."""
    root, group = find_mount(mounts), own_group(own)
    if not root or not group:
        return None
    path = os.path.join(root, os.path.dirname(group).lstrip("/")).rstrip("/")
    is_counting = has_controllers(f"{path}/cgroup.subtree_control")
    return Room(path) if is_counting and is_allowed(path) and is_allowed(f"{path}/cgroup.procs") else None


def find_mount(mounts: str) -> str:
    """Where groups of version 2 are shown; "" for nowhere."""
    fields = (line.split() for line in mounts.splitlines())
    return next((each[1] for each in fields if len(each) > 2 and each[2] == "cgroup2"), "")  # noqa: PLR2004 - the third is the kind


def own_group(own: str) -> str:
    """The path of a process's group by its `/proc/PID/cgroup`; "" for none, or one that cannot be seen from here."""
    group = next((line[3:] for line in own.splitlines() if line.startswith("0::/")), "")
    return "" if ".." in group else group


def has_controllers(file: str) -> bool:
    """Whether such a list of the kernel's names all that count here."""
    try:
        return CONTROLLERS.issubset(Path(file).read_text("ascii").split())
    except OSError:
        return False


def settings_for(limits: Limits) -> dict[str, str]:
    """Files of a group and what is written to them."""
    return {
        "memory.max": str(_megabytes_in_all(limits) * MEGABYTE),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": str(limits.processes + OWN_PROCESSES),
    }


def _megabytes_in_all(limits: Limits) -> int:
    return limits.data_megabytes * PROCESSES_AT_THEIR_LIMIT + limits.temporary_megabytes


class Groups:
    """Makes and removes the groups of this process; what is left of one that was killed is removed, too."""

    def __init__(self, room: Room | NoRoom | None, settings: Callable[[Limits], dict[str, str]] = settings_for) -> None:
        self._room = room if isinstance(room, Room) else None
        self.what = room.what if isinstance(room, Room) else f"none: {room.why if room else 'not on this system'}"
        self._settings = settings
        self._lock = threading.Lock()
        self._left: list[str] = []
        self._has_tidied = False

    @property
    def are_there(self) -> bool:
        return self._room is not None

    @contextmanager
    def around(self, confined: Confined, limits: Limits) -> Iterator[Confined]:
        """The same command in a group of its own, where there can be one."""
        if self._room is None:
            yield confined
            return
        path = self._make(self._room.path, limits)
        try:
            said = f"{_megabytes_in_all(limits)} MB memory and {limits.processes} processes in all"
            yield confined._replace(
                argv=(*_entering(self._room, path), *confined.argv),
                isolation=replace(confined.isolation, limits=(*confined.isolation.limits, said)),
            )
        finally:
            with self._lock:
                self._left = [each for each in (*self._left, path) if not _remove(each)]

    def _make(self, room: str, limits: Limits) -> str:
        path = f"{room}/{PREFIX}{os.getpid()}-{os.urandom(8).hex()}"
        try:
            with self._lock:
                if not self._has_tidied:
                    self._has_tidied = True
                    _remove_abandoned(room)
            os.mkdir(path, 0o700)
            for name, value in self._settings(limits).items():
                _write(f"{path}/{name}", value)
        except OSError as error:
            _remove(path)
            raise SandboxUnavailableError.because(
                f"No control group could be made in {room}: {error.strerror or error}",
                "Nothing was run without it; try again, or start this program again.",
                missing=("group",),
            ) from error
        return path


def _entering(room: Room, path: str) -> tuple[str, ...]:
    """The words before a command that bring it into a group first."""
    if not room.unit:
        return "/bin/sh", "-c", ENTER, "skillkit-walls", f"{path}/cgroup.procs"
    below = path.partition(f"/{room.unit}")[2]
    return "/bin/sh", "-c", ASK, "skillkit-walls", room.busctl, room.unit, below, str(os.getpid())


def _write(path: str, value: str) -> None:
    """Opened without making it: a kernel without swap or with an older version lacks some."""
    try:
        number = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        if path.endswith(("/memory.swap.max", "/memory.oom.group")):
            return
        raise
    try:
        os.write(number, value.encode())
    finally:
        os.close(number)


def _remove(path: str) -> bool:
    """Whether it is gone; the kernel keeps it while anybody is in it."""
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _remove_abandoned(room: str) -> None:
    """Groups of programs that are over; one that was killed could not remove its own."""
    for name in os.listdir(room):
        owner = name.removeprefix(PREFIX).partition("-")[0]
        if name.startswith(PREFIX) and owner.isdecimal() and not os.path.exists(f"/proc/{owner}"):
            _remove(f"{room}/{name}")


def read_own(name: str) -> str:
    """What `/proc` says of this process; "" where it does not."""
    try:
        return Path(f"/proc/self/{name}").read_text("utf-8", "surrogateescape")
    except OSError:
        return ""


def room_here() -> Room | NoRoom:
    own, mounts = read_own("cgroup"), read_own("mounts")
    if not find_mount(mounts):
        return NoRoom("this system has no control groups of version 2")
    found = find_room(own, mounts, is_allowed=lambda path: os.access(path, os.W_OK))
    return found or NoRoom("no group that counts memory can be made beside this program's own")


def this_machines_groups(
    probe: Callable[[Confined], tuple[int, str]], confined: Confined, ways: Sequence[Callable[[], Room | NoRoom]]
) -> Groups:
    """The first way to a room that works; each is tried with a command that does nothing."""
    reasons = []
    for way in ways:
        room = way()
        if isinstance(room, NoRoom):
            reasons.append(room.why)
        elif problem := _problem_with(room, probe, confined):
            reasons.append(f"{room.what} none can be entered ({problem})")
        else:
            return Groups(room)
    return Groups(NoRoom("; ".join(reasons)))


def _problem_with(room: Room, probe: Callable[[Confined], tuple[int, str]], confined: Confined) -> str:
    try:
        with Groups(room).around(confined, Limits()) as inside:
            status, stderr = probe(inside)
    except (OSError, SandboxUnavailableError) as error:
        return str(error)
    return stderr.strip() or f"status {status}" if status else ""
