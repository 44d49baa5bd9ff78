"""A policy -> the walls that will stand around a run; a limit that cannot be kept is an error."""

from __future__ import annotations

import logging

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.policy import Limits, ScriptPolicy
from skillkit.core.runs import Isolation

__all__ = ["walls_for"]

REMEDY = "Use sandbox='preferred' to run without it, or sandbox='off' to run with the caller's own rights."

run_log = logging.getLogger("skillkit.run")


def walls_for(policy: ScriptPolicy) -> Isolation:
    """Requested and not enforceable means that nothing starts; `preferred` runs and says what is missing."""
    explicit = [
        name
        for name, is_set in (
            ("readable_paths", bool(policy.readable_paths)),
            ("writable_paths", bool(policy.writable_paths)),
            ("grant_argument_paths", not policy.grant_argument_paths),
            ("limits", policy.limits != Limits()),
        )
        if is_set
    ]
    if explicit:
        raise unavailable(explicit, f"Leave out: {', '.join(explicit)}.")
    if policy.sandbox == "off":
        return Isolation()
    missing = ["limits"]
    missing += [] if policy.allow_filesystem else ["files"]
    missing += [] if policy.allow_network else ["network"]
    if policy.sandbox == "required":
        raise unavailable(missing, REMEDY)
    run_log.warning("running without walls: %s", ", ".join(missing), extra={"missing": missing})
    return Isolation(degraded=tuple(missing))


def unavailable(missing: list[str], remedy: str) -> SandboxUnavailableError:
    return SandboxUnavailableError(
        f"Policy limits what a script may reach ({', '.join(missing)}), and nothing here can enforce it. {remedy}",
        missing=missing,
        remedy=remedy,
    )
