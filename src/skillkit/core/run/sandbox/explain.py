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

from skillkit.core.paths import is_inside, real_path
from skillkit.core.paths.forbidden import forbidden_paths
from skillkit.core.run.sandbox.base import Reach
from skillkit.core.run.sandbox.machine import SYSTEM, home_inside

__all__ = ["can_be_shown", "explanation", "is_served_here", "never_opened", "not_this_machines"]

TAIL = 8_000  # characters: the cause stands at the end
LINES = 60
LISTENING = "0A"  # in the kernel's tables
PATH_CHARACTERS = 250
TEMPORARY = "/tmp"  # noqa: S108 - as scripts name it
VISIBLE = (*SYSTEM, "/nix", "/gnu", "/etc/alternatives")
PATH = re.compile(
    r"""['"\u2018`](?P<quoted>/[^'"\u2019`]+)['"\u2019`]"""
    r"| - (?P<ruby>/.+?) \(Errno::"
    r"|(?P<bare>(?<![\w.~/-])/[^\s:'\"(),;]+)"
)
# A relative name: of a shell what comes before the complaint, else what is in quotes.
RELATIVE = (
    re.compile(r": line \d+: (?P<name>[\w.][^:/\n]{0,100}(?:/[^:\n]{1,150})?): (?:Read-only|Permission)"),
    re.compile(r"^\S+: \d+: cannot create (?P<name>[\w.][^:\n]{0,200}): (?:Read-only|Permission)"),
    re.compile(r"""['"\u2018`](?P<name>(?:\./)?[\w.][^'"\u2019`\n:]{0,200})['"\u2019`]"""),
)
COMPLAINT = re.compile(r"Permission denied|Read-only file system|EROFS:|EACCES:", re.IGNORECASE)
WHOSE_LINE = re.compile(r": (?:line )?\d+: ")  # a shell names its script first
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
DENIED = re.compile(r"Permission denied|EACCES", re.IGNORECASE)
UNIX_CALL = re.compile(r"\b(?:listen|bind|connect) EACCES\b[^\n]{0,40}?/\S+|\.sock\b", re.IGNORECASE)
REFUSED_HERE = re.compile(r"ECONNREFUSED|Connection refused|curl: \(7\)", re.IGNORECASE)
HERE_AND_PORT = re.compile(r"(?:localhost|127\.0\.0\.1|::1\]?)\D{1,12}(\d{2,5})\b")
UNIX_SOCKET = re.compile(r"multiprocessing/(managers|forkserver|connection)\.py|\bAF_UNIX\b")


NO_PROCESS = re.compile(
    r"can't start new thread|fork: |Cannot fork|BlockingIOError: \[Errno 11\]|spawn \S+ EAGAIN|uv_thread"
)
NO_MEMORY = re.compile(
    r"^MemoryError|Cannot allocate memory|ENOMEM|(?:heap|process) out of memory|NoMemoryError|failed to allocate memory"
    r"|Out of memory|cannot allocate \d+ bytes|bad_alloc"
)
# The policy's key for a limit, what running into it looks like, and what it limits.
LIMITS = {
    "processes": (NO_PROCESS, "processes and threads"),
    "open_files": (re.compile(r"Too many open files|EMFILE"), "open files"),
    "file_megabytes": (re.compile(r"File too large|EFBIG|File size limit exceeded"), "MB a file"),
    "temporary_megabytes": (re.compile(r"No space left on device|ENOSPC"), "MB of temporary files"),
    "data_megabytes": (NO_MEMORY, "MB of memory a process"),
}


@dataclass(frozen=True, slots=True)
class _Host:
    """What is behind the walls: which paths there are, and which of them no call opens."""

    exists: Callable[[str], bool]
    is_closed: Callable[[str], bool]
    cwd: str = ""
    tier: str = "bubblewrap"

    def has_to_open(self, path: str) -> bool:
        return self.exists(path) and not self.is_closed(path)


def never_opened(state_folder: Path) -> Callable[[str], bool]:
    """Whether a path, or what it leads to, is a closed place."""
    places = forbidden_paths(state_folder)
    return lambda path: places.covers(os.path.normpath(path)) or places.covers(real_path(path))


def can_be_shown(path: str) -> bool:
    """Whether a path can stand in a sentence of ours and be read as what it is."""
    return path.isprintable() and len(path) <= PATH_CHARACTERS


def explanation(
    text: str,
    reach: Reach,
    is_closed: Callable[[str], bool],
    *,
    cwd: str = "",
    tier: str = "bubblewrap",
    exists: Callable[[str], bool] = os.path.lexists,
) -> str:
    """Empty when nothing points to the walls; `exists` tells what the host has behind them.

    `cwd` is where the script started, which relative names are about.
    """
    host = _Host(exists, is_closed, cwd, tier)
    lines = text[-TAIL:].splitlines()[-LINES:]
    text = "\n".join(lines)
    mentions_sockets, mentions_unix = bool(SOCKET_CALL.search(text)), bool(UNIX_SOCKET.search(text))
    for line in reversed(lines):
        is_denied = bool(DENIED.search(line))
        if is_denied and (UNIX_CALL.search(line) or (mentions_unix and not PATH.search(line))):
            return _NO_UNIX
        found = _of_path(line, reach, host) or _of_limit(line, reach)
        if not found and mentions_unix and is_denied:
            found = _NO_UNIX
        if not found and not reach.network and host.tier == "bubblewrap" and REFUSED_HERE.search(line):
            return _of_loopback(text)  # somebody answered: that is the run's own network
        if not found and not (reach.network or reach.hosts):
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


def _of_loopback(text: str) -> str:
    """A program of the host listens there, and the script looked for it on the run's own loopback."""
    ports = [int(place[1]) for place in HERE_AND_PORT.finditer(text)]
    return next((not_this_machines(port) for port in ports if is_served_here(port)), "")


def not_this_machines(port: int) -> str:
    return (
        f"Port {port} is served on this machine, but inside the walls loopback is the run's own; "
        "allow it with --network (policy key allow_network)."
    )


def is_served_here(port: int) -> bool:
    """Whether a program of the host listens there, as the kernel lists it."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii", errors="replace") as file:
                rows = [line.split()[1:4] for line in file.readlines()[1:]]
        except OSError:
            continue
        if any(row[-1] == LISTENING and row[0].endswith(f":{port:04X}") for row in rows if row):
            return True
    return False


def _of_limit(line: str, reach: Reach) -> str:
    for key, (pattern, what) in LIMITS.items():
        if pattern.search(line):
            limit = f"{getattr(reach.limits, key)} {what}"
            return f"The script ran into a limit of its walls, {limit}; raise it with the policy key limits.{key}."
    return ""


def _of_path(line: str, reach: Reach, host: _Host) -> str:
    is_missing, is_read_only = bool(MISSING.search(line)), bool(READ_ONLY.search(line))
    if not is_missing and not is_read_only:
        return ""
    is_denied = bool(DENIED.search(line))
    for path in (*_relative_paths(line, reach, host, is_wanted=is_read_only or is_denied), *_paths(line)):
        if not can_be_shown(path):
            continue
        # Without mounts, to write what may only be read is denied like all else.
        is_kept = is_read_only or (is_denied and host.tier == "landlock" and is_inside(path, reach.skill))
        found = _read_only(path, reach, host) if is_kept else _hidden(path, reach, host)
        if found:
            return found
    return ""


def _relative_paths(line: str, reach: Reach, host: _Host, *, is_wanted: bool) -> Iterator[str]:
    """What a line names from where the script started, where that is its skill."""
    here = reach.skill if host.cwd == reach.apart else host.cwd
    if not is_wanted or not COMPLAINT.search(line) or not is_inside(here, reach.skill):
        return
    for pattern in RELATIVE:
        if found := pattern.search(line):
            yield os.path.normpath(os.path.join(here, found["name"]))


def _paths(line: str) -> Iterator[str]:
    """Absolute paths a line names; those in quotes first, because the others may end at a space too early.

    Of the others the last first: a shell names its script before the path that failed.
    """
    found = [
        match
        for match in PATH.finditer(line)
        if not match.group(0).startswith("/dev/tcp/") and not WHOSE_LINE.match(line, match.end())
    ]
    for match in sorted(found, key=lambda each: (each.lastgroup == "bare", -each.start())):
        yield os.path.normpath(match[match.lastgroup or 0])


def _read_only(path: str, reach: Reach, host: _Host) -> str:
    if is_inside(path, reach.skill):
        named = path if host.exists(path) else reach.skill
        elsewhere = "write to $SKILL_WORK_DIR instead."
        if reach.workspace and is_inside(host.cwd, reach.apart or reach.skill):
            elsewhere = "write to $SKILL_WORK_DIR, or set the policy key working_directory to 'workspace'."
        return f"{named} belongs to the skill, which is read-only inside the walls; {elsewhere}"
    protected = next((each for each in reach.protected if is_inside(path, each)), "")
    if protected:
        if not can_be_shown(protected) or host.is_closed(protected):
            return ""
        return (
            f"{protected} is protected and stays read-only inside the walls; write to another place of the workspace."
        )
    if any(is_inside(path, each) for each in (*VISIBLE, *reach.interpreter)):
        return "The system's folders are read-only inside the walls; write to $SKILL_WORK_DIR instead."
    place = path if host.exists(path) else os.path.dirname(path)
    if reach.filesystem or _is_writable(path, reach) or place == "/" or not host.has_to_open(place):
        return ""
    return (
        f"{place} is read-only inside the walls; allow it with --write {shlex.quote(place)} "
        "(policy key writable_paths), or write to $SKILL_WORK_DIR."
    )


def _hidden(path: str, reach: Reach, host: _Host) -> str:
    """The host has it and the walls do not show it; or the host has the folder it was to be made in."""
    if reach.filesystem or _is_visible(path, reach):
        return ""
    if host.is_closed(path):
        return ""
    if host.exists(path):
        return (
            f"{path} exists but is outside the walls; allow it with --read {shlex.quote(path)} "
            "(policy key readable_paths)."
        )
    folder = os.path.dirname(path)
    if folder == TEMPORARY:
        return f"{TEMPORARY} is outside the walls; use $TMPDIR instead." if host.tier == "landlock" else ""
    if folder == "/" or _is_visible(folder, reach) or not host.has_to_open(folder):
        return ""
    return (
        f"{folder} is outside the walls, so nothing in it can be read or made; "
        f"allow it with --write {shlex.quote(folder)} (policy key writable_paths)."
    )


def _is_writable(path: str, reach: Reach) -> bool:
    private = (reach.work, *([reach.home, home_inside(reach)] if reach.home else []))
    own = (*private, *reach.writable, *([reach.workspace] if reach.workspace else []))
    return any(is_inside(path, each) for each in own)


def _is_visible(path: str, reach: Reach) -> bool:
    shown = (reach.skill, *reach.interpreter, *reach.readable, *VISIBLE)
    return _is_writable(path, reach) or any(is_inside(path, each) for each in shown)
