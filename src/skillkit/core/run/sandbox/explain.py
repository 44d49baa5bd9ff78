"""What a confined script complained about -> one sentence that names the wall it ran into, and the remedy.

A script can write anything, also to be quoted: a path is named only where the host has it, the walls hide it or keep
it from being written, and it may be opened at all.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from skillkit.core.closed_places import closed_places
from skillkit.core.paths import is_inside, real_path
from skillkit.core.run.sandbox.base import Walls

__all__ = ["can_be_shown", "explanation", "never_opened"]

TAIL = 8_000  # characters: the cause stands at the end
LINES = 60
PATH_CHARACTERS = 250
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/gnu", "/etc/alternatives")
QUOTED = r"""['"\u2018`](?P<{0}>/[^'"\u2019`]+)['"\u2019`]"""
PATH = re.compile(
    "|".join(
        (
            QUOTED.format("quoted"),
            r" - (?P<ruby>/.+?) \(Errno::",
            r"(?P<bare>(?<![\w.~/-])/[^\s:'\"(),;]+)",
        )
    )
)
MISSING = re.compile(r"No such file or directory|ENOENT|Permission denied|EACCES|cannot find the path", re.IGNORECASE)
READ_ONLY = re.compile(r"Read-only file system|EROFS", re.IGNORECASE)
NETWORK = re.compile(
    r"Network is unreachable|Temporary failure in name resolution|Name or service not known|Could not resolve"
    r"|name resolution|getaddrinfo|ENETUNREACH|EAI_AGAIN|\bENOTFOUND|connect EACCES|urlopen error|/dev/(tcp|udp)/"
    r"|Failed to open TCP connection|NewConnectionError|ConnectError|IO::Socket|Can't connect to|socket: Permission"
    r"|socket\(2\)|unable to resolve host address|curl: \((6|7)\)|fetch failed",
    re.IGNORECASE,
)
SOCKET_CALL = re.compile(r"\bsocket\.(py|socket|create_connection)\b|\b_socket\.")
UNIX_SOCKET = re.compile(r"multiprocessing/(managers|forkserver|connection)\.py|\bAF_UNIX\b")


@dataclass(frozen=True, slots=True)
class Limit:
    """What running into a limit looks like, and the policy's key for it."""

    pattern: re.Pattern[str]
    key: str
    what: str


LIMITS = (
    Limit(
        re.compile(
            r"can't start new thread|fork: |Cannot fork|BlockingIOError: \[Errno 11\]|spawn \S+ EAGAIN|uv_thread"
        ),
        "processes",
        "{0} processes and threads",
    ),
    Limit(re.compile(r"Too many open files|EMFILE"), "open_files", "{0} open files"),
    Limit(re.compile(r"File too large|EFBIG|File size limit exceeded"), "file_megabytes", "{0} MB a file"),
    Limit(re.compile(r"No space left on device|ENOSPC"), "temporary_megabytes", "{0} MB of temporary files"),
    Limit(
        re.compile(
            r"^MemoryError|Cannot allocate memory|ENOMEM|heap out of memory|NoMemoryError|failed to allocate memory"
            r"|Out of memory|cannot allocate \d+ bytes|bad_alloc"
        ),
        "data_megabytes",
        "{0} MB of memory a process",
    ),
)


@dataclass(frozen=True, slots=True)
class Host:
    """What is behind the walls: which paths there are, and which of them no call opens."""

    exists: Callable[[str], bool]
    is_closed: Callable[[str], bool]

    def has_to_open(self, path: str) -> bool:
        return self.exists(path) and not self.is_closed(path)


def never_opened(state_folder: Path) -> Callable[[str], bool]:
    """Whether a path, or what it leads to, is a closed place."""
    places = closed_places(state_folder)
    return lambda path: places.hold(os.path.normpath(path)) or places.hold(real_path(path))


def can_be_shown(path: str) -> bool:
    """Whether a path can stand in a sentence of ours and be read as what it is."""
    return path.isprintable() and len(path) <= PATH_CHARACTERS


def explanation(
    stderr: str, walls: Walls, is_closed: Callable[[str], bool], *, exists: Callable[[str], bool] = os.path.lexists
) -> str:
    """Empty when nothing points to the walls; `exists` tells what the host has behind them."""
    host = Host(exists, is_closed)
    lines = stderr[-TAIL:].splitlines()[-LINES:]
    text = "\n".join(lines)
    mentions_sockets, mentions_unix = bool(SOCKET_CALL.search(text)), bool(UNIX_SOCKET.search(text))
    for line in reversed(lines):
        found = _of_path(line, walls, host) or _of_limit(line, walls)
        if not found and mentions_unix and "Permission denied" in line:
            found = _NO_UNIX
        if not found and not walls.network:
            is_refused_socket = mentions_sockets and "Permission denied" in line
            found = _BLOCKED if NETWORK.search(line) or is_refused_socket else ""
        if found:
            return found
    return ""


_BLOCKED = "The network is blocked inside the walls; allow it with --network (policy key allow_network)."
_NO_UNIX = (
    "Unix sockets are blocked inside the walls, because programs outside may listen on them; use pipes, socket pairs "
    "or threads, and of multiprocessing the start method 'fork' or 'spawn' and no manager."
)


def _of_limit(line: str, walls: Walls) -> str:
    for limit in LIMITS:
        if limit.pattern.search(line):
            what = limit.what.format(getattr(walls.limits, limit.key))
            return f"The script ran into a limit of its walls, {what}; raise it with the policy key limits.{limit.key}."
    return ""


def _of_path(line: str, walls: Walls, host: Host) -> str:
    is_missing, is_read_only = bool(MISSING.search(line)), bool(READ_ONLY.search(line))
    if not is_missing and not is_read_only:
        return ""
    for path in _paths(line):
        if not can_be_shown(path):
            continue
        found = _read_only(path, walls, host) if is_read_only else _hidden(path, walls, host)
        if found:
            return found
    return ""


def _paths(line: str) -> Iterator[str]:
    """Absolute paths a line names; those in quotes first, because the others may end at a space too early.

    Of the others the last first: a shell names its script before the path that failed.
    """
    found = [match for match in PATH.finditer(line) if not match.group(0).startswith("/dev/tcp/")]
    for match in sorted(found, key=lambda each: (each.lastgroup == "bare", -each.start())):
        yield os.path.normpath(match[match.lastgroup or 0])


def _read_only(path: str, walls: Walls, host: Host) -> str:
    if is_inside(path, walls.skill):
        named = path if host.exists(path) else walls.skill
        return f"{named} belongs to the skill, which is read-only inside the walls; write to $SKILL_WORK_DIR instead."
    protected = next((each for each in walls.protected if is_inside(path, each)), "")
    if protected:
        is_told = can_be_shown(protected) and not host.is_closed(protected)
        told = (
            f"{protected} is protected and stays read-only inside the walls; write to another place of the workspace."
        )
        return told if is_told else ""
    if any(is_inside(path, each) for each in (*SYSTEM, *walls.interpreter)):
        return "The system's folders are read-only inside the walls; write to $SKILL_WORK_DIR instead."
    place = path if host.exists(path) else os.path.dirname(path)
    if walls.filesystem or _is_writable(path, walls) or place == "/" or not host.has_to_open(place):
        return ""
    return (
        f"{place} is read-only inside the walls; allow it with --write {shlex.quote(place)} "
        "(policy key writable_paths), or write to $SKILL_WORK_DIR."
    )


def _hidden(path: str, walls: Walls, host: Host) -> str:
    """The host has it and the walls do not show it; or the host has the folder it was to be made in."""
    if walls.filesystem or _is_visible(path, walls):
        return ""
    if host.exists(path):
        return (
            ""
            if host.is_closed(path)
            else (
                f"{path} exists but is outside the walls; allow it with --read {shlex.quote(path)} "
                "(policy key readable_paths)."
            )
        )
    folder = os.path.dirname(path)
    if folder == "/" or _is_visible(folder, walls) or not host.has_to_open(folder) or host.is_closed(path):
        return ""
    return (
        f"{folder} is outside the walls, so nothing in it can be read or made; "
        f"allow it with --write {shlex.quote(folder)} (policy key writable_paths)."
    )


def _is_writable(path: str, walls: Walls) -> bool:
    own = (walls.work, *walls.writable, *([walls.workspace] if walls.workspace else []))
    return any(is_inside(path, each) for each in own)


def _is_visible(path: str, walls: Walls) -> bool:
    shown = (walls.skill, *walls.interpreter, *walls.readable, *SYSTEM)
    return _is_writable(path, walls) or any(is_inside(path, each) for each in shown)
