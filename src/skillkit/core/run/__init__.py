"""A command -> what its process did inside its walls, and the result made of it."""

from __future__ import annotations

from skillkit.core.run.grants import granted_paths
from skillkit.core.run.outcome import TRUNCATION_MARK, outcome
from skillkit.core.run.process import ProcessRequest, run_confined, run_process
from skillkit.core.run.sandbox.base import Confined, Sandbox, Walls
from skillkit.core.run.walls import (
    explanation_of,
    guarded,
    is_mounting,
    machine_tiers,
    require_walls,
    sandbox_for,
    walls_around,
)
from skillkit.core.run.work import WorkFolders

__all__ = [
    "TRUNCATION_MARK",
    "Confined",
    "ProcessRequest",
    "Sandbox",
    "Walls",
    "WorkFolders",
    "explanation_of",
    "granted_paths",
    "guarded",
    "is_mounting",
    "machine_tiers",
    "outcome",
    "require_walls",
    "run_confined",
    "run_process",
    "sandbox_for",
    "walls_around",
]
