"""What walls and policy give to a run, as a value: what a person was shown, and whether a later run would get more."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from hashlib import sha256
from typing import Any

from skillkit.core.values.grants import names_of, rule_of
from skillkit.core.values.hosts import HostRule
from skillkit.core.values.needs import Grant

__all__ = ["ANY_WORKSPACE", "PREPARED", "Bounds", "tiers_within", "walls_digest"]

PREPARED = "prepared"

ANY_WORKSPACE = "*"
"""In the place of a workspace: whichever a run has, as trust is given before there is one."""

_LATER = frozenset(("hosts", "secrets"))
# From the widest: each lets a run do and see at least what those after it do.
TIERS = ("none", "job", "landlock", "seatbelt", "bubblewrap")


@dataclass(frozen=True, slots=True)
class Bounds:
    """All paths are real ones, as they were when this was made."""

    tier: str
    as_root: bool
    """Nothing counts the processes of root."""
    network: bool
    filesystem: bool
    argument_paths: bool
    """Whether it may read what its arguments name."""
    workspace: str
    """Empty without one."""
    readable: tuple[str, ...]
    writable: tuple[str, ...]
    variables: tuple[str, ...]
    all_variables: bool
    working_directory: str
    home: str
    """Whether it finds what earlier runs left there: `kept` or `fresh`."""
    interpreters: tuple[str, ...]
    """Those that the policy allows."""
    interpreter: str
    """The one that runs this script; empty where no script was named."""
    program: tuple[str, ...]
    """Where that interpreter is, and what that leads to; PREPARED in place of a prepared environment's own."""
    limits: tuple[tuple[str, int], ...]
    seconds: float
    """After which it is stopped."""
    secrets: tuple[str, ...] = ()
    """Names of the keys that were granted."""
    hosts: tuple[str, ...] = ()
    """Those it may reach without the whole network, as rules."""

    def hold(self, run: Bounds) -> bool:
        """Whether a run with the other bounds gets nothing that is not within these; a field excuses no other."""
        return all(
            (
                run.tier == self.tier or _is_narrower(run.tier, self.tier),
                run.as_root <= self.as_root,
                run.network <= self.network,
                self.network or _are_covered(run.hosts, self.hosts),
                run.filesystem <= self.filesystem,
                run.argument_paths <= self.argument_paths,
                self.workspace == ANY_WORKSPACE or _are_inside((run.workspace,), (self.workspace,)),
                _are_inside(run.readable, self.readable),
                _are_inside(run.writable, self.writable),
                {*run.variables} <= {*self.variables} or self.all_variables,
                run.all_variables <= self.all_variables,
                # Beside a script that starts in its skill lies nothing but what was approved.
                run.working_directory in (self.working_directory, "skill"),
                run.home in (self.home, "fresh"),
                run.interpreter in (*self.interpreters, self.interpreter),
                run.interpreter != self.interpreter or _is_same_program(run.program, self.program),
                {*run.secrets} <= {*self.secrets},
                _are_no_higher(run.limits, self.limits),
                run.seconds <= self.seconds,
            )
        )

    def with_grants(self, grants: Iterable[Grant]) -> Bounds:
        """The same, and these are given too."""
        given = tuple(grants)
        if not given:
            return self
        folder = names_of("working_directory", given)
        return replace(
            self,
            readable=_joined(self.readable, names_of("read", given)),
            writable=_joined(self.writable, names_of("write", given)),
            variables=_joined(self.variables, names_of("variable", given)),
            interpreters=_joined(self.interpreters, names_of("interpreter", given)),
            secrets=_joined(self.secrets, names_of("secret", given)),
            hosts=_joined(self.hosts, (rule_of(grant) for grant in given if grant.kind == "host")),
            working_directory=folder[-1] if folder else self.working_directory,
        )

    def to_text(self) -> str:
        """As JSON, always the same for the same bounds; what came later stands there only where there is some."""
        told = asdict(self)
        return json.dumps({name: told[name] for name in told if name not in _LATER or told[name]}, sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Bounds | None:
        """None for what another version wrote, or nobody: it holds nothing."""
        try:
            kept = json.loads(text)
            named = [each.name for each in fields(cls) if each.name not in _LATER or each.name in kept]
            made = cls(**{name: _as_tuples(kept[name]) for name in named})
        except (KeyError, TypeError, ValueError):
            return None
        return made if made.to_text() == text else None


def tiers_within(tier: str) -> tuple[str, ...]:
    """The kinds of walls that a run may have been shown where these stand: the same, and all that are wider."""
    return TIERS[: TIERS.index(tier) + 1] if tier in TIERS else (tier,)


def walls_digest(bounds: Iterable[Bounds]) -> str:
    """The one text for what a question shows of all its runs."""
    return sha256(json.dumps([each.to_text() for each in bounds]).encode("ascii")).hexdigest()


def _is_same_program(program: tuple[str, ...], shown: tuple[str, ...]) -> bool:
    """A prepared environment has a person's own word, for this very content; it starts the same interpreter."""
    return program == shown or (program[:1] == (PREPARED,) and program[1:] == shown[1:])


def _is_narrower(tier: str, shown: str) -> bool:
    return tier in TIERS and shown in TIERS and TIERS.index(tier) > TIERS.index(shown)


def _joined(own: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*own, *more)))


def _as_tuples(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can say
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _are_inside(paths: Iterable[str], folders: Iterable[str]) -> bool:
    """Texts alone: what a folder that was shown leads to by now counts for nothing."""
    outer = [folder.rstrip(os.sep) for folder in folders if folder]
    return all(not path or any(path == each or path.startswith(each + os.sep) for each in outer) for path in paths)


def _are_covered(hosts: Iterable[str], shown: Iterable[str]) -> bool:
    rules = [HostRule.from_id(each) for each in shown]
    return all(any(rule.covers(HostRule.from_id(each)) for rule in rules) for each in hosts)


def _are_no_higher(run: Iterable[tuple[str, int]], shown: Iterable[tuple[str, int]]) -> bool:
    highest = dict(shown)
    return all(value <= highest.get(name, 0) for name, value in run)
