"""A command -> what its process did, and the result made of it."""

from __future__ import annotations

from skillkit.core.run.outcome import TRUNCATION_MARK, outcome
from skillkit.core.run.process import ProcessRequest, run_process
from skillkit.core.run.walls import walls_for
from skillkit.core.run.work import WorkFolders

__all__ = [
    "TRUNCATION_MARK",
    "ProcessRequest",
    "WorkFolders",
    "outcome",
    "run_process",
    "walls_for",
]
