"""A state folder, and perhaps the address of a shared world -> its store."""

from __future__ import annotations

import os
from pathlib import Path

from skillkit.core.store.base import Store
from skillkit.core.store.state import StateStore

__all__ = ["SHARED_VARIABLE", "open_store"]

SHARED_VARIABLE = "SKILLKIT_STATE"


def open_store(folder: str | Path, state: str | Store | None = None) -> Store:
    """The world of `state`, else of `$SKILLKIT_STATE`, else of the folder; nothing is made before the first use.

    An empty text means that the folder alone counts; a store is used as it is.
    """
    if state is not None and not isinstance(state, str):
        return state
    chosen = os.environ.get(SHARED_VARIABLE, "") if state is None else state
    if not chosen:
        return StateStore(folder)
    from skillkit.core.store.shared.postgres import SharedStore, WorldAddress

    return SharedStore(WorldAddress.from_text(chosen), folder)
