"""What makes the runs of a manager happen elsewhere: the same flow, but for where it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from skillkit.core.values.policy import ScriptPolicy

if TYPE_CHECKING:
    from skillkit.core.flow import Flow

__all__ = ["Runner"]


class Runner(Protocol):
    """Such as `skillkit.fleet.CeleryRunner`."""

    @property
    def session_id(self) -> str:
        """For a manager that names none."""

    def flow(self, policy: ScriptPolicy, state_dir: Path, **options: Any) -> Flow:  # noqa: ANN401 - the flow's own
        """Through which a manager's runs under this policy go."""
