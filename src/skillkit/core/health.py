"""This machine -> which walls and interpreters it has, and what is missing."""

from __future__ import annotations

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.owned import REMEDY, problem_with, require_own_folder
from skillkit.core.paths import is_inside
from skillkit.core.policy import INTERPRETERS
from skillkit.core.resolve import found_program, search_path
from skillkit.core.run import Walls, counted_together, machine_tiers
from skillkit.core.starting import brief_output
from skillkit.core.state import StateStore

__all__ = ["InterpreterHealth", "TierHealth", "interpreters", "state_problem", "tiers"]

PACKAGES = {"python3": "python3", "bash": "bash", "node": "nodejs", "ruby": "ruby", "perl": "perl"}
# File systems where SQLite's locks are not to be trusted.
NETWORK_FILE_SYSTEMS = frozenset("nfs nfs4 cifs smb3 smbfs 9p afs fuse.sshfs ceph glusterfs".split())
OF_COPIES = ("snapshots", "snapshots/.uses")
USER_NAMESPACES = (
    "Allow user namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1 (Debian), "
    "kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu); in a container, start it with them allowed."
)


@dataclass(frozen=True, slots=True)
class TierHealth:
    """One kind of walls: its layers when it works, else why it does not."""

    name: str
    works: bool
    layers: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InterpreterHealth:
    """A program that policies list, where it really is, and how to get it."""

    name: str
    path: str
    version: str
    remedy: str


def tiers() -> list[TierHealth]:
    found = []
    for attempt in machine_tiers():
        if attempt.sandbox is None:
            remedy = USER_NAMESPACES if attempt.tier == "bubblewrap" and "bwrap:" in attempt.reason else ""
            remarks = tuple(filter(None, (attempt.reason, remedy)))
            found.append(TierHealth(attempt.tier, works=False, layers=(), remarks=remarks))
            continue
        is_open = attempt.tier == "job"  # it can limit neither files nor network
        walls = Walls(skill="/skill", snapshot=None, work="/work", interpreter=(), network=is_open, filesystem=is_open)
        with counted_together(attempt.sandbox.confine(("/bin/true",), "/", {}, walls), walls.limits) as confined:
            isolation = confined.isolation
        layers = (
            ("files", isolation.files),
            ("network", isolation.network),
            ("processes", isolation.processes),
            ("kill", isolation.kill),
            ("limits", ", ".join(isolation.limits)),
        )
        found.append(TierHealth(attempt.tier, works=True, layers=layers, remarks=isolation.degraded))
    return found


def interpreters() -> list[InterpreterHealth]:
    path = search_path(os.environ, Path("/nonexistent"), None)
    found = []
    for name in INTERPRETERS:
        program = found_program(name, path, brief_output, ())
        version = version_of(name, program, path) if program else ""
        remedy = "" if program else f"missing; install it: sudo apt-get install {PACKAGES[name]}"
        found.append(InterpreterHealth(name, program, version, remedy))
    return found


def version_of(name: str, program: str, path: str) -> str:
    option = "-v" if name == "perl" else "--version"
    number = re.search(r"\d+\.\d+(\.\d+)?", brief_output((program, option), path))
    return number[0] if number else "?"


def state_problem(folder: Path) -> str:
    """Empty when the world's state can be kept there."""
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    if existing == folder and (problem := owner_problem(folder)):
        return problem
    kind = file_system_of(existing)
    if kind in NETWORK_FILE_SYSTEMS:
        return f"It lies on a network file system ({kind}); choose a local folder with SKILLKIT_STATE_DIR."
    try:
        with tempfile.NamedTemporaryFile(dir=existing):
            return file_problem(folder)
    except OSError as error:
        return f"It cannot be written ({error.strerror}); choose another folder with SKILLKIT_STATE_DIR."


def owner_problem(state: Path) -> str:
    """Of the folder, or of the first thing in it that others can have written."""
    try:
        require_own_folder(state, may_be_link=True)
        folders = [state, *(state / name for name in OF_COPIES if (state / name).is_dir())]
        for path in sorted(each for folder in folders for each in folder.iterdir()):
            if problem := problem_with(path):
                return f"{path} {problem}, so nobody can believe what it says. {REMEDY}"
    except StateUnavailableError as error:
        return str(error)
    except OSError as error:
        return f"It cannot be read ({error.strerror}); choose another folder with SKILLKIT_STATE_DIR."
    return ""


def file_problem(folder: Path) -> str:
    """A folder can be well and the file in it not; none is made here."""
    store = StateStore(folder)
    if not store.path.exists():
        return ""
    try:
        store.world()
    except StateUnavailableError as error:
        return str(error)
    finally:
        store.close()
    return ""


def file_system_of(folder: Path) -> str:
    """The kind of the file system that holds a folder; empty when the system does not tell."""
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    real = os.path.realpath(folder)
    mounts = [line.split()[1:3] for line in lines]
    holding = [(point, kind) for point, kind in mounts if is_inside(real, point)]
    return max(holding, key=lambda each: len(each[0]), default=("", ""))[1]
