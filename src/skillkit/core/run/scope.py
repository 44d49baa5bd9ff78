"""A login and its user's systemd -> a room for the groups of runs, where the login itself has none (Linux).

Theory of operation. The group of a login by ssh is root's, so no group can be made beside it. The user's systemd gives
a scope that is the user's own, asked for once in a process. A shell waits in it for the end of a pipe of which only
this process holds the other end, and then ends everybody in it: the scope goes with us, however we end, and every group
in it. Groups are made there without asking anybody, but only the system's systemd may move a process from a login to
them; so each run asks it.

Both places lie in the user's slice, whose limits hold on. A service of the system may have limits and filters of its
own that a run would leave behind, so only a login is helped in this way. Asking costs a run
about three starts of a small program; where a group can be had beside our own, nobody is asked.
"""

from __future__ import annotations

import os
import re
import select
import threading
from array import array
from contextlib import suppress
from functools import cache
from pathlib import Path

from skillkit.core.run.own_programs import find_own_program
from skillkit.core.run.process.spawn import Start, spawn
from skillkit.core.run.sandbox.group import (
    CONTROLLERS,
    NoRoom,
    Room,
    find_mount,
    has_controllers,
    own_group,
    read_own,
)

__all__ = ["scope_room", "slice_of_login"]

LOGIN = re.compile(r"(/(?:[^/]+/)*user-(\d+)\.slice)/session-[^/]+\.scope")
# Given through the pipe, for systemd may fill in what follows a dollar in a command. It becomes a process of its own,
# so that it is nobody's child who waits for any, says where it is, and waits. If that is the scope $2 of the groups at
# $1, it ends it with everybody in it; a kernel before 5.14 cannot, and the walls' own ways do.
HOLD = b"""exec 3<&0
(
while read -r line; do case "$line" in 0::*) group=${line#0::} ;; esac; done </proc/self/cgroup
echo "0::$group"; exec >&- 2>&-; read -r _ <&3
case "$group" in */"$2") if [ -e "$1$group/cgroup.kill" ]; then echo 1 >"$1$group/cgroup.kill"; fi ;; esac
) &
exit
"""
OPTIONS = ("--user", "--scope", "--quiet", "--collect", "--property=Delegate=yes", "--description=Runs of skillkit")
WAITING = "waiting"
ANSWER_SECONDS = 5.0
ANSWER_BYTES = 10_000
FIRST_FREE = 3

_lock = threading.Lock()
_held: list[int] = []  # the ends that keep a scope


def scope_room() -> Room | NoRoom:
    """Asked for once; threads wait for each other."""
    with _lock:
        return _scope_room()


@cache
def _scope_room() -> Room | NoRoom:
    user = os.geteuid()
    slice_path = slice_of_login(own_group(read_own("cgroup")), user)
    if not slice_path:
        return NoRoom("it is not in a login of this user, so its systemd is not asked")
    if not _has_systemd(user):
        return NoRoom("no systemd of this user runs here")
    systemd_run, busctl = find_own_program("systemd-run"), find_own_program("busctl")
    if not systemd_run or not busctl:
        return NoRoom("systemd-run or busctl is missing")
    try:
        return _asked(systemd_run, busctl, slice_path, user)
    except OSError as error:
        return NoRoom(f"systemd gave no scope: {error.strerror or error}")


def slice_of_login(group: str, user: int) -> str:
    """The group of all that a user does, around a login; "" for another user's and for what is not a login."""
    found = LOGIN.fullmatch(group)
    return found[1] if found and int(found[2]) == user else ""


def _has_systemd(user: int) -> bool:
    """The system's, which knows processes by the numbers that they have for us, and the user's."""
    try:
        is_systems = Path("/proc/1/comm").read_text("ascii") == "systemd\n"
        return is_systems and os.stat(f"{_runtime_folder(user)}/systemd/private").st_uid == user
    except (OSError, ValueError):
        return False


def _runtime_folder(user: int) -> str:
    return f"/run/user/{user}"


def _asked(systemd_run: str, busctl: str, slice_path: str, user: int) -> Room | NoRoom:
    name = f"skillkit-{os.getpid()}-{os.urandom(8).hex()}.scope"
    root = find_mount(read_own("mounts"))
    words = (systemd_run, *OPTIONS, f"--unit={name}", "--", "/bin/sh", "-s", "--", root, name)
    answer, writer = _started(words, {"XDG_RUNTIME_DIR": _runtime_folder(user), "PATH": os.defpath})
    unit, group = f"user@{user}.service", own_group(answer)
    try:
        if not root or not group.startswith(f"{slice_path}/{unit}/") or not group.endswith(f"/{name}"):
            os.close(writer)
            return NoRoom(f"systemd gave no scope: {answer.strip() or 'it did not answer'}")
        _prepare(root + group)
    except BaseException:
        os.close(writer)
        raise
    _held.append(writer)
    return Room(root + group, unit, busctl)


def _started(words: tuple[str, ...], environment: dict[str, str]) -> tuple[str, int]:
    """What the holder said, or systemd-run in its place, and the end that keeps it waiting."""
    reader, writer = os.pipe()
    said, saying = os.pipe()
    try:
        os.write(writer, HOLD)
        pid = spawn(Start(words, "/", environment, (reader, saying, saying), reader, FIRST_FREE), array("i", (0,)))
        os.close(saying)
        saying = -1
        answer = _read(said)
        if not answer:
            with suppress(ProcessLookupError):
                os.kill(pid, 9)
        with suppress(ChildProcessError):  # one that somebody else waited for
            os.waitpid(pid, 0)
    except BaseException:
        os.close(writer)
        raise
    finally:
        for number in (reader, said, saying):
            if number >= 0:
                os.close(number)
    return answer, writer


def _read(said: int) -> str:
    """All of it up to its end; "" for what does not end in time."""
    poller, text = select.poll(), b""
    poller.register(said, select.POLLIN)
    while len(text) < ANSWER_BYTES and poller.poll(ANSWER_SECONDS * 1000):
        more = os.read(said, ANSWER_BYTES)
        if not more:
            return text.decode("utf-8", "replace")
        text += more
    return ""


def _prepare(scope: str) -> None:
    """A group may have children that count only if no process is in itself, so the holder goes into one of its own."""
    if not has_controllers(f"{scope}/cgroup.controllers"):
        raise OSError("it does not count memory and processes")
    os.mkdir(f"{scope}/{WAITING}", 0o700)
    for pid in Path(f"{scope}/cgroup.procs").read_text("ascii").split():
        Path(f"{scope}/{WAITING}/cgroup.procs").write_text(pid, "ascii")
    Path(f"{scope}/cgroup.subtree_control").write_text(" ".join(f"+{each}" for each in sorted(CONTROLLERS)), "ascii")
