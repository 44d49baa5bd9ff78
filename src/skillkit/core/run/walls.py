"""A command and a policy -> what its run may reach, and the walls that keep it there."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.paths import Judged, is_inside
from skillkit.core.policy import Limits, ScriptPolicy
from skillkit.core.run.grants import judged_grants
from skillkit.core.run.guard import MOST_PLACES, NOTHING_GUARDED, Guarded
from skillkit.core.run.process import run_confined
from skillkit.core.run.sandbox.base import Confined, Sandbox, Walls, is_own_refusal
from skillkit.core.run.sandbox.bubblewrap import BubblewrapSandbox
from skillkit.core.run.sandbox.choose import TRUE, Attempt, this_machines
from skillkit.core.run.sandbox.explain import explanation, never_opened
from skillkit.core.run.sandbox.interpreter_paths import interpreter_paths
from skillkit.core.run.sandbox.unconfined import UnconfinedSandbox
from skillkit.core.runs import Isolation, ProcessExit, ScriptCommand
from skillkit.core.values import Workspace
from skillkit.core.workspaces import open_paths

__all__ = [
    "able_to_guard",
    "explanation_of",
    "is_mounting",
    "machine_tiers",
    "require_countable",
    "require_walls",
    "sandbox_for",
    "walls_around",
    "writable_roots",
]

PROBE_TIMEOUT_SECONDS = 10.0
USUAL_LIMITS = Limits()
WITHOUT_WALLS = UnconfinedSandbox()
INSTALL = "Install bubblewrap (Debian and Ubuntu: 'sudo apt-get install bubblewrap'); 'skillkit doctor' says more."
PUT_BACK = "guarded files below the top of a writable folder are put back after the run, not kept from being changed"
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


@cache
def mounter_works() -> bool:
    """Whether a program of ours may guard a link inside bubblewrap's walls; tried once, when a run first needs it."""
    sandbox = this_machines.strongest(probed)
    with tempfile.TemporaryDirectory(prefix="skillkit-probe-") as made:
        folder = os.path.realpath(made)
        skill, work, link = (os.path.join(folder, name) for name in ("skill", "work", "link"))
        os.mkdir(skill)
        os.mkdir(work)
        os.symlink("skill", link)
        walls = Walls(skill, None, work, interpreter=(), workspace=folder, protected=(link,), links=(link,))
        try:
            return sandbox is not None and probed(sandbox.confine((TRUE,), skill, {}, walls))[0] == 0
        except OSError:
            return False


def able_to_guard(sandbox: Sandbox, walls: Walls, policy: ScriptPolicy) -> Sandbox:
    """The same walls with what they need for these places; where links stay unguarded, only if policy lets them."""
    if not isinstance(sandbox, BubblewrapSandbox) or not sandbox.needs_mounter(walls) or mounter_works():
        return sandbox
    if walls.links and policy.sandbox == "required":
        link = walls.links[0]
        remedy = f"Put a plain file or folder in the place of {link}, or name another workspace."
        raise SandboxUnavailableError(
            f"{link} is a link that agents, editors, shells or git obey, and nothing here can keep a script from "
            f"replacing it. {remedy}",
            missing=("guard",),
            remedy=remedy,
        )
    return replace(sandbox, mounter=())


def require_countable(guarded: Guarded, policy: ScriptPolicy) -> None:
    """More guarded places than can be kept, or more folders than can be looked through."""
    if guarded.too_much and policy.sandbox == "required":
        remedy = "Name a smaller folder as the workspace."
        raise SandboxUnavailableError(
            f"{guarded.too_much} holds more places that must stay as they are than can be guarded "
            f"({MOST_PLACES:,}), or too many folders to look for them. {remedy}",
            missing=("guard",),
            remedy=remedy,
        )


def explanation_of(walls: Walls, isolation: Isolation, state_folder: Path) -> Callable[[str], str]:
    """Which wall a script ran into, by what it wrote to stderr."""
    if isolation.tier == "none":
        return lambda _: ""
    return lambda stderr: explanation(stderr, walls, never_opened(state_folder))


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


def writable_roots(command: ScriptCommand, policy: ScriptPolicy, state_folder: Path | None = None) -> tuple[str, ...]:
    """Folders of the user's that the script may write, by their real paths."""
    workspace = (str(command.workspace),) if command.workspace else ()
    return tuple(
        dict.fromkeys(
            (
                *workspace,
                *(each.path for each in open_paths(policy.writable_paths, state_folder, setting="writable_paths")),
            )
        )
    )


def walls_around(
    command: ScriptCommand,
    policy: ScriptPolicy,
    *,
    work: Path,
    snapshot: Path | None,
    state_folder: Path,
    apart: Path | None = None,
    guarded: Guarded = NOTHING_GUARDED,
    everywhere: Iterable[str] = (),
) -> Walls:
    """Absolute, resolved paths. Protected: what is guarded, and `everywhere` where all the user's files are open."""
    granted = judged_grants(command, state_folder) if policy.grant_argument_paths else ()
    workspace = as_judged(command.workspace) if command.workspace else None
    opened = open_paths(policy.readable_paths, state_folder, setting="readable_paths")
    readable = tuple(dict.fromkeys((*opened, *granted)))
    writable = open_paths(policy.writable_paths, state_folder, setting="writable_paths")
    interpreter = interpreter_paths(command.argv[0], home=os.path.expanduser("~"))
    shown = (*readable, *writable, *([workspace] if workspace else []))
    put_back = {each.path for each in guarded.keepsakes}
    in_rules = [each for each in guarded.places if each.path not in put_back]
    identities = {each.path: (each.device, each.inode) for each in shown}
    identities |= {each.path: (each.device, each.inode) for each in in_rules}
    paths = [*(each.path for each in in_rules), *guarded.around]
    if policy.allow_filesystem:
        paths += [path for path in everywhere if os.path.lexists(path)]
    paths += [os.path.realpath(state_folder)]
    return Walls(
        skill=str(command.base_directory),
        snapshot=str(snapshot) if snapshot else None,
        work=os.path.realpath(work),
        interpreter=interpreter,
        apart=str(apart) if apart else None,
        workspace=workspace.path if workspace else None,
        protected=tuple(dict.fromkeys(paths)),
        links=tuple(each.path for each in in_rules if each.is_link),
        notes=(*guarded.notes, *([PUT_BACK] if guarded.keepsakes else [])),
        hidden=hidden_places(state_folder, (*interpreter, *(each.path for each in shown))),
        identities=identities,
        readable=tuple(each.path for each in readable),
        writable=tuple(each.path for each in writable),
        network=policy.allow_network,
        filesystem=policy.allow_filesystem,
        limits=policy.limits,
        timeout=command.timeout,
    )


def as_judged(workspace: Workspace) -> Judged:
    """What was named, never what stands in its place by now."""
    return Judged(str(workspace.path), workspace.device, workspace.inode)


def hidden_places(state_folder: Path, granted: Iterable[str]) -> tuple[str, ...]:
    """The world's state: its page's token would let a script answer for the person. Not where it was itself granted."""
    state = os.path.realpath(state_folder)
    return () if any(is_inside(path, state) for path in granted) else (state,)
