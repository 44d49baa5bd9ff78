"""A command -> what its process did inside its walls, and the result made of it."""

from __future__ import annotations

from skillkit.core.run.around import is_searching_upwards, walls_around, writable_roots
from skillkit.core.run.grants import granted_paths, named_paths
from skillkit.core.run.guard import NOTHING_GUARDED, Guard, Guarded, SetAside
from skillkit.core.run.outcome import TRUNCATION_MARK, outcome
from skillkit.core.run.process import ProcessRequest, run_confined, run_process
from skillkit.core.run.sandbox.base import Confined, Sandbox, Walls
from skillkit.core.run.walls import (
    able_to_guard,
    counted_together,
    explanation_of,
    is_mounting,
    machine_tiers,
    require_countable,
    require_walls,
    sandbox_for,
)
from skillkit.core.run.work import WorkFolders

__all__ = [
    "NOTHING_GUARDED",
    "TRUNCATION_MARK",
    "Confined",
    "Guard",
    "Guarded",
    "ProcessRequest",
    "Sandbox",
    "SetAside",
    "Walls",
    "WorkFolders",
    "able_to_guard",
    "counted_together",
    "explanation_of",
    "granted_paths",
    "is_mounting",
    "is_searching_upwards",
    "machine_tiers",
    "named_paths",
    "outcome",
    "require_countable",
    "require_walls",
    "run_confined",
    "run_process",
    "sandbox_for",
    "walls_around",
    "writable_roots",
]
