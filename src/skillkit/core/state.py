"""Where a world keeps its state."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["STATE_VARIABLE", "state_folder"]

STATE_VARIABLE = "SKILLKIT_STATE_DIR"


def state_folder(state_dir: str | Path | None = None) -> Path:
    """The given folder, else $SKILLKIT_STATE_DIR, else the platform's; nothing is created."""
    chosen = state_dir or os.environ.get(STATE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_state_dir("skillkit", appauthor=False))
