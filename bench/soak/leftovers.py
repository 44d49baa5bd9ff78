"""This process and its folders -> what is left of the runs: processes, descriptors, threads, memory, files, locks."""

from __future__ import annotations

import ctypes
import gc
import os
import sqlite3
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "Reading",
    "count_only_what_is_used",
    "files_below",
    "held_locks",
    "is_free",
    "memory_mb",
    "processes_of",
    "reading",
    "settled_memory_mb",
]

SETTLE_SECONDS = 5
M_MMAP_THRESHOLD = -3


@dataclass(frozen=True, slots=True)
class Reading:
    """Between two rounds, when nothing runs."""

    memory_mb: float
    descriptors: int
    threads: int
    processes: int


def count_only_what_is_used() -> None:
    """Large blocks go back to the system when they are freed; else each thread's heap keeps some for later."""
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 128 * 1024)


def reading(mark: str, known: set[int]) -> Reading:
    """Waits a little for what is ending; what stays is left over."""
    until = time.monotonic() + SETTLE_SECONDS
    while processes_of(mark, known) and time.monotonic() < until:
        time.sleep(0.05)
    return Reading(
        settled_memory_mb(), len(os.listdir("/proc/self/fd")), threading.active_count(), len(processes_of(mark, known))
    )


def settled_memory_mb() -> float:
    """Of this process, without what is only kept for later."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return memory_mb(os.getpid())


def memory_mb(process: int) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def processes_of(mark: str, known: set[int]) -> list[int]:
    """Our children, and whoever has the soak's folder in its environment or on its command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) not in known:
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                said = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            # The helper that opens ways out stays for this program's next run, and ends with it.
            is_door = said.startswith(os.fsencode(sys.executable)) and f"\x003128\x00{os.getpid()}\x00".encode() in said
            if not is_door and (parent == os.getpid() or mark.encode() in said):
                found.append(int(entry.name))
    return found


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def held_locks(folder: Path) -> list[str]:
    """Locks of this process on files in the folder, as the system lists them."""
    inodes = {path.stat().st_ino for path in folder.rglob("*") if path.is_file()}
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    mine = [words for words in lines if len(words) > 5 and words[4] == str(os.getpid())]
    return [" ".join(words) for words in mine if int(words[5].rpartition(":")[2]) in inodes]


def is_free(database: Path) -> bool:
    """Whether somebody else may have the whole file for himself at once."""
    connection = sqlite3.connect(database, timeout=0, isolation_level=None)
    try:
        connection.execute("begin exclusive")
        connection.execute("rollback")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True
