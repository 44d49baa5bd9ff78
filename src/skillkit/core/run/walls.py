"""A command and a policy -> what its run may reach, and the walls that keep it there."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.paths import is_inside
from skillkit.core.policy import Limits, ScriptPolicy
from skillkit.core.run.grants import granted_paths
from skillkit.core.run.process import run_confined
from skillkit.core.run.sandbox.base import Confined, Sandbox, Walls, is_own_refusal
from skillkit.core.run.sandbox.choose import TRUE, Attempt, this_machines
from skillkit.core.run.sandbox.explain import explanation
from skillkit.core.run.sandbox.interpreter_paths import interpreter_paths
from skillkit.core.run.sandbox.stand_ins import stand_ins
from skillkit.core.run.sandbox.unconfined import UnconfinedSandbox
from skillkit.core.runs import Isolation, ProcessExit, ScriptCommand

__all__ = [
    "explanation_of",
    "guarded",
    "is_mounting",
    "machine_tiers",
    "require_walls",
    "sandbox_for",
    "walls_around",
]

PROTECTED_NAMES = (".git", ".claude", ".agents", ".vscode", "skillkit.toml")
PROBE_TIMEOUT_SECONDS = 10.0
USUAL_LIMITS = Limits()
WITHOUT_WALLS = UnconfinedSandbox()
UNGUARDED = nullcontext()
INSTALL = "Install bubblewrap (Debian and Ubuntu: 'sudo apt-get install bubblewrap'); 'skillkit doctor' says more."
TRY_AGAIN = "Nothing was run without them; free memory, processes or descriptors and try again."

run_log = logging.getLogger("skillkit.run")


def sandbox_for(policy: ScriptPolicy) -> Sandbox:
    """The strongest walls of this machine; a limit that cannot be kept means that nothing starts."""
    if policy.sandbox == "off":
        refuse_unkept(policy)
        return WITHOUT_WALLS
    try:
        sandbox = this_machines.strongest(probed)
    except OSError as error:  # it may pass, so it says nothing about what this machine has
        raise SandboxUnavailableError(
            f"The walls could not be tried: {error.strerror or error}. {TRY_AGAIN}",
            missing=("walls",),
            remedy=TRY_AGAIN,
        ) from error
    if sandbox is not None and can_keep(sandbox, policy):
        return sandbox
    refuse_unkept(policy)
    missing = ("limits", *(["files"] * (not policy.allow_filesystem)), *(["network"] * (not policy.allow_network)))
    if policy.sandbox == "required":
        raise unavailable(missing)
    run_log.warning("running without walls: %s", ", ".join(missing), extra={"missing": missing})
    return UnconfinedSandbox(missing)


def can_keep(sandbox: Sandbox, policy: ScriptPolicy) -> bool:
    """A job object of Windows limits neither files nor network."""
    return sandbox.tier != "job" or (policy.allow_filesystem and policy.allow_network)


def refuse_unkept(policy: ScriptPolicy) -> None:
    """Limits that somebody wrote down, where there are no walls to keep them."""
    unkept = (
        *(["readable_paths"] * bool(policy.readable_paths)),
        *(["writable_paths"] * bool(policy.writable_paths)),
        *(["grant_argument_paths"] * (not policy.grant_argument_paths)),
        *(["limits"] * (policy.limits != USUAL_LIMITS)),
    )
    if unkept:
        raise unavailable(unkept)


def unavailable(missing: Iterable[str]) -> SandboxUnavailableError:
    names = tuple(missing)
    reasons = "; ".join(f"{each.tier}: {each.reason}" for each in machine_tiers() if each.reason)
    return SandboxUnavailableError(
        f"Policy limits what a script may reach ({', '.join(names)}), and nothing here can enforce it"
        f"{f' ({reasons})' if reasons else ''}. {INSTALL}",
        missing=names,
        remedy=INSTALL,
    )


def machine_tiers() -> tuple[Attempt, ...]:
    """Every kind of walls, strongest first, for a report on this machine."""
    return this_machines.attempts(probed)


def is_mounting(sandbox: Sandbox) -> bool:
    """Whether these walls can show the bytes that were hashed in the skill's own place."""
    return sandbox.tier == "bubblewrap"


def guarded(sandbox: Sandbox, walls: Walls) -> AbstractContextManager[None]:
    """While open, protected names that the workspace lacks cannot be made by a script."""
    if walls.workspace is None or not is_mounting(sandbox):
        return UNGUARDED
    return stand_ins(walls.workspace, walls.protected)


def explanation_of(walls: Walls, isolation: Isolation) -> Callable[[str], str]:
    """Which wall a script ran into, by what it wrote to stderr."""
    if isolation.tier == "none":
        return lambda _: ""
    return lambda stderr: explanation(stderr, walls)


def require_walls(confined: Confined, argv: tuple[str, ...], ended: ProcessExit) -> None:
    """Walls that cannot be put up any more are our failure and not the script's.

    A script can write the same words, so the same walls are tried once more around nothing.
    """
    tier = confined.isolation.tier
    if not is_own_refusal(tier, ended.status, ended.stderr[:100].decode("utf-8", "replace")):
        return
    status, stderr = probed(confined._replace(argv=(*confined.argv[: -len(argv)], TRUE)))
    if status:
        raise SandboxUnavailableError(
            f"The {tier} walls could not be put up: {stderr.strip() or f'status {status}'}. {TRY_AGAIN}",
            missing=(tier,),
            remedy=TRY_AGAIN,
        )


def probed(confined: Confined) -> tuple[int, str]:
    """How a command inside walls ends; used to try the walls themselves."""
    ended = run_confined(confined, stdin=b"", timeout=PROBE_TIMEOUT_SECONDS, output_limit=100_000)
    return ended.status, ended.stderr.decode("utf-8", "replace")


def walls_around(
    command: ScriptCommand,
    policy: ScriptPolicy,
    *,
    work: Path,
    snapshot: Path | None,
    state_folder: Path,
    protected: Iterable[Path],
) -> Walls:
    """Absolute, resolved paths. Protected: what would let a script change skills, settings or the user's tools."""
    granted = granted_paths(command, state_folder) if policy.grant_argument_paths else ()
    workspace = os.path.realpath(command.workspace) if command.workspace else None
    kept = [os.path.join(workspace, name) for name in PROTECTED_NAMES] if workspace else []
    everything_protected = (*kept, *map(os.path.realpath, protected), os.path.realpath(state_folder))
    readable = tuple(dict.fromkeys((*existing(policy.readable_paths), *granted)))
    writable = existing(policy.writable_paths)
    interpreter = interpreter_paths(command.argv[0], home=os.path.expanduser("~"))
    named = (*interpreter, *readable, *writable, *([workspace] if workspace else []))
    return Walls(
        skill=str(command.base_directory),
        snapshot=str(snapshot) if snapshot else None,
        work=os.path.realpath(work),
        interpreter=interpreter,
        workspace=workspace,
        protected=tuple(dict.fromkeys(everything_protected)),
        hidden=hidden_places(state_folder, named),
        readable=readable,
        writable=writable,
        network=policy.allow_network,
        filesystem=policy.allow_filesystem,
        limits=policy.limits,
        timeout=command.timeout,
    )


def hidden_places(state_folder: Path, granted: Iterable[str]) -> tuple[str, ...]:
    """The world's state: its page's token would let a script answer for the person. Not where it was itself granted."""
    state = os.path.realpath(state_folder)
    return () if any(is_inside(path, state) for path in granted) else (state,)


def existing(paths: Iterable[Path]) -> tuple[str, ...]:
    """A path that is not there cannot be shown; the script sees that it is missing either way."""
    return tuple(os.path.realpath(path) for path in paths if os.path.exists(path))
