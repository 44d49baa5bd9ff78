"""What walls and policy give to a run, as a value: what a person was shown, and whether a later run would get more."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

__all__ = ["ANY_WORKSPACE", "Bounds"]

ANY_WORKSPACE = "*"
"""In the place of a workspace: whichever a run has, as trust is given before there is one."""

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
    """Where that interpreter is, and what that leads to."""
    limits: tuple[tuple[str, int], ...]
    seconds: float
    """After which it is stopped."""

    def hold(self, run: Bounds) -> bool:
        """Whether a run with the other bounds gets nothing that is not within these; a field excuses no other."""
        return all(
            (
                run.tier == self.tier or _is_narrower(run.tier, self.tier),
                run.as_root <= self.as_root,
                run.network <= self.network,
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
                run.interpreter != self.interpreter or run.program == self.program,
                _are_no_higher(run.limits, self.limits),
                run.seconds <= self.seconds,
            )
        )

    def to_text(self) -> str:
        """As JSON, always the same for the same bounds."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_text(cls, text: str) -> Bounds | None:
        """None for what another version wrote, or nobody: it holds nothing."""
        try:
            kept = json.loads(text)
            made = cls(**{each.name: _as_tuples(kept[each.name]) for each in fields(cls)})
        except (KeyError, TypeError, ValueError):
            return None
        return made if made.to_text() == text else None


def _is_narrower(tier: str, shown: str) -> bool:
    return tier in TIERS and shown in TIERS and TIERS.index(tier) > TIERS.index(shown)


def _as_tuples(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can say
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _are_inside(paths: Iterable[str], folders: Iterable[str]) -> bool:
    """Texts alone: what a folder that was shown leads to by now counts for nothing."""
    outer = [folder.rstrip(os.sep) for folder in folders if folder]
    return all(not path or any(path == each or path.startswith(each + os.sep) for each in outer) for path in paths)


def _are_no_higher(run: Iterable[tuple[str, int]], shown: Iterable[tuple[str, int]]) -> bool:
    highest = dict(shown)
    return all(value <= highest.get(name, 0) for name, value in run)
