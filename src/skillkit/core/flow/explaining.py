"""A run that failed and what its script needs -> the same result with what it lacked, and what would give it.

A need explains a failure only where something points to it: the script's own words, the hint, a host that was refused.
Where nothing is known at all, what it lacks is told; where another cause is known, it is not.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import replace

from skillkit.core.exceptions import SkillKitError
from skillkit.core.flow.granting import BY_GRANT
from skillkit.core.values.needs import Need
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.runs import PreparedRun, ScriptExecutionResult

__all__ = ["explained"]

HINTED = 3
BY_POLICY = "set the policy key working_directory to 'workspace'"
READ = 8_000  # characters of each stream: the cause stands at the end
NETWORK = "--network"
NO_MODULE = re.compile(r"^ModuleNotFoundError: No module named '([\w.]{1,200})'", re.MULTILINE)
NO_FILE = re.compile(r"\bCannot find (?:module|package) '([^'\n]{1,300})'")


def explained(prepared: PreparedRun, result: ScriptExecutionResult, policy: ScriptPolicy) -> ScriptExecutionResult:
    """The same; of one that failed with what it lacked, and in its hint what is here and was not given."""
    if result.success or result.cancelled or prepared.needs is None:
        return result
    result = replace(result, hint=_typed(result.hint, prepared.command.skill_name, policy))
    said = ""
    with suppress(SkillKitError, OSError):  # the run has ended, and what cannot be looked at is not said
        needs = prepared.needs()
        if outside := _outside(needs, result):
            told = f"It uses {outside.name}, which is outside the walls: {outside.remedy}"
            return replace(result, hint=told, needs=(outside,))
        said = "" if result.timed_out else _hint(policy, needs, result, prepared.command.skill_name)
        result = replace(result, needs=_lacked(needs, result))
    if not said:
        return result
    is_told = said.split(maxsplit=1)[0] in result.hint  # of the same name, with the remedy for who has no grants
    return replace(result, hint=said if is_told else f"{result.hint} {said}".strip())


def _typed(hint: str, skill_name: str, policy: ScriptPolicy) -> str:
    """Where a person may give the skill another folder to start in, the command that does it."""
    if "working_directory" not in policy.grantable:
        return hint
    return hint.replace(BY_POLICY, f"type {BY_GRANT}{shlex.quote(skill_name)} --working-directory workspace")


def _outside(needs: Iterable[Need], result: ScriptExecutionResult) -> Need | None:
    """For a module that was not found: the folder of the same plugin which has it, and which was not given."""
    from skillkit.core.find.needs.siblings import has_module

    module, file = NO_MODULE.search(result.stderr[-READ:]), NO_FILE.search(result.stderr[-READ:])
    for need in (each for each in needs if each.kind == "read" and not each.is_met):
        is_named = file is not None and f"/{os.path.basename(need.name)}/" in file[1]
        if is_named or (module is not None and has_module(need.name, module[1])):
            return need
    return None


def _hint(policy: ScriptPolicy, needs: Collection[Need], result: ScriptExecutionResult, skill_name: str) -> str:
    """Of a failure: what is set here and was not given; where the network is closed, the hosts that it names."""
    kinds = [kind for kind in ("secret", "variable") if kind in policy.grantable]
    held = [need for need in needs if need.kind in kinds and need.remedy.startswith(BY_GRANT)]
    named = [need for need in held if need.name in result.stderr or need.name in result.stdout]
    named = named or ([] if result.hint else held)
    told = [f"{need.name} is set here, but was not passed to it: {need.remedy}" for need in named]
    unset = [need for need in needs if need.kind in kinds and result.hint.startswith(f"{need.name} is not set")]
    told += [_unset(need, skill_name) for need in unset]
    if NETWORK in result.hint and "host" in policy.grantable:
        hosts = [need for need in needs if need.kind == "host" and need.remedy.startswith(BY_GRANT) and need.grant]
        told += [f"{need.name} alone is opened by: {need.remedy}" for need in hosts]
    return " ".join(told[:HINTED])


def _unset(need: Need, skill_name: str) -> str:
    """Two steps: there must be a value before it can be given."""
    kept = f" or keep it ({need.remedy})" if need.kind == "secret" else ""
    given = f"{BY_GRANT}{shlex.quote(skill_name)} --{need.kind} {need.name}"
    return f"{need.name} is not set; set it here{kept}, then: {given}"


def _lacked(needs: Iterable[Need], result: ScriptExecutionResult) -> tuple[Need, ...]:
    """Of a run that failed: unmet needs that its words, its hint or a refused host point to; else all of them.

    Where another cause is known, none: what a script could use explains nothing by itself.
    """
    unmet = [need for need in needs if not need.is_met and need.kind != "working_directory"]
    said = f"{result.stdout[-READ:]}\n{result.stderr[-READ:]}\n{result.hint}"
    pointed = [need for need in unmet if _is_pointed_to(need, result, said)]
    return tuple(pointed or (() if result.hint or result.signal else unmet))


def _is_pointed_to(need: Need, result: ScriptExecutionResult, said: str) -> bool:
    if need.kind == "package" and result.needs_packages:
        return True
    if need.kind == "host":
        is_refused = any(each.refused for each in result.hosts)
        return is_refused or result.timed_out or NETWORK in result.hint or need.name.removeprefix("*.") in said
    name = need.name.removeprefix("npm:").removeprefix("~/")
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", said) is not None
