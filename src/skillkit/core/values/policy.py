"""ScriptPolicy and the named profiles: plain values that say what may run and how.

What each field can be and which of two values allows less stands once, in `FIELDS`: the policy checks itself by it,
configuration and agent files read their keys and their order of strictness from it, and so does the reference.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.values.hosts import HostRule, require_openable
from skillkit.core.values.needs import GRANT_KINDS

__all__ = [
    "FIELDS",
    "GUARDED",
    "INTERPRETERS",
    "LOCKED",
    "PATH_LISTS",
    "PROFILES",
    "STANDARD",
    "TIMEOUT_RANGE_SECONDS",
    "TRUSTED",
    "Limits",
    "Loosening",
    "PolicyField",
    "ScriptPolicy",
    "loosenings",
    "require_policy",
    "require_timeout",
    "value_of",
]

TIMEOUT_RANGE_SECONDS = (1, 600)
INTERPRETERS = ("python3", "bash", "node", "ruby", "perl")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use; each holds for one process, the number of processes for the whole run.

    What the home may hold is measured after each run. `warm_` is about what this program keeps ready for the next.
    """

    data_megabytes: int = 1024
    file_megabytes: int = 100
    processes: int = 64
    open_files: int = 256
    temporary_megabytes: int = 64
    home_megabytes: int = 100
    warm_sandboxes: int = 2
    warm_megabytes: int = 512

    def __post_init__(self) -> None:
        for each in fields(self):
            FIELDS[f"limits.{each.name}"].read(f"limits.{each.name}", getattr(self, each.name))


@dataclass(frozen=True, slots=True)
class ScriptPolicy:
    """What scripts may do. A bare one allows nothing; an empty list means nothing, never everything."""

    allow_scripts: bool = False
    allow_network: bool = False
    allowed_hosts: tuple[str, ...] = ()
    allow_filesystem: bool = False
    timeout_seconds: float = 30
    allowed_commands: tuple[str, ...] = ()
    allowed_interpreters: tuple[str, ...] = INTERPRETERS
    allowed_tools_mode: str = "restrict"
    approval: str = "first_run"
    run_on_load: str = "ask"
    working_directory: str = "skill"
    pass_environment: tuple[str, ...] = ()
    inherit_environment: bool = False
    readable_paths: tuple[Path, ...] = ()
    writable_paths: tuple[Path, ...] = ()
    grant_argument_paths: bool = True
    home: str = "fresh"
    grantable: tuple[str, ...] = ()
    sandbox: str = "required"
    warm: str = "auto"
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        for name, row in FIELDS.items():
            if "." not in name:
                object.__setattr__(self, name, row.read(name, getattr(self, name)))
        if not isinstance(self.limits, Limits):
            raise ConfigurationError(f"limits is {self.limits!r}; it must be Limits(...).")


class PolicyField(NamedTuple):
    """One row of the table of fields."""

    values: str
    """What it can be, in words."""
    read: Callable[[str, Any], Any]
    """Name and value -> the value as the policy keeps it, or ConfigurationError."""
    is_kept: Callable[[Any, Any], bool]
    """Whether the second value is at most as loose as the first; where two cannot be compared, it is not."""
    tighter: str
    """Which value allows less, in words."""
    choices: tuple[str, ...] = ()


class Loosening(NamedTuple):
    """One field that somebody would make looser than it is."""

    key: str
    own: Any
    given: Any
    reason: str


def loosenings(own: ScriptPolicy, given: ScriptPolicy) -> Iterator[Loosening]:
    """Where the second policy is looser than the first, field by field: a field is never excused by another one.

    Hosts are the exception: who opened the whole network opened every one of them.
    """
    for name, row in FIELDS.items():
        ours, theirs = value_of(own, name), value_of(given, name)
        is_part = row is HOSTS and own.allow_network
        if not is_part and not row.is_kept(ours, theirs):
            yield Loosening(f"policy.{name}", ours, theirs, row.tighter)


def value_of(policy: ScriptPolicy, name: str) -> object:
    table, _, last = name.rpartition(".")
    value: object = getattr(getattr(policy, table) if table else policy, last)
    return value


def require_timeout(seconds: object) -> None:
    lowest, highest = TIMEOUT_RANGE_SECONDS
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not lowest <= seconds <= highest:
        raise ConfigurationError(
            f"A timeout is {lowest} to {highest} seconds; {seconds!r} is not. Choose one in that range."
        )


def require_policy(policy: object) -> ScriptPolicy:
    if not isinstance(policy, ScriptPolicy):
        raise ConfigurationError(
            f"A policy is a ScriptPolicy; {policy!r} is not. Name a profile of skillkit's, such as skillkit.GUARDED, "
            "or make one: skillkit.ScriptPolicy(...)."
        )
    return policy


def _read_timeout(_: str, value: Any) -> Any:  # noqa: ANN401 - any value may be given, and a good one is given back
    require_timeout(value)
    return value


def _read_switch(name: str, value: Any) -> Any:  # noqa: ANN401
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} is {value!r}; it must be true or false.")
    return value


def _read_count(name: str, value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigurationError(f"{name} is {value!r}; it must be a whole number above 0.")
    return value


def _read_choice(choices: tuple[str, ...], name: str, value: Any) -> Any:  # noqa: ANN401
    if value not in choices:
        raise ConfigurationError(f"{name} is {value!r}; it must be one of: {', '.join(choices)}.")
    return value


def _read_names(name: str, value: Any) -> tuple[str, ...]:  # noqa: ANN401
    items = None if isinstance(value, str | bytes) or not isinstance(value, Iterable) else tuple(value)
    if items is None or not all(isinstance(item, str | Path) for item in items):
        raise ConfigurationError(f"{name} is {value!r}; it must be a list of texts.")
    return tuple(map(str, items))


def _read_hosts(name: str, value: Any) -> tuple[str, ...]:  # noqa: ANN401
    return tuple(require_openable(HostRule.from_id(item)).id for item in _read_names(name, value))


def _read_kinds(name: str, value: Any) -> tuple[str, ...]:  # noqa: ANN401
    kinds = _read_names(name, value)
    if unknown := [kind for kind in kinds if kind not in GRANT_KINDS]:
        raise ConfigurationError(f"{name} names {unknown[0]!r}; what can be granted is: {', '.join(GRANT_KINDS)}.")
    return kinds


def _read_paths(name: str, value: Any) -> tuple[Path, ...]:  # noqa: ANN401
    return tuple(Path(item).expanduser().absolute() for item in _read_names(name, value))


def _is_no_more(own: float, given: float) -> bool:
    """False is less than True."""
    return given <= own


def _is_no_looser(loosest_first: tuple[str, ...], own: str, given: str) -> bool:
    return loosest_first.index(given) >= loosest_first.index(own)


def _are_fewer(own: tuple[str, ...], given: tuple[str, ...]) -> bool:
    return set(given) <= set(own)


def _are_fewer_commands(own: tuple[str, ...], given: tuple[str, ...]) -> bool:
    """Programs may only become fewer. Scripts are free without an entry, so the first ones narrow; then no new ones.

    Entries are compared as texts: whether one pattern covers another is for those who match them to know.
    """
    own_scripts, given_scripts = ({entry for entry in each if "/" in entry} for each in (own, given))
    narrows_scripts = not own_scripts or (bool(given_scripts) and given_scripts <= own_scripts)
    return {*given} - given_scripts <= {*own} - own_scripts and narrows_scripts


def _are_covered(own: tuple[str, ...], given: tuple[str, ...]) -> bool:
    rules = [HostRule.from_id(each) for each in own]
    return all(any(rule.covers(HostRule.from_id(each)) for rule in rules) for each in given)


def _are_inside(own: tuple[Path, ...], given: tuple[Path, ...]) -> bool:
    """By real paths: what a link leads to counts, not where it stands."""
    folders = [Path(os.path.realpath(path)) for path in own]
    return all(any(Path(os.path.realpath(path)).is_relative_to(folder) for folder in folders) for path in given)


def _choice(choices: tuple[str, ...], is_kept: Callable[[str, str], bool], tighter: str) -> PolicyField:
    return PolicyField(", ".join(choices), partial(_read_choice, choices), is_kept, tighter, choices)


SWITCH = PolicyField("true or false", _read_switch, _is_no_more, "true lets a script do or see more")
NAMES = PolicyField("list of texts", _read_names, _are_fewer, "fewer entries allow less")
PATHS = PolicyField(
    "list of paths", _read_paths, _are_inside, "only what lies inside a path of the user's own list is no more than it"
)
HOSTS = PolicyField(
    "list of hosts",
    _read_hosts,
    _are_covered,
    "only hosts and ports that an entry of the user's own list covers are no more than it",
)
COUNT = PolicyField("whole number above 0", _read_count, _is_no_more, "a lower number allows less")
SECONDS = PolicyField("number, {} to {}".format(*TIMEOUT_RANGE_SECONDS), _read_timeout, _is_no_more, COUNT.tighter)

FIELDS: dict[str, PolicyField] = {
    "allow_scripts": SWITCH,
    "allow_network": SWITCH,
    "allowed_hosts": HOSTS,
    "allow_filesystem": SWITCH,
    "timeout_seconds": SECONDS,
    "allowed_commands": NAMES._replace(
        is_kept=_are_fewer_commands,
        tighter="fewer programs allow less; entries with '/' restrict scripts, "
        "so the first ones do and no new ones may follow",
    ),
    "allowed_interpreters": NAMES,
    "allowed_tools_mode": _choice(
        ("restrict", "grant", "ignore"),
        lambda own, given: own in (given, "ignore"),
        "'ignore' is the loosest; 'restrict' forbids where 'grant' asks, 'grant' asks where 'restrict' is silent, "
        "so neither is tighter",
    ),
    "approval": _choice(
        ("never", "first_run", "always"),
        partial(_is_no_looser, ("never", "first_run", "always")),
        "a person is asked more often from left to right: never, first_run, always",
    ),
    "run_on_load": _choice(
        ("ask", "trusted", "never"),
        partial(_is_no_looser, ("ask", "trusted", "never")),
        "fewer commands run when a skill is loaded from left to right: ask, trusted, never",
    ),
    "working_directory": _choice(
        ("skill", "workspace", "auto"),
        lambda own, given: own == given,
        "one is not tighter than the other: programs find other files beside them in each",
    ),
    "pass_environment": NAMES,
    "inherit_environment": SWITCH,
    "readable_paths": PATHS,
    "writable_paths": PATHS,
    "grant_argument_paths": SWITCH,
    "home": _choice(
        ("kept", "fresh"),
        partial(_is_no_looser, ("kept", "fresh")),
        "in a fresh home nothing is left of earlier runs",
    ),
    "grantable": NAMES._replace(values=f"list of: {', '.join(GRANT_KINDS)}", read=_read_kinds),
    "sandbox": _choice(
        ("required", "preferred", "off"),
        partial(_is_no_looser, ("off", "preferred", "required")),
        "walls are surer from left to right: off, preferred, required",
    ),
    "warm": _choice(
        ("auto", "off"),
        partial(_is_no_looser, ("auto", "off")),
        "with 'off' nothing is started before it is asked for",
    ),
    **{f"limits.{each.name}": COUNT for each in fields(Limits)},
}
PATH_LISTS = tuple(name for name, row in FIELDS.items() if row is PATHS)

LOCKED = ScriptPolicy(approval="always")
"""Nothing runs."""

GUARDED = ScriptPolicy(allow_scripts=True, home="kept", grantable=GRANT_KINDS)
"""Walls required, a person asked on the first run; what agents get unless told otherwise."""

STANDARD = ScriptPolicy(allow_scripts=True, approval="never", home="kept", sandbox="preferred", grantable=GRANT_KINDS)
"""Walls where the machine has them, nobody asked; what Python callers get."""

TRUSTED = ScriptPolicy(
    allow_scripts=True,
    allow_network=True,
    allow_filesystem=True,
    approval="never",
    home="kept",
    sandbox="off",
    grantable=GRANT_KINDS,
)
"""No walls: scripts run with the caller's own rights."""

PROFILES = {"locked": LOCKED, "guarded": GUARDED, "standard": STANDARD, "trusted": TRUSTED}
