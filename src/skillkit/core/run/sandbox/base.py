"""What a run may reach, and the one shape that every kind of walls has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from skillkit.core.paths import Judged
from skillkit.core.policy import Limits
from skillkit.core.runs import Isolation

__all__ = ["PRIVATE_FOLDERS", "Confined", "Sandbox", "Walls", "descriptor"]

PRIVATE_FOLDERS = (".home", ".tmp")
"""In the work folder, for HOME and TMPDIR where walls have no mounts; what is left there is nobody's result."""


@dataclass(frozen=True, slots=True)
class Walls:
    """Absolute, resolved paths; what is not named here is out of reach."""

    skill: str
    """The skill's own path as the script sees it; read-only."""
    snapshot: str | None
    """Where the bytes that were hashed are; None when the folder itself is used."""
    work: str
    """The run's private folder; writable."""
    interpreter: tuple[str, ...]
    """Folders the interpreter needs beside the system's; read-only."""
    apart: str | None = None
    """A second place of the snapshot with nothing above it, for languages that look for code in the folders above."""
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
    writable: tuple[str, ...] = ()
    network: bool = False
    filesystem: bool = False
    """The user's files are readable and writable; `skill` and `protected` still are not writable."""
    limits: Limits = field(default_factory=Limits)
    timeout: float = 30.0

    @property
    def opens_folders(self) -> bool:
        """Whether the user's own files are in sight, where other programs may have sockets now or later."""
        return bool(self.filesystem or self.workspace or self.readable or self.writable)


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


class Sandbox(Protocol):
    """One kind of walls; `confine` is pure, so that it can be tested by the argv it gives."""

    @property
    def tier(self) -> str: ...

    def confine(self, argv: tuple[str, ...], cwd: str, environment: Mapping[str, str], walls: Walls) -> Confined: ...


# How each kind of walls ends when it cannot be put up: its status, and how its one line begins.
OWN_REFUSALS = {
    "bubblewrap": ((1, "bwrap: "), (125, "skillkit-walls: ")),
    "landlock": ((125, "skillkit-walls: "),),
}


def is_own_refusal(tier: str, status: int, stderr: str) -> bool:
    """Whether the walls seem to have given up before the script started; a script can write the same."""
    return any(status == own and stderr.startswith(line) for own, line in OWN_REFUSALS.get(tier, ()))


def descriptor(number: int) -> str:
    """The place in `argv` of the n-th content's descriptor number."""
    return f"{{descriptor {number}}}"
