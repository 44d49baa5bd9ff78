"""Needs and what there is for a skill -> the same needs, each with whether it is met and the one act that meets it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.find.needs.packages import program_sources
from skillkit.core.find.needs.siblings import ABOVE, IN_PLUGIN, has_module, is_of_skills, sibling_folder
from skillkit.core.find.needs.surroundings import Surroundings
from skillkit.core.models.detect.languages import LANGUAGE_INTERPRETERS
from skillkit.core.paths.forbidden import forbidden_paths
from skillkit.core.values.hosts import USUAL_PORTS, HostRule
from skillkit.core.values.names import grant_command, is_grantable_name
from skillkit.core.values.needs import GRANT_KINDS, Need

__all__ = ["met"]

CLOSED_LOOPBACK = ("landlock",)
OTHER_TYPED = tuple(name for name in LANGUAGE_INTERPRETERS["typescript"] if name != "node")
INSTALLERS = (("apt-get", "apt install"), ("brew", "brew install"), ("dnf", "dnf install"), ("apk", "apk add"))


def met(needs: Iterable[Need], surroundings: Surroundings) -> tuple[Need, ...]:
    """In the same order; what is met has no remedy. What leads out of the skill counts where there is such a folder."""
    found: dict[tuple[str, str], Need] = {}
    for need in needs:
        there = _there(need, surroundings)
        if there is not None and (there.kind, there.name) not in found:
            found[there.kind, there.name] = _looked_at(there, surroundings)
    siblings = [need.name for need in found.values() if _is_outside(need, surroundings)]
    return tuple(need for need in found.values() if not (siblings and _is_module_of(need, siblings)))


def _is_outside(need: Need, around: Surroundings) -> bool:
    return need.kind == "read" and is_of_skills(need.name, around.plugin_root or None)


def _is_module_of(need: Need, siblings: Iterable[str]) -> bool:
    """Whether what looks like a package is a module of a folder that the script puts on its path."""
    name = need.name.replace("-", "_")
    is_guess = need.kind == "package" and need.source == "inferred"
    return is_guess and any(has_module(folder, name) for folder in siblings)


def _there(need: Need, around: Surroundings) -> Need | None:
    """The same by the real folder, of a place that code names from its skill's."""
    if need.kind != "read" or not need.name.startswith((ABOVE, IN_PLUGIN)):
        return need
    folder = sibling_folder(need.name, around.folder, around.plugin_root or None) if around.folder else ""
    return replace(need, name=folder) if folder else None


def _looked_at(need: Need, around: Surroundings) -> Need:
    remedy = REMEDIES[need.kind](need, around)
    return replace(need, is_met=not remedy, remedy=remedy)


def _grant(need: Need, around: Surroundings, flag: str = "") -> str:
    """The command that gives exactly this, as it is typed."""
    option = flag or f"--{need.kind.replace('_', '-')}"
    # Where the shell must expand `~`, a quote would keep it from that.
    name = f"~/{shlex.quote(need.name[2:])}" if need.name.startswith("~/") else shlex.quote(need.name)
    private = " --private" if need.grant is not None and need.grant.is_private else ""
    return f"{grant_command(around.skill_name)} {option} {name}{private}"


def _is_granted(need: Need, around: Surroundings) -> bool:
    return f"{need.kind}:{need.name}" in _granted(around)


def _granted(around: Surroundings) -> frozenset[str]:
    """What policy lets a person give."""
    kinds = getattr(around.policy, "grantable", GRANT_KINDS)
    return frozenset(each for each in around.granted if each.partition(":")[0] in kinds)


def _host(need: Need, around: Surroundings) -> str:
    policy = around.policy
    given = [each.removeprefix("host:") for each in _granted(around) if each.startswith("host:")]
    is_open = policy.allow_network or policy.sandbox == "off" or _is_opened(need.name, (*policy.allowed_hosts, *given))
    if need.grant is None and not is_open:
        return f"{grant_command(around.skill_name)} --host NAME for each host, or run it with --network"
    return "" if is_open else _grant(need, around)


def _is_opened(host: str, rules: Iterable[str]) -> bool:
    try:
        wanted = HostRule.parse(host)
    except ConfigurationError:
        return False
    port = wanted.port or USUAL_PORTS[0]
    return any(HostRule.from_id(each).opens(wanted.name, port) for each in rules)


def _secret(need: Need, around: Surroundings) -> str:
    if _is_passed(need, around):
        return ""
    if need.name not in around.environment and need.name in around.refused:
        return around.refused[need.name]
    if need.name not in around.environment and need.name not in around.stored:
        return f"skillkit secret set {shlex.quote(around.skill_name)} {need.name}"
    return "" if _is_granted(need, around) else _grant(need, around)


def _variable(need: Need, around: Surroundings) -> str:
    if _is_passed(need, around):
        return ""
    if need.name not in around.environment:
        return f"export {need.name}=..."
    return "" if _is_granted(need, around) else _grant(need, around)


def _is_passed(need: Need, around: Surroundings) -> bool:
    policy = around.policy
    is_named = policy.inherit_environment or need.name in policy.pass_environment
    return is_named and need.name in around.environment and is_grantable_name(need.name)


def _package(need: Need, around: Surroundings) -> str:
    return "" if need.name in around.packages else f"skillkit prepare {shlex.quote(around.skill_name)}"


def _place(need: Need, around: Surroundings) -> str:
    policy = around.policy
    folders = policy.writable_paths if need.kind == "write" else (*policy.readable_paths, *policy.writable_paths)
    place = Path(need.name).expanduser()
    is_open = policy.allow_filesystem or policy.sandbox == "off"
    is_open = is_open or any(place.is_relative_to(folder) for folder in folders)
    is_open = is_open or any(each.startswith(f"{need.kind}:{need.name} sha256:") for each in _granted(around))
    is_open = is_open or bool(around.workspace and place.is_relative_to(around.workspace))
    if is_open or _is_granted(need, around):
        return ""
    is_closed = forbidden_paths(None).covers(os.path.realpath(place))
    return f"nothing: {need.name} is never opened to scripts" if is_closed else _grant(need, around)


def _working_directory(need: Need, around: Surroundings) -> str:
    chosen = around.policy.working_directory
    is_right = chosen in (need.name, "auto") or _granted(around) & {
        f"working_directory:{need.name}",
        "working_directory:auto",
    }
    return "" if is_right else _grant(need, around)


def _interpreter(need: Need, around: Surroundings) -> str:
    """TypeScript runs on any of several."""
    listed = {
        *around.policy.allowed_interpreters,
        *(each.partition(":")[2] for each in _granted(around) if each.startswith("interpreter:")),
    }
    suitable = OTHER_TYPED if need.name in OTHER_TYPED else (need.name,)
    present = [name for name in suitable if name in around.programs]
    if (suitable is OTHER_TYPED and around.runs_types and "node" in listed) or any(name in listed for name in present):
        return ""
    chosen = need.name if need.name in present or not present else present[0]
    return _grant(replace(need, name=chosen), around) if present else _installation(chosen, around)


def _home(_: Need, around: Surroundings) -> str:
    is_kept = getattr(around.policy, "home", "kept") == "kept" or around.policy.sandbox == "off"
    return "" if is_kept else 'set home = "kept" under [policy] in skillkit.toml'


def _loopback(_: Need, around: Surroundings) -> str:
    is_open = around.policy.allow_network or around.tier not in CLOSED_LOOPBACK
    return "" if is_open else _installation("bwrap", around)


def _program(need: Need, around: Surroundings) -> str:
    return "" if need.name in around.programs else _installation(need.name, around)


def _installation(program: str, around: Surroundings) -> str:
    """By the system's own installer where the package is known; else only what is missing."""
    package = program_sources(program)
    for installer, command in INSTALLERS:
        if package and installer in around.programs:
            return f"{command} {package if installer == 'apt-get' else program}"
    return f"install {program}"


REMEDIES: dict[str, Callable[[Need, Surroundings], str]] = {
    "host": _host,
    "secret": _secret,
    "variable": _variable,
    "read": _place,
    "write": _place,
    "working_directory": _working_directory,
    "interpreter": _interpreter,
    "package": _package,
    "home": _home,
    "loopback": _loopback,
    "program": _program,
}
