"""A process -> a mark that tells it from every other, whether it still runs, and who started it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from skillkit.core.paths import is_own_state, require_own_folder

__all__ = ["Mark", "ancestors", "is_running", "live_starters", "noted_server", "own_mark", "starter_mark"]

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


FOLDER = "servers"
LONGEST_MARK = 100


@contextmanager
def noted_server(state_folder: Path) -> Iterator[None]:
    """For as long as it serves; notes of servers that were killed go when the next one starts."""
    own, starter, folder = own_mark(), starter_mark(), state_folder / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    require_own_folder(state_folder, may_be_link=True)
    require_own_folder(folder)
    for note in folder.iterdir():
        if not is_running(note.name):
            note.unlink(missing_ok=True)
    path = folder / own
    path.write_text(starter, encoding="ascii")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def live_starters(state_folder: Path) -> frozenset[Mark]:
    """The processes that started a server which still runs."""
    folder, found = state_folder / FOLDER, set[Mark]()
    if not is_own_state(state_folder, folder):
        return frozenset()
    with suppress(FileNotFoundError, NotADirectoryError):
        for note in folder.iterdir():
            if is_running(note.name):
                with suppress(OSError, ValueError), note.open(encoding="ascii") as file:
                    found.add(file.read(LONGEST_MARK))
    return frozenset(found - {""})
