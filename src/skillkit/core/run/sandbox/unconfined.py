"""Walls that were switched off by name -> the command as it is, with the caller's own rights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from skillkit.core.run.sandbox.base import Confined, Walls
from skillkit.core.runs import Isolation

__all__ = ["UnconfinedSandbox"]


@dataclass(frozen=True, slots=True)
class UnconfinedSandbox:
    """No walls: asked for by name, or taken where they were only preferred; `missing` says what is not kept."""

    missing: tuple[str, ...] = ()
    tier: str = "none"

    def confine(self, argv: tuple[str, ...], cwd: str, environment: Mapping[str, str], walls: Walls) -> Confined:
        del walls
        return Confined(argv, cwd, environment, (), isolation_without(self.missing))


@cache
def isolation_without(missing: tuple[str, ...]) -> Isolation:
    return Isolation(degraded=missing)
