"""Two policies -> where the second is looser than the first, with the order of every field as data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from skillkit.core.policy import Limits, ScriptPolicy

__all__ = ["ORDERS", "Loosening", "Order", "loosenings"]


@dataclass(frozen=True, slots=True)
class Order:
    """Whether a value is at most as loose as the user's; where two cannot be compared, it is not."""

    is_kept: Callable[[Any, Any], bool]
    """Of the user's value and the project's."""
    reason: str


@dataclass(frozen=True, slots=True)
class Loosening:
    """One field that a project would make looser."""

    key: str
    own: Any
    given: Any
    reason: str


def loosenings(own: ScriptPolicy, given: ScriptPolicy) -> Iterator[Loosening]:
    """Field by field: a field is never excused by another one."""
    for name, order in ORDERS.items():
        ours, theirs = value_of(own, name), value_of(given, name)
        if not order.is_kept(ours, theirs):
            yield Loosening(f"policy.{name}", ours, theirs, order.reason)


def value_of(policy: ScriptPolicy, name: str) -> object:
    value: object = policy
    for part in name.split("."):
        value = getattr(value, part)
    return value


def is_no_more(own: float, given: float) -> bool:
    """False is less than True."""
    return given <= own


def is_subset(own: tuple[str, ...], given: tuple[str, ...]) -> bool:
    return set(given) <= set(own)


def is_unchanged(own: object, given: object) -> bool:
    return given == own


def ascending(*loosest_first: str) -> Callable[[str, str], bool]:
    return lambda own, given: loosest_first.index(given) >= loosest_first.index(own)


def is_unchanged_or_was_ignored(own: str, given: str) -> bool:
    return own in (given, "ignore")


def are_inside(own: tuple[Path, ...], given: tuple[Path, ...]) -> bool:
    """By real paths: what a link leads to counts, not where it stands."""
    folders = [Path(os.path.realpath(path)) for path in own]
    return all(any(Path(os.path.realpath(path)).is_relative_to(folder) for folder in folders) for path in given)


def are_fewer_commands(own: tuple[str, ...], given: tuple[str, ...]) -> bool:
    """Programs may only become fewer. Scripts are free without an entry, so the first ones narrow; then no new ones.

    Entries are compared as texts: whether one pattern covers another is for those who match them to know.
    """
    own_scripts, given_scripts = ({entry for entry in each if "/" in entry} for each in (own, given))
    own_programs, given_programs = ({entry for entry in each if "/" not in entry} for each in (own, given))
    narrows_scripts = not own_scripts or (bool(given_scripts) and given_scripts <= own_scripts)
    return given_programs <= own_programs and narrows_scripts


SWITCH = "true lets a script do or see more"
FEWER = "fewer entries allow less"
LESS = "a lower number allows less"

ORDERS: dict[str, Order] = {
    "allow_scripts": Order(is_no_more, SWITCH),
    "allow_network": Order(is_no_more, SWITCH),
    "allow_filesystem": Order(is_no_more, SWITCH),
    "timeout_seconds": Order(is_no_more, LESS),
    "allowed_commands": Order(
        are_fewer_commands,
        "fewer programs allow less; entries with '/' restrict scripts, so the first ones do and no new ones may follow",
    ),
    "allowed_interpreters": Order(is_subset, FEWER),
    "allowed_tools_mode": Order(
        is_unchanged_or_was_ignored,
        "'ignore' is the loosest; 'restrict' forbids where 'grant' asks, 'grant' asks where 'restrict' is silent, "
        "so neither is tighter",
    ),
    "approval": Order(
        ascending("never", "first_run", "always"),
        "a person is asked more often from left to right: never, first_run, always",
    ),
    "working_directory": Order(
        is_unchanged, "one is not tighter than the other: programs find other files beside them in each"
    ),
    "pass_environment": Order(is_subset, FEWER),
    "inherit_environment": Order(is_no_more, SWITCH),
    "readable_paths": Order(are_inside, "only what lies inside a path of the user's own list is no more than it"),
    "writable_paths": Order(are_inside, "only what lies inside a path of the user's own list is no more than it"),
    "grant_argument_paths": Order(is_no_more, SWITCH),
    "sandbox": Order(
        ascending("off", "preferred", "required"), "walls are surer from left to right: off, preferred, required"
    ),
    **{f"limits.{each.name}": Order(is_no_more, LESS) for each in fields(Limits)},
}
