"""What inside a writable folder stays as it is, and what a script made there all the same, moved away."""

from __future__ import annotations

from skillkit.core.run.guard.aside import SetAside
from skillkit.core.run.guard.guard import MOST_PLACES, NOTHING_GUARDED, Guard, Guarded
from skillkit.core.run.guard.places import Place

__all__ = ["MOST_PLACES", "NOTHING_GUARDED", "Guard", "Guarded", "Place", "SetAside"]
