"""A process -> a mark that tells it from every other, whether it still runs, and who started it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache

__all__ = ["Mark", "ancestors", "is_running", "own_mark", "starter_mark"]

Mark = str
"""`PID-STARTED-NAMESPACE`: when it started tells it from a later one with its number, where the system says."""

DEEPEST = 128
NOBODY_S = (0, 1)
"""No parent, and the first process of all, which started everybody."""
PRIVATE = ("pipe:", "socket:")
SERVICE_MANAGERS = ("systemd", "launchd")


def own_mark() -> Mark:
    return _mark_of(os.getpid())


def is_running(mark: Mark) -> bool:
    """False for what is no mark at all. Whoever has numbers of another kind, as in a container, cannot be looked up."""
    pid, _, rest = mark.partition("-")
    started, _, namespace = rest.partition("-")
    if namespace != _namespace():
        return bool(namespace)
    return pid.isascii() and pid.isdecimal() and _exists(int(pid)) and _fields(int(pid))[1] == started


def ancestors() -> Iterator[Mark]:
    """Of this process, the nearest first; the parent alone where the system tells no more."""
    pid = os.getppid()
    for _ in range(DEEPEST):
        if pid in NOBODY_S:
            return
        yield _mark_of(pid)
        pid = _fields(pid)[0]


def starter_mark() -> Mark:
    """Who started this process to talk to it: its parent, or above that the first that does not share our stdin.

    A host may start a program through others (a shell, a package runner) that hand on their own stdin. Empty for what
    starts all services of a user: the others are not this one's.
    """
    pid, stdin = os.getppid(), _stdin_of("self")
    while stdin.startswith(PRIVATE) and _stdin_of(pid) == stdin and (parent := _fields(pid)[0]) not in NOBODY_S:
        pid = parent
    return "" if pid in NOBODY_S or _name_of(pid) in SERVICE_MANAGERS else _mark_of(pid)


def _mark_of(pid: int) -> Mark:
    return f"{pid}-{_fields(pid)[1]}-{_namespace()}"


@cache
def _namespace() -> str:
    """Of the numbers by which this process knows others."""
    try:
        return "".join(char for char in os.readlink("/proc/self/ns/pid") if char.isdecimal())
    except OSError:
        return ""


def _exists(pid: int) -> bool:
    if pid <= 0:
        return False
    if sys.platform == "win32":
        return True  # to ask there would end it; nobody is forgotten too early
    with suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return False
    return True


def _fields(pid: int) -> tuple[int, str]:
    """Its parent and when it started, as Linux tells it; 0 and nothing elsewhere, or of one that is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # the name before it may hold anything
        return (0, "") if fields[0] in (b"Z", b"X") else (int(fields[1]), fields[19].decode())
    except (OSError, ValueError, IndexError):
        return 0, ""


def _name_of(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _stdin_of(pid: int | str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/fd/0")
    except OSError:
        return ""
