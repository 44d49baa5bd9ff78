"""A policy and what a person gave a skill -> the policy that holds for that skill; and the words for each grant."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from skillkit.core.values.hosts import HostRule
from skillkit.core.values.needs import ANY_HOST, Grant

if TYPE_CHECKING:
    from skillkit.core.values.policy import ScriptPolicy

__all__ = ["grant_label", "named_grants", "names_of", "rule_of", "widened"]

Item = TypeVar("Item")

_LABELS = {
    "host": "the host {0}",
    "secret": "the key {0}",
    "variable": "the variable {0}",
    "read": "read {0}",
    "write": "read and write {0}",
    "working_directory": "start in the {0}",
    "interpreter": "run with {0}",
}
_WORDS = {"skill": "skill's folder", "auto": "folder that fits it"}


def named_grants(
    *,
    hosts: Iterable[str] = (),
    secrets: Iterable[str] = (),
    variables: Iterable[str] = (),
    read: Iterable[str | Path] = (),
    write: Iterable[str | Path] = (),
    working_directory: str | None = None,
    interpreters: Iterable[str] = (),
    private: bool = False,
) -> tuple[Grant, ...]:
    """One grant for each thing that is named; `private` is for the hosts."""
    return (
        *(Grant("host", name, private) for name in hosts),
        *(Grant("secret", name) for name in secrets),
        *(Grant("variable", name) for name in variables),
        *(Grant("read", str(path)) for path in read),
        *(Grant("write", str(path)) for path in write),
        *([Grant("working_directory", working_directory)] if working_directory else []),
        *(Grant("interpreter", name) for name in interpreters),
    )


def names_of(kind: str, grants: Iterable[Grant]) -> tuple[str, ...]:
    """What grants of one kind name, in their order."""
    return tuple(grant.name for grant in grants if grant.kind == kind)


def rule_of(host: Grant) -> str:
    """A granted host as policies name it."""
    return HostRule.parse(host.name, is_private=host.is_private).id


def widened(policy: ScriptPolicy, grants: Collection[Grant]) -> ScriptPolicy:
    """The same, and what it says can be granted is given; keys are no part of a policy."""
    given = [grant for grant in grants if grant.kind in policy.grantable]
    if not given:
        return policy
    folder = names_of("working_directory", given)
    return replace(
        policy,
        allowed_hosts=_with(policy.allowed_hosts, (rule_of(grant) for grant in given if grant.kind == "host")),
        pass_environment=_with(policy.pass_environment, names_of("variable", given)),
        readable_paths=_with(policy.readable_paths, map(Path, names_of("read", given))),
        writable_paths=_with(policy.writable_paths, map(Path, names_of("write", given))),
        allowed_interpreters=_with(policy.allowed_interpreters, names_of("interpreter", given)),
        working_directory=folder[-1] if folder else policy.working_directory,
    )


def _with(own: tuple[Item, ...], more: Iterable[Item]) -> tuple[Item, ...]:
    return tuple(dict.fromkeys((*own, *more)))


def grant_label(grant: Grant) -> str:
    """What it gives, as a person reads it."""
    private = ", also at private addresses" if grant.is_private else ""
    private += f", as it is now ({grant.content[:12]})" if grant.content else ""
    if grant.kind == "host" and grant.name.partition(":")[0] == ANY_HOST:
        return f"any public host{grant.name.removeprefix(ANY_HOST)}"
    return _LABELS[grant.kind].format(_WORDS.get(grant.name, grant.name)) + private
