"""What a run may reach, the one shape that every kind of walls has, and the kind that has none."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from skillkit.core.paths import Judged
from skillkit.core.values.policy import Limits
from skillkit.core.values.runs import Isolation

__all__ = [
    "PRIVATE_FOLDERS",
    "WAY_OUT",
    "Confined",
    "DescriptorPlace",
    "Reach",
    "Sandbox",
    "UnconfinedSandbox",
    "descriptor",
    "home_variables",
]

PRIVATE_FOLDERS = (".home", ".tmp", ".bin")
"""In the work folder, for HOME, TMPDIR and programs where walls have no mounts; what is left is nobody's result."""
MEGABYTE = 1 << 20
WAY_OUT = ("--json-status-fd", "--block-fd")
"""Bubblewrap's words: where it says which process is inside, and what it waits for before the script starts."""
SPARE_CPU_SECONDS = 5  # the timeout comes first


@dataclass(frozen=True, slots=True)
class Reach:
    """Absolute, resolved paths; what is not named here is out of reach."""

    skill: str
    """The skill's own path as the script sees it; read-only."""
    snapshot: str | None
    """Where the bytes that were hashed are; None when the folder itself is used."""
    work: str
    """The run's private folder; writable."""
    interpreter: tuple[str, ...]
    """Folders the interpreter needs beside the system's; read-only."""
    home: str | None = None
    """The home that stays between runs of the skill; writable. None for a new one."""
    programs: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Names that a search path has to begin with, each with the program it means."""
    searched_first: tuple[str, ...] = ()
    """Folders that a search path has to begin with after those: a virtual environment is known by its place."""
    masked: tuple[str, ...] = ()
    """Files among the interpreter's that are not readable: they hold keys, or lead to code elsewhere."""
    environments: tuple[str, ...] = ()
    """Folders of prepared packages; read-only, also where what lies around them is hidden."""
    node_modules: str | None = None
    """Prepared packages of Node, which stand above `apart` where walls have mounts."""
    apart: str | None = None
    """A second place of the snapshot with nothing above it, for languages that look for code in the folders above."""
    end_of_search: str | None = None
    """A file that says nothing, beside a copy that runs where it lies: there such a language ends its look."""
    workspace: str | None = None
    """The folder the agent works in; writable except `protected`."""
    protected: tuple[str, ...] = ()
    """Inside the workspace (or any writable path), read-only; all of them exist."""
    links: tuple[str, ...] = ()
    """Of `protected`, those that are links; what they lead to is among `protected` too."""
    identities: Mapping[str, tuple[int, int]] = field(default_factory=dict, hash=False)
    """Device and inode of the host's paths as they were judged: another thing in such a place is not shown."""
    hidden: tuple[str, ...] = ()
    """Of `protected`, what is not readable either, although it lies in a folder that is."""
    notes: tuple[str, ...] = ()
    """What these walls cannot keep here, a sentence each."""
    readable: tuple[str, ...] = ()
    copies: tuple[tuple[str, str], ...] = ()
    """Of `readable`, folders of which a copy stands in their place where walls have mounts, each with that copy."""
    writable: tuple[str, ...] = ()
    network: bool = False
    hosts: tuple[str, ...] = ()
    """Rules for the hosts that it may reach through the proxy of the run, where it has not the whole network."""
    certificates: bytes = b""
    """Of authorities that the caller trusts, for those hosts."""
    filesystem: bool = False
    """The user's files are readable and writable; `skill` and `protected` still are not writable."""
    limits: Limits = field(default_factory=Limits)
    timeout: float = 30.0

    @property
    def opens_folders(self) -> bool:
        """Whether the user's own files are in sight, where other programs may have sockets now or later."""
        return bool(self.filesystem or self.workspace or self.readable or self.writable)

    @property
    def own_programs(self) -> str:
        """What of the caller's stands inside like the system, for reports; empty where there is nothing."""
        return f"; programs of {', '.join(self.interpreter)}" if self.interpreter else ""

    def search_path(self, programs: str, path: str) -> str:
        """What the script finds programs by; the links are in `programs`."""
        return os.pathsep.join((*([programs] if self.programs else []), *self.searched_first, path))

    @property
    def process_limits(self) -> dict[str, int]:
        """Of each process, by the names that `prlimit` and the kernel's `RLIMIT_` share."""
        limits = self.limits
        return {
            "data": limits.data_megabytes * MEGABYTE,
            "fsize": limits.file_megabytes * MEGABYTE,
            "nproc": limits.processes,
            "nofile": limits.open_files,
            "cpu": math.ceil(self.timeout) + SPARE_CPU_SECONDS,
            "core": 0,
        }


class Confined(NamedTuple):
    """A command inside walls; an argument made by `descriptor(n)` stands for the n-th of `contents` and `places`."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    contents: tuple[bytes, ...]
    """Each is handed over as a readable descriptor whose number replaces its place in `argv`."""
    isolation: Isolation
    job_limits: Limits | None = None
    """What a Windows job object has to keep; everywhere else `argv` says it all."""
    places: tuple[Judged, ...] = ()
    """Opened when the command starts, if they still are what was judged; their descriptors follow the contents'."""
    handed: tuple[int, ...] = ()
    """Descriptors of the caller's; they follow those of the places."""
    preface: bytes = b""
    """An archive from which a Python takes what it does before its script; empty where it starts with the script."""
    refusals: tuple[tuple[int, str], ...] = ()
    """How it ends when the walls cannot be put up: its status, and how its one line begins."""

    def alone(self) -> Confined:
        """The same walls without a way out, to be tried by themselves."""
        if not any(word in WAY_OUT for word in self.argv):
            return self
        words = list(self.argv)
        for option in WAY_OUT:
            at = words.index(option)
            del words[at : at + 2]
        return self._replace(argv=tuple(words), handed=())

    def is_own_refusal(self, status: int, stderr: str) -> bool:
        """Whether the walls seem to have given up before the script started; a script can write the same."""
        return any(status == own and stderr.startswith(line) for own, line in self.refusals)


class Sandbox(ABC):
    """One kind of walls; `confine` is pure, so that it can be tested by the argv it gives."""

    __slots__ = ()

    tier: ClassVar[str]
    """Its name in results, records and reports."""
    has_walls: ClassVar[bool] = True
    """False only where a person switched them off, or preferred walls and there are none."""
    limits_reach: ClassVar[bool] = True
    """Whether files and network can be limited at all."""
    shows_snapshot: ClassVar[bool] = False
    """Whether the bytes that were hashed can stand in the skill's own place, by a mount."""
    opens_hosts: ClassVar[bool] = False
    """Whether a run can reach some hosts and no others."""
    guards_single_files: ClassVar[bool] = True
    """Whether a file deep in a writable folder can be kept; else it is put back after the run."""

    def needs_scoper(self, reach: Reach) -> bool:  # noqa: ARG002 - most need none, whatever may be reached
        """Whether a program of ours has to keep unix sockets apart from the host's."""
        return False

    def needs_mounter(self, reach: Reach) -> bool:  # noqa: ARG002 - most need none, whatever may be reached
        """Whether a program of ours has to guard places from inside."""
        return False

    @abstractmethod
    def confine(self, argv: tuple[str, ...], cwd: str, environment: Mapping[str, str], reach: Reach) -> Confined:
        """The command line that runs `argv` inside."""


class DescriptorPlace(str):
    """Stands in `argv` for a number that is known when the process starts; no text of anybody's is one."""

    __slots__ = ()


def descriptor(number: int) -> DescriptorPlace:
    """The place in `argv` of the n-th content's descriptor number."""
    return DescriptorPlace(f"{{descriptor {number}}}")


@dataclass(frozen=True, slots=True)
class UnconfinedSandbox(Sandbox):
    """No walls: asked for by name, or taken where they were only preferred; `missing` says what is not kept."""

    tier = "none"
    has_walls = limits_reach = False

    missing: tuple[str, ...] = ()

    def confine(self, argv: tuple[str, ...], cwd: str, environment: Mapping[str, str], reach: Reach) -> Confined:
        del reach
        return Confined(argv, cwd, environment, (), Isolation(degraded=self.missing))


# Bash, told by a socket that a person came over the network, reads .bashrc; not as the second shell.
FIXED = {"SHLVL": "1"} | dict.fromkeys(
    "PIP_CONFIG_FILE ZDOTDIR IRBRC PRYRC R_PROFILE_USER R_ENVIRON_USER PSQLRC".split(), os.devnull
)
IN_TEMPORARY_FOLDER = {
    "PYTHONUSERBASE": ".python",
    "GIT_CONFIG_GLOBAL": ".gitconfig",
    "npm_config_userconfig": ".npmrc",
}


def home_variables(temporary: str) -> dict[str, str]:
    """What each is set to unless policy passes another value."""
    return FIXED | {name: os.path.join(temporary, file) for name, file in IN_TEMPORARY_FOLDER.items()}
