"""A policy and this machine -> the walls that keep a run where it may be, or an error that says what is missing."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NoReturn

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.paths.temporary import temporary_folder
from skillkit.core.run.guard import MOST_PLACES
from skillkit.core.run.process import run_confined
from skillkit.core.run.sandbox.base import Confined, Reach, Sandbox, UnconfinedSandbox
from skillkit.core.run.sandbox.bubblewrap import BubblewrapSandbox
from skillkit.core.run.sandbox.choose import TRUE, Attempt, this_machines
from skillkit.core.run.sandbox.explain import explanation, never_opened
from skillkit.core.run.sandbox.group import Groups, room_here, this_machines_groups
from skillkit.core.run.scope import scope_room
from skillkit.core.values.policy import Limits, ScriptPolicy
from skillkit.core.values.runs import Isolation

__all__ = [
    "able_here",
    "can_count_together",
    "count_together",
    "explain_failure",
    "machine_tiers",
    "mounter_works",
    "refuse_crowded",
    "require_walls",
    "run_groups",
    "sandbox_for",
]

PROBE_TIMEOUT_SECONDS = 10.0
USUAL_LIMITS = Limits()
WITHOUT_WALLS = UnconfinedSandbox()
INSTALL = "Install bubblewrap (Debian and Ubuntu: 'sudo apt-get install bubblewrap'); 'skillkit doctor' says more."
TRY_AGAIN = "Nothing was run without them; free memory, processes or descriptors and try again."

run_log = logging.getLogger("skillkit.run")


def sandbox_for(policy: ScriptPolicy) -> Sandbox:
    """The strongest walls of this machine; a limit that cannot be kept means that nothing starts."""
    if policy.sandbox == "off":
        _refuse_unkept(policy)
        return WITHOUT_WALLS
    try:
        sandbox = this_machines.strongest(_probe)
    except OSError as error:  # it may pass, so it says nothing about what this machine has
        reason = f"The walls could not be tried: {error.strerror or error}"
        raise SandboxUnavailableError.because(reason, TRY_AGAIN, missing=("walls",)) from error
    is_open = policy.allow_filesystem and policy.allow_network
    if sandbox is not None and (sandbox.limits_reach or is_open):
        return sandbox
    _refuse_unkept(policy)
    missing = ("limits", *(["files"] * (not policy.allow_filesystem)), *(["network"] * (not policy.allow_network)))
    if policy.sandbox == "required":
        raise _unavailable(missing)
    run_log.warning("running without walls: %s", ", ".join(missing), extra={"missing": missing})
    return UnconfinedSandbox(missing)


def _refuse_unkept(policy: ScriptPolicy) -> None:
    """Limits that somebody wrote down, where there are no walls to keep them."""
    unkept = (
        *(["readable_paths"] * bool(policy.readable_paths)),
        *(["writable_paths"] * bool(policy.writable_paths)),
        *(["grant_argument_paths"] * (not policy.grant_argument_paths)),
        *(["limits"] * (policy.limits != USUAL_LIMITS and _of_a_run(policy.limits) != USUAL_LIMITS)),
    )
    if unkept:
        raise _unavailable(unkept)


def _of_a_run(limits: Limits) -> Limits:
    """Without what is about this program, which keeps it itself."""
    usual = USUAL_LIMITS
    return replace(limits, warm_sandboxes=usual.warm_sandboxes, warm_megabytes=usual.warm_megabytes)


def _unavailable(missing: Iterable[str]) -> SandboxUnavailableError:
    names = tuple(missing)
    reasons = "; ".join(f"{each.tier}: {each.reason}" for each in machine_tiers() if each.reason)
    return SandboxUnavailableError.because(
        f"Policy limits what a script may reach ({', '.join(names)}), and nothing here can enforce it"
        f"{f' ({reasons})' if reasons else ''}",
        INSTALL,
        missing=names,
    )


NO_HOSTS = "no network: these walls cannot open {} alone"


def machine_tiers() -> tuple[Attempt, ...]:
    """Every kind of walls, strongest first, for a report on this machine."""
    return this_machines.attempts(_probe)


@cache
def run_groups() -> Groups:
    """What counts the processes of a run together, where this machine lets us have it; tried once."""
    if sys.platform != "linux":
        return Groups(None)
    nothing = Confined((TRUE,), "/", {"PATH": os.defpath}, (), Isolation())
    return this_machines_groups(_probe, nothing, (room_here, scope_room))


def can_count_together() -> bool:
    return run_groups().are_there


def count_together(confined: Confined, limits: Limits) -> AbstractContextManager[Confined]:
    """The same command, all of its processes limited as one where that can be; not without walls."""
    if confined.isolation.tier == "none" or not can_count_together():
        return nullcontext(confined)
    return run_groups().around(confined, limits)


@cache
def mounter_works() -> bool:
    """Whether a program of ours may guard a link inside bubblewrap's walls; tried once, when a run first needs it."""
    sandbox = this_machines.strongest(_probe)
    with temporary_folder("probe") as made:
        folder = os.path.realpath(made)
        skill, work, link = (os.path.join(folder, name) for name in ("skill", "work", "link"))
        os.mkdir(skill)
        os.mkdir(work)
        os.symlink("skill", link)
        walls = Reach(skill, None, work, interpreter=(), workspace=folder, protected=(link,), links=(link,))
        try:
            return sandbox is not None and _probe(sandbox.confine((TRUE,), skill, {}, walls))[0] == 0
        except OSError:
            return False


@cache
def scoper_works() -> bool:
    """Whether bubblewrap still works behind the scoper; some systems tie its rights to how it is started."""
    sandbox = this_machines.strongest(_probe)
    with temporary_folder("probe") as made:
        skill, work = (os.path.join(os.path.realpath(made), name) for name in ("skill", "work"))
        os.mkdir(skill)
        os.mkdir(work)
        try:
            walls = Reach(skill, None, work, (), network=True)
            return sandbox is not None and _probe(sandbox.confine((TRUE,), skill, {}, walls))[0] == 0
        except OSError:
            return False


def able_here(sandbox: Sandbox, reach: Reach, policy: ScriptPolicy) -> tuple[Sandbox, Reach]:
    """Walls and reach as this machine can keep them, where the run asks for more than the plain ones."""
    if sandbox.needs_scoper(reach):
        sandbox = able_to_scope(sandbox)
    if sandbox.needs_mounter(reach):
        sandbox = able_to_guard(sandbox, reach, policy)
    if reach.hosts and not sandbox.opens_hosts:
        reach = able_to_open_hosts(sandbox, reach, policy)
    return sandbox, reach


def able_to_scope(sandbox: Sandbox) -> Sandbox:
    """The same walls; without unix sockets where those cannot be kept apart from the host's."""
    if not isinstance(sandbox, BubblewrapSandbox) or scoper_works():
        return sandbox
    return replace(sandbox, scoper=())


def able_to_guard(sandbox: Sandbox, walls: Reach, policy: ScriptPolicy) -> Sandbox:
    """The same walls with what they need for these places; where links stay unguarded, only if policy lets them."""
    if not isinstance(sandbox, BubblewrapSandbox) or mounter_works():
        return sandbox
    if walls.links and policy.sandbox == "required":
        link = walls.links[0]
        raise SandboxUnavailableError.because(
            f"{link} is a link that agents, editors, shells or git obey, and nothing here can keep a script from "
            "replacing it",
            f"Put a plain file or folder in the place of {link}, or name another workspace.",
            missing=("guard",),
        )
    return replace(sandbox, mounter=())


def able_to_open_hosts(sandbox: Sandbox, reach: Reach, policy: ScriptPolicy) -> Reach:
    """The same reach; where these walls know only all hosts or none, it is none, if policy lets them."""
    if policy.sandbox == "required":
        raise SandboxUnavailableError.because(
            f"The {sandbox.tier} walls open the whole network or none of it, not {', '.join(reach.hosts)} alone",
            "Install bubblewrap, or allow the whole network (allow_network, --network).",
            missing=("hosts",),
        )
    return replace(reach, hosts=(), certificates=b"", notes=(*reach.notes, NO_HOSTS.format(", ".join(reach.hosts))))


def refuse_crowded(folder: str) -> NoReturn:
    """More guarded places than can be kept, or more folders than can be looked through."""
    raise SandboxUnavailableError.because(
        f"{folder} holds more places that must stay as they are than can be guarded "
        f"({MOST_PLACES:,}), or too many folders to look for them",
        "Name a smaller folder as the workspace.",
        missing=("guard",),
    )


def explain_failure(reach: Reach, state_folder: Path, cwd: str, tier: str, text: str) -> str:
    """Which wall a script ran into, by what it wrote."""
    return explanation(text, reach, never_opened(state_folder), cwd=cwd, tier=tier)


def require_walls(confined: Confined, argv: tuple[str, ...]) -> None:
    """Walls that cannot be put up any more are our failure and not the script's.

    A script can write the same words as they, so the same walls are tried once more around nothing.
    """
    alone = confined.alone()
    status, stderr = _probe(alone._replace(argv=(*alone.argv[: -len(argv)], TRUE)))
    if status:
        tier = confined.isolation.tier
        reason = f"The {tier} walls could not be put up: {stderr.strip() or f'status {status}'}"
        raise SandboxUnavailableError.because(reason, TRY_AGAIN, missing=(tier,))


def _probe(confined: Confined) -> tuple[int, str]:
    """How a command inside walls ends; used to try the walls themselves."""
    ended = run_confined(confined, stdin=b"", timeout=PROBE_TIMEOUT_SECONDS, output_limit=100_000)
    return ended.status, ended.stderr.decode("utf-8", "replace")
