"""What passes through a run, from the command to the result: frozen values that check themselves when made."""

from __future__ import annotations

import json
import os
import select
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from skillkit.core.exceptions import SkillKitError
from skillkit.core.values.hosts import HostUse

if TYPE_CHECKING:
    from skillkit.core.values.bounds import Bounds
    from skillkit.core.values.needs import Grant, Need
    from skillkit.core.values.questions import OptionRequest
    from skillkit.core.values.skills import Workspace

__all__ = [
    "NO_CONTROL",
    "PREPARE",
    "PROGRAM_OWNER",
    "READ_FROM_CODE",
    "TIMEOUT_EXIT_CODE",
    "TRUNCATION_MARK",
    "Artifact",
    "Decision",
    "Isolation",
    "Manifest",
    "OnHost",
    "OnOutput",
    "Prepared",
    "PreparedRun",
    "ProcessExit",
    "Ran",
    "RunControl",
    "ScriptCommand",
    "ScriptExecutionResult",
    "digest_of_commands",
    "stop_mark",
]

TIMEOUT_EXIT_CODE = 124
TRUNCATION_MARK = "[... output truncated ...]"
PREPARE = "skillkit prepare "
"""How a hint begins its remedy for a missing package; no script can word a hint."""
READ_FROM_CODE = "128+N read as signal N for crashes"
SEARCHING_UPWARDS = frozenset(("node", "tsx", "ts-node", "bun", "deno"))
PROGRAM_OWNER = "(program)"
"""What stands in the place of the skill's name where a program of the machine runs."""

OnOutput = Callable[[str, bytes], None]
"""Gets "stdout" or "stderr", and bytes as they come."""

OnHost = Callable[[HostUse], None]
"""Gets a host when it is first reached or refused."""


class Decision(IntEnum):
    """Ordered so that the strictest of several decisions is their maximum."""

    ALLOW = 0
    ASK = 1
    DENY = 2


@dataclass(frozen=True, slots=True)
class Manifest:
    """Every file of a skill by relative path with what it holds, in order, and the digest of that list."""

    digest: str
    entries: tuple[tuple[str, str], ...]


class OwnProgram(NamedTuple):
    """An interpreter of the caller's own, from elsewhere than the system, that a script may call by its name."""

    name: str
    path: str
    is_shim: bool
    """Whether PATH has a version manager's stand-in, which finds nothing inside walls."""


class Prepared(NamedTuple):
    """Packages of one language, `python` or `node`, in a folder that nothing changes."""

    kind: str
    tree: Path
    interpreter: str
    """The one they were prepared for, by our own mark: what the tree says of it, a package may have written."""

    @property
    def programs(self) -> Path:
        """The folder that a search path begins with."""
        return self.tree / "bin" if self.kind == "python" else self.tree / "node_modules" / ".bin"


@dataclass(frozen=True, slots=True)
class ScriptCommand:
    """One script, ready to start: nothing here needs looking up again."""

    skill_name: str
    digest: str
    """Of the whole skill as it was when the command was made."""
    base_directory: Path
    script_path: Path
    """Absolute and resolved, inside the skill."""
    script_name: str
    """Relative to the skill."""
    interpreter: str
    """The name policies know it by."""
    allowed_tools: tuple[str, ...]
    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str] = field(hash=False)
    stdin: bytes = field(repr=False)
    timeout: float
    output_limit: int
    arguments: object = field(hash=False, repr=False)
    script_arguments: tuple[str, ...]
    session_id: str | None
    workspace: Workspace | None
    manifest: Manifest | None = field(default=None, repr=False, compare=False)
    """What the digest was taken of."""
    argument_paths: tuple[str, ...] = ()
    """Real paths that exist and that the arguments name, beyond skill and workspace."""
    closed_paths: tuple[str, ...] = ()
    """Those of `argument_paths` that are never granted."""
    has_unread_arguments: bool = False
    """Whether there were more arguments than were looked through for paths."""
    agent_facing: bool = False
    """Whether a model chose the arguments."""
    call_id: str = ""
    """By which the surface tells two equal calls apart."""
    own_programs: tuple[OwnProgram, ...] = ()
    """The caller's interpreters that it may call, beside its own."""
    prepared: tuple[Prepared, ...] = ()
    """Packages that were prepared for this content."""
    from_instructions: str = ""
    """Where the skill's text asks for this run, and nobody else: the digest of all commands it asks for together."""
    is_program: bool = False
    """A program of the machine and no script: `script_path` is the program, the folder holds its card."""
    grants: tuple[Grant, ...] = ()
    """What a person gave its skill, for good or with a yes, and what this run was resolved with."""
    signer: str = ""
    """Who signed exactly this content, where that was checked."""
    lost_signer: str = ""
    """Who had signed the skill until now, where this content is not what they signed."""

    @property
    def working_directory(self) -> str:
        """Which of the two folders it starts in: `skill` or `workspace`."""
        return "workspace" if self.workspace is not None and self.cwd == str(self.workspace) else "skill"

    @property
    def own_interpreter(self) -> str:
        """What runs the script in the end: never a file that a package wrote, as `argv[0]` may be."""
        places = {str(each.programs): each.interpreter for each in self.prepared}
        return places.get(os.path.dirname(self.argv[0]), self.argv[0])

    @property
    def own_path(self) -> str:
        """Its search path without the programs of packages: what is started without walls is looked for here."""
        places = {str(each.programs) for each in self.prepared}
        return os.pathsep.join(each for each in self.environment["PATH"].split(os.pathsep) if each not in places)

    @property
    def searches_upwards(self) -> bool:
        """Whether its interpreter takes modules and settings from every folder above it: code that nobody approved."""
        return self.interpreter in SEARCHING_UPWARDS and not self.is_program


class ProcessExit(NamedTuple):
    """What a process did, as bytes and numbers; nothing is judged yet."""

    status: int
    """An exit code, or minus the number of the signal that ended it."""
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int
    duration_ms: float
    timed_out: bool
    cancelled: bool
    leftovers_killed: int
    kill: str


class RunControl(NamedTuple):
    """How a caller listens to a run and stops it."""

    cancel: threading.Event | None = None
    """Stops the run when it is set; looked at every 20 ms."""
    wakeup_fd: int | None = None
    """A descriptor that stops the run at once when it becomes readable; Windows cannot look at one."""
    on_output: OnOutput | None = None
    on_host: OnHost | None = None
    on_hosts: Callable[[Sequence[HostUse]], None] | None = None
    """Told of all hosts so far, at most twice a second, and only when something came to it."""

    def is_set(self) -> bool:
        """Whether the caller wants it stopped."""
        if self.cancel is not None and self.cancel.is_set():
            return True
        if self.wakeup_fd is None or not hasattr(select, "poll"):
            return False
        poller = select.poll()
        poller.register(self.wakeup_fd, select.POLLIN)
        return bool(poller.poll(0))


NO_CONTROL = RunControl()


@dataclass(frozen=True, slots=True)
class Isolation:
    """What was really in force around a run, layer by layer."""

    tier: str = "none"
    files: str = "none"
    network: str = "none"
    processes: str = "session"
    kill: str = "best-effort"
    skill: str = "folder"
    """What ran: the skill's folder, a `snapshot` of it in the state folder, or one `mounted` in its place."""
    status: str = "exact"
    """Whether a signal's death is seen as such, or read from an exit code above 128."""
    limits: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    start: str = "cold"
    """Whether its walls were put up for it (`cold`), or stood ready before it was asked for (`warm`)."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that a script left in its work folder."""

    path: Path
    size: int
    relative_path: Path
    """Below the work folder."""


@dataclass(frozen=True, slots=True)
class ScriptExecutionResult:
    """How a run ended. A script cannot forge `timed_out`, `cancelled` or `signal`: only the runner sets them."""

    stdout: str
    stderr: str
    exit_code: int
    execution_time_ms: float
    script_path: Path
    signal: str | None = None
    signal_number: int | None = None
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    timed_out: bool = False
    cancelled: bool = False
    isolation: Isolation = Isolation()
    artifacts: tuple[Artifact, ...] = ()
    hint: str = ""
    hosts: tuple[HostUse, ...] = ()
    """What it reached by name, and what it was refused."""
    needs: tuple[Need, ...] = ()
    """Of a failure: what its code uses and was not there for it, where that explains it or nothing else is known to."""

    def __post_init__(self) -> None:
        if self.signal is not None and (self.exit_code >= 0 or self.signal_number != -self.exit_code):
            raise ValueError(
                f"Signal {self.signal} ({self.signal_number}) does not match exit code {self.exit_code}: "
                "a signal's exit code is minus its number."
            )
        if self.timed_out and self.exit_code != TIMEOUT_EXIT_CODE:
            raise ValueError(f"A run that timed out has exit code {TIMEOUT_EXIT_CODE}, not {self.exit_code}.")

    @property
    def success(self) -> bool:
        """Whether the script ended with exit code 0."""
        return self.exit_code == 0

    @property
    def needs_packages(self) -> bool:
        """Whether it failed for want of a package, which a person can prepare."""
        return not self.success and PREPARE in self.hint

    @property
    def timeout(self) -> bool:
        """Whether the runner ended it after its time; a script cannot forge that."""
        return self.timed_out

    @property
    def signaled(self) -> bool:
        """Whether a signal ended it."""
        return self.signal is not None


def stop_mark(ran: ProcessExit | ScriptExecutionResult, signal: str | None) -> str:
    """The last line of stderr where the runner or a signal stopped a script; it is not the script's own."""
    if ran.timed_out:
        return "Timeout"
    if ran.cancelled:
        return "Cancelled"
    return f"Signal: {signal}" if signal else ""


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """What was decided about a command; with ASK, the question that is open."""

    resolved: ScriptCommand | None
    """None for a call that could not be made a command."""
    decision: Decision
    reasons: tuple[str, ...]
    request: OptionRequest | None = None
    error: SkillKitError | None = None
    """What a refusal raises."""
    is_coverable: bool = False
    """Whether an approval of the same content, given meanwhile, answers the question too."""
    channel: str | None = None
    """Through which the approval came that allows this."""
    bounds: Bounds | None = None
    """What a person's word for this is about, where one is asked for or was given: the walls before any tick."""
    ticks: tuple[Grant, ...] = ()
    """What that word opens beyond them."""
    offered: Mapping[str, tuple[Grant, ...]] = field(default_factory=dict, hash=False)
    """What the request offers, by the ids of its ticks."""
    again: Callable[[Sequence[Grant]], ScriptCommand] | None = field(default=None, repr=False, compare=False)
    """The same call, resolved with other grants."""
    needs: Callable[[], tuple[Need, ...]] | None = field(default=None, repr=False, compare=False)
    """What the script uses beyond its skill's folder, read when somebody asks."""
    asked_for: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """What the record says of a call that could not be made a command."""

    @property
    def within(self) -> Bounds | None:
        """The walls and the ticks together: what the run may get, and no more."""
        return None if self.bounds is None else self.bounds.with_grants(self.ticks)

    @property
    def command(self) -> ScriptCommand:
        """What would run; where nothing could be resolved, the error that says why."""
        if self.resolved is None:
            raise self.error or SkillKitError("Nothing was resolved, so nothing can run.")
        return self.resolved


class Ran(NamedTuple):
    """What came of a run that was started."""

    command: ScriptCommand
    """As it ran: on a copy, where it did not run from its own place."""
    ended: ProcessExit | None
    """None where no process came to be."""
    result: ScriptExecutionResult | None
    set_aside: tuple[str, ...] = ()
    """What the script made under names that others obey, and that was moved away."""
    error: BaseException | None = None
    """What stopped it from outside, as an interrupt; the result then says how far it came."""

    def outcome(self) -> ScriptExecutionResult:
        """The result; what stopped the run is raised."""
        if self.error is not None or self.result is None:
            raise self.error or SkillKitError("A run came to no end. Run it again.")
        return self.result


def digest_of_commands(commands: Iterable[Sequence[str]]) -> str:
    """Of a list of commands, each a script and its words, by which an approval of it is known; empty for none."""
    words = [[*each] for each in commands]
    return sha256(json.dumps(words).encode("ascii")).hexdigest() if words else ""
