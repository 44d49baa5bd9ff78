"""A command -> those of the paths its arguments name that the script may therefore read."""

from __future__ import annotations

from pathlib import Path

from skillkit.core.closed_places import closed_places
from skillkit.core.paths import real_path
from skillkit.core.runs import ScriptCommand

__all__ = ["granted_paths"]


def granted_paths(command: ScriptCommand, state_folder: Path) -> tuple[str, ...]:
    """The argument that a person saw is the permission: a path where a link stands by now was not the one they saw."""
    named = [path for path in command.argument_paths if path not in command.closed_paths]
    if not named:
        return ()
    places = closed_places(state_folder)
    return tuple(path for path in named if real_path(path) == path and not places.hold(path))
