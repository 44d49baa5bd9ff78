"""A command -> those of the paths its arguments name that the script may therefore read."""

from __future__ import annotations

from pathlib import Path

from skillkit.core.closed_places import closed_places
from skillkit.core.paths import Judged, judge
from skillkit.core.runs import ScriptCommand

__all__ = ["granted_paths", "judged_grants"]


def granted_paths(command: ScriptCommand, state_folder: Path) -> tuple[str, ...]:
    """As they are shown to a person."""
    return tuple(each.path for each in judged_grants(command, state_folder))


def judged_grants(command: ScriptCommand, state_folder: Path) -> tuple[Judged, ...]:
    """The argument that a person saw is the permission: a path where a link stands by now was not the one they saw.

    Each is opened once and judged by that; the walls show this thing or nothing.
    """
    named = [path for path in command.argument_paths if path not in command.closed_paths]
    if not named:
        return ()
    places = closed_places(state_folder)
    found = [(path, judged) for path in named if (judged := judge(path)) is not None]
    return tuple(judged for path, judged in found if judged.path == path and not places.hold(path))
