"""A run and its policy -> the home it gets; what it left there -> whether the next run gets it too."""

from __future__ import annotations

import shlex
from dataclasses import replace

from skillkit.core.exceptions import ScriptRefusedError, StateUnavailableError
from skillkit.core.store.homes import Home, Homes, HomeSize
from skillkit.core.values.policy import Limits, ScriptPolicy
from skillkit.core.values.runs import ScriptCommand, ScriptExecutionResult

__all__ = ["open_home", "told_of_home"]


def open_home(homes: Homes, command: ScriptCommand, policy: ScriptPolicy) -> Home | None:
    """The home that stays, or None for a new one; one that holds too much is refused."""
    if policy.home != "kept" or policy.allow_filesystem or command.is_program:
        return None
    skill, folder = command.skill_name, command.base_directory
    try:
        home = homes.open(skill, folder, command.digest, stays=policy.approval == "never")
    except OSError as error:
        raise StateUnavailableError(
            f"The home of {skill!r} cannot be opened: {error.strerror or error}. {_remedy(skill)}"
        ) from error
    if home.above:
        size = homes.measure(home.path)
        if homes.note_size(skill, folder, home.path, size, policy.limits.home_megabytes):
            raise ScriptRefusedError.because(_too_much(skill, size, policy.limits), _remedy(skill))
    return home


def told_of_home(
    homes: Homes, command: ScriptCommand, home: Home, limits: Limits, result: ScriptExecutionResult
) -> ScriptExecutionResult:
    """The result, and in its hint that the home is a new one, or holds too much for another run."""
    skill, said = command.skill_name, []
    if home.is_after_change:
        where = f"skillkit home {shlex.quote(skill)}"
        said.append(f"{skill!r} changed, so it began with an empty home; what it kept before is set aside: {where}")
    size = homes.measure(home.path)
    try:
        is_above = homes.note_size(skill, command.base_directory, home.path, size, limits.home_megabytes)
    except StateUnavailableError:  # the next run finds out by itself
        is_above = size.is_above(limits.home_megabytes)
    if is_above:
        said.append(f"{_too_much(skill, size, limits)}: its next run is refused. {_remedy(skill)}")
    return replace(result, hint=" ".join(filter(None, (result.hint, *said)))) if said else result


def _too_much(skill: str, size: HomeSize, limits: Limits) -> str:
    if not size.is_whole:
        return f"The home that is kept for {skill!r} holds more, or deeper, than can be looked through"
    return (
        f"The home that is kept for {skill!r} holds {size.megabytes:,.0f} MB, more than the "
        f"{limits.home_megabytes:,} MB of the policy key limits.home_megabytes"
    )


def _remedy(skill: str) -> str:
    return f"Empty it with: skillkit home {shlex.quote(skill)} --clear"
