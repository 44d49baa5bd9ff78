"""Walls -> what a Windows job object can do: end a whole process tree, but hide no file and stop no connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skillkit.core.exceptions import SandboxUnavailableError
from skillkit.core.run.sandbox.base import Confined, Walls
from skillkit.core.runs import Isolation

__all__ = ["WindowsSandbox"]

REMEDY = (
    "Run skillkit in WSL2, or allow both (allow_filesystem and allow_network), or use sandbox='off' to run with "
    "the caller's own rights."
)


@dataclass(frozen=True, slots=True)
class WindowsSandbox:
    """Untested on Windows itself."""

    tier: str = "job"

    def confine(self, argv: tuple[str, ...], cwd: str, environment: Mapping[str, str], walls: Walls) -> Confined:
        """Refuse what nothing here can keep; what is left needs no change of the command."""
        limited = {"files": not walls.filesystem, "network": not walls.network}
        missing = [name for name, is_limited in limited.items() if is_limited]
        if missing:
            raise SandboxUnavailableError(
                f"Policy limits what a script may reach ({', '.join(missing)}); on Windows a job object ends the whole "
                f"process tree and nothing here limits files or network. {REMEDY}",
                missing=missing,
                remedy=REMEDY,
            )
        limits = walls.limits
        isolation = Isolation(
            tier=self.tier,
            kill="job object",
            limits=(f"{limits.data_megabytes} MB data a process", f"{limits.processes} processes"),
            degraded=("skill read-only", "size of files", "open files"),
        )
        return Confined(argv, cwd, environment, (), isolation, job_limits=limits)
