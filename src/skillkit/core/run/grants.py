"""A command and a policy -> the paths of the user's that they open, each judged by what stands there now."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skillkit.core.closed_places import closed_places
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.paths import Judged, judge, real_path
from skillkit.core.policy import ScriptPolicy
from skillkit.core.runs import ScriptCommand
from skillkit.core.values import Workspace
from skillkit.core.workspaces import open_paths

__all__ = ["granted_paths", "judged_grants", "judged_paths", "judged_workspace", "named_paths"]


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


def judged_workspace(workspace: Workspace | None) -> Judged | None:
    """What was named, never what stands in its place by now."""
    return None if workspace is None else Judged(str(workspace.path), workspace.device, workspace.inode)


def named_paths(policy: ScriptPolicy) -> dict[Path, str]:
    """Where the paths of a policy led when it was taken up."""
    return {path: real_path(path) for path in (*policy.readable_paths, *policy.writable_paths)}


def judged_paths(
    setting: str, policy: ScriptPolicy, named: Mapping[Path, str], state_folder: Path
) -> tuple[Judged, ...]:
    """Those of a policy's paths that exist; the script sees that the others are missing either way.

    `named` says where they led when the policy was taken up: what leads elsewhere by now, a script may have led there.
    """
    opened = open_paths(getattr(policy, setting), state_folder, setting=setting)
    for path, judged in opened.items():
        before = named.get(path, judged.path)
        if judged.path != before:
            raise ConfigurationError(
                f"{setting}: {path} led to {before} when the policy was taken up, and leads to {judged.path} now; a "
                f"script can have done that. If you want what it leads to, name that, and start anew."
            )
    return tuple(opened.values())
