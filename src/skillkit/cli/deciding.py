"""Who types a command by which a person decides: refused to the program whose own calls it would approve.

One check for all such commands. It keeps an agent's shell from approving what the agent asked for by one plain command.
It is no wall: whoever has the user's rights can start a process that descends from nobody, or write the state itself.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from skillkit.core.exceptions import ScriptRefusedError, SkillKitError
from skillkit.core.store.opening import open_store
from skillkit.core.store.processes import Mark, ancestors, live_starters, starter_mark
from skillkit.core.store.state import state_folder

__all__ = ["require_person"]

STANDARD_STREAMS = (0, 1, 2)


def require_person(state_dir: str | Path | None, command: str, *, is_server: bool = False) -> None:
    """Raises and records where the program that started a live MCP server started this too, and no terminal is here.

    A server is not refused where that program itself starts it: its second one is told by the same person's hand.
    """
    # The usual world counts too: else naming another one would be the way round.
    found = {folder: live_starters(folder) for folder in (state_folder(state_dir), state_folder())}
    starters = frozenset[Mark]().union(*found.values())
    if not starters or starters.isdisjoint(ancestors()) or _has_foreground_terminal():
        return
    if is_server and starter_mark() in starters:
        return
    error = ScriptRefusedError.because(
        f"'skillkit {command}' is a person's to give, and it was started by the program that started a skillkit MCP "
        "server here, without a terminal",
        "Answer in a terminal of your own, or on the page that 'skillkit web' opens.",
    )
    _record(next(folder for folder, there in found.items() if there), command, error)
    raise error


def _has_foreground_terminal() -> bool:
    """Whether somebody who sits at the terminal sees or types this; a shell that an agent starts has pipes instead."""
    if sys.platform == "win32":
        return any(os.isatty(stream) for stream in STANDARD_STREAMS)
    for stream in STANDARD_STREAMS:
        with suppress(OSError):  # no terminal, or not the one that this process belongs to
            if os.tcgetpgrp(stream) == os.getpgrp():
                return True
    return False


def _record(folder: Path, command: str, error: SkillKitError) -> None:
    from skillkit.core.record import AuditLog, refusal_fields

    store = open_store(folder)
    try:
        AuditLog(store).append("refused", {"command": command, **refusal_fields(error)})
    finally:
        store.close()
