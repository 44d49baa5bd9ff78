"""What inside a writable folder stays as it is, and what a script made there all the same, moved away."""

from __future__ import annotations

from skillkit.core.run.guard.guard import MOST_PLACES, NOTHING_GUARDED, Guard, Guarded, importable_names, own_folders
from skillkit.core.run.guard.restore import SetAside
from skillkit.core.run.guard.telling import Guarding, tell_of

__all__ = [
    "MOST_PLACES",
    "NOTHING_GUARDED",
    "Guard",
    "Guarded",
    "Guarding",
    "SetAside",
    "importable_names",
    "own_folders",
    "tell_of",
]
