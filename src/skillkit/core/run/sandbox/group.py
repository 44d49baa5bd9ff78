"""Limits and this machine -> a control group for each run, which counts all its processes together, if it can be had.

Theory of operation. Limits of a process do not count what processes share, and not their sum; a control group of
version 2 does both. A run's group stands beside the one that this program is in, if this user may make groups there:
a desktop's terminal, a user's service, a scope of one's own, root without an init system. A shell that does nothing
else puts itself into the group and becomes the walls' own program, so that nothing of a run is ever outside.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.policy import Limits
from skillkit.core.run.sandbox.base import Confined

__all__ = ["Groups", "Room", "find_room", "room_here", "settings_for", "this_machines_groups"]

PREFIX = "skillkit-"
CONTROLLERS = {"memory", "pids"}
MEGABYTE = 1_048_576
PROCESSES_AT_THEIR_LIMIT = 4  # that much memory all processes of a run have together
OWN_PROCESSES = 8  # of the walls themselves: shell, launcher, keeper
ENTER = 'echo 0 >"$1" || { echo "skillkit-walls: group: it cannot be entered" >&2; exit 125; }; shift; exec "$@"'


class Room(NamedTuple):
    """A folder of the control groups in which this user may make more."""

    path: str


def find_room(own: str, mounts: str, *, is_allowed: Callable[[str], bool]) -> Room | None:
    """From what `/proc/self/cgroup` and `/proc/self/mounts` say; a group may have children only beside processes."""
    fields = (line.split() for line in mounts.splitlines())
    roots = [each[1] for each in fields if len(each) > 2 and each[2] == "cgroup2"]  # noqa: PLR2004 - the third is the kind
    groups = [line[3:] for line in own.splitlines() if line.startswith("0::/")]
    if not roots or not groups or ".." in groups[0]:
        return None
    path = os.path.join(roots[0], os.path.dirname(groups[0]).lstrip("/")).rstrip("/")
    try:
        with open(f"{path}/cgroup.subtree_control", encoding="ascii") as file:
            is_counting = CONTROLLERS.issubset(file.read().split())
    except OSError:
        return None
    return Room(path) if is_counting and is_allowed(path) and is_allowed(f"{path}/cgroup.procs") else None


def settings_for(limits: Limits) -> dict[str, str]:
    """Files of a group and what is written to them."""
    return {
        "memory.max": str(megabytes_in_all(limits) * MEGABYTE),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "pids.max": str(limits.processes + OWN_PROCESSES),
    }


def megabytes_in_all(limits: Limits) -> int:
    return limits.data_megabytes * PROCESSES_AT_THEIR_LIMIT + limits.temporary_megabytes


class Groups:
    """Makes and removes the groups of this process; what is left of one that was killed is removed, too."""

    def __init__(self, room: Room | None, settings: Callable[[Limits], dict[str, str]] = settings_for) -> None:
        self._room = room
        self._settings = settings
        self._lock = threading.Lock()
        self._left: list[str] = []
        self._has_tidied = False

    @contextmanager
    def around(self, confined: Confined, limits: Limits) -> Iterator[Confined]:
        """The same command in a group of its own, where there can be one."""
        if self._room is None:
            yield confined
            return
        path = self._made(self._room.path, limits)
        try:
            said = f"{megabytes_in_all(limits)} MB memory and {limits.processes} processes in all"
            yield confined._replace(
                argv=("/bin/sh", "-c", ENTER, "skillkit-walls", f"{path}/cgroup.procs", *confined.argv),
                isolation=replace(confined.isolation, limits=(*confined.isolation.limits, said)),
            )
        finally:
            with self._lock:
                self._left = [each for each in (*self._left, path) if not _removed(each)]

    def _made(self, room: str, limits: Limits) -> str:
        with self._lock:
            if not self._has_tidied:
                self._has_tidied = True
                _remove_abandoned(room)
        path = f"{room}/{PREFIX}{os.getpid()}-{os.urandom(8).hex()}"
        try:
            os.mkdir(path, 0o700)
            for name, value in self._settings(limits).items():
                _write(f"{path}/{name}", value)
        except OSError as error:
            _removed(path)
            remedy = "Nothing was run without it; try again."
            raise SandboxUnavailableError(
                f"No control group could be made in {room}: {error.strerror or error}. {remedy}",
                missing=("group",),
                remedy=remedy,
            ) from error
        return path


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


def _removed(path: str) -> bool:
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
            _removed(f"{room}/{name}")


def room_here() -> Room | None:
    try:
        texts = [Path(f"/proc/self/{name}").read_text("utf-8", "surrogateescape") for name in ("cgroup", "mounts")]
    except OSError:
        return None
    return find_room(texts[0], texts[1], is_allowed=lambda path: os.access(path, os.W_OK))


def this_machines_groups(probe: Callable[[Confined], tuple[int, str]], confined: Confined) -> Groups:
    """Tried once with a command that does nothing: where it cannot be entered there is none."""
    room = room_here()
    if room is None:
        return Groups(None)
    try:
        with Groups(room).around(confined, Limits()) as inside:
            works = probe(inside)[0] == 0
    except (OSError, SandboxUnavailableError):
        works = False
    return Groups(room if works else None)
