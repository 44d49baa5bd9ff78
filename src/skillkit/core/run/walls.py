"""A policy and this machine -> the walls that keep a run where it may be, or an error that says what is missing."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.policy import Limits, ScriptPolicy
from skillkit.core.run.guard import MOST_PLACES, Guarded
from skillkit.core.run.process import run_confined
from skillkit.core.run.sandbox.base import Confined, Sandbox, Walls, is_own_refusal
from skillkit.core.run.sandbox.bubblewrap import BubblewrapSandbox
from skillkit.core.run.sandbox.choose import TRUE, Attempt, this_machines
from skillkit.core.run.sandbox.explain import explanation, never_opened
from skillkit.core.run.sandbox.group import Groups, this_machines_groups
from skillkit.core.run.sandbox.unconfined import UnconfinedSandbox
from skillkit.core.runs import Isolation, ProcessExit

__all__ = [
    "able_to_guard",
    "counted_together",
    "explanation_of",
    "is_mounting",
    "machine_tiers",
    "require_countable",
    "require_walls",
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
def run_groups() -> Groups:
    """What counts the processes of a run together, where this machine lets us have it; tried once."""
    if sys.platform != "linux":
        return Groups(None)
    return this_machines_groups(probed, Confined((TRUE,), "/", {"PATH": os.defpath}, (), Isolation()))


@contextmanager
def counted_together(confined: Confined, limits: Limits) -> Iterator[Confined]:
    """The same command, all of its processes limited as one where that can be; not without walls."""
    if confined.isolation.tier == "none":
        yield confined
        return
    with run_groups().around(confined, limits) as inside:
        yield inside


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
