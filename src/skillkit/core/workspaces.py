"""A folder that somebody names for an agent to work in -> a Workspace, bound to that very folder until the walls stand.

Theory of operation. Scripts may write their workspace, and one workspace may lie in another. Whoever looks a folder up
by name again could be led elsewhere by then. So a folder is opened once, when it is named, and judged by what was
opened; from then on its device and inode go along, and each run compares them with what the name leads to. The
descriptor stays open: a removed folder's number could otherwise be given to the next one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from skillkit.core.closed_places import ClosedPlaces, closed_places
from skillkit.core.exceptions import ConfigurationError
from skillkit.core.paths import Judged, is_inside, judge, judge_opened, open_place, real_path
from skillkit.core.values import Workspace

__all__ = ["named_workspace", "open_paths", "require_open", "require_same"]

REMEDY = "Name a folder that holds only what the agent works on."


class _Hold:
    """An open descriptor, closed with the value that has it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __del__(self) -> None:
        os.close(self.descriptor)


def named_workspace(path: str | Path, state_folder: Path | None, *, setting: str = "workspace") -> Workspace:
    """The folder that `path` leads to now; ConfigurationError if there is none, or if scripts may not work in it."""
    try:
        folder = Path(path).expanduser().absolute()
    except (OSError, RuntimeError, ValueError) as error:  # `~nobody`; no current folder
        raise ConfigurationError(f"{setting}: {str(path)!r} cannot be found: {error} Give an absolute path.") from error
    workspace = _opened(folder, setting)
    require_open(workspace, state_folder, setting=setting)
    return workspace


def require_open(workspace: Workspace, state_folder: Path | None, *, setting: str = "workspace") -> None:
    """It may not be, hold or lie in what stays closed to scripts."""
    _refuse_closed(str(workspace.path), closed_places(None), state_folder, setting)


def open_paths(paths: Sequence[Path], state_folder: Path | None, *, setting: str) -> dict[Path, Judged]:
    """What policy opens beside the workspace, as it is now; one that is not there cannot be opened."""
    if not paths:
        return {}
    places = closed_places(None)
    found = {path: judged for path in paths if (judged := judge(path)) is not None}
    for each in found.values():
        _refuse_closed(each.path, places, state_folder, setting)
    return found


def _refuse_closed(path: str, places: ClosedPlaces, state_folder: Path | None, setting: str) -> None:
    """Around the state folder it may be: the walls hide that."""
    state = real_path(state_folder) if state_folder else ""
    reason = places.reason_against(path)
    if state and is_inside(path, state):
        reason = f"it lies in the state folder {state}"
    if reason:
        raise ConfigurationError(f"{setting}: {path} is never opened to scripts: {reason}. {REMEDY}")


def require_same(workspace: Workspace) -> None:
    """What stands in its place now must be the folder that was named."""
    try:
        found = _opened(workspace.path, "workspace")
    except ConfigurationError as error:
        raise ConfigurationError(
            f"workspace: {workspace} is not there any more. Create it again and name it again."
        ) from error
    if found != workspace:
        elsewhere = f" and leads to {found} now" if found.path != workspace.path else ""
        raise ConfigurationError(
            f"workspace: {workspace} was replaced since it was named{elsewhere}. Look at what is there; "
            "if it is the folder that you want, name it again (start anew)."
        )


def _opened(path: Path, setting: str) -> Workspace:
    try:
        hold = _Hold(open_place(path))
    except (OSError, ValueError) as error:
        if os.name == "nt" and os.path.isdir(path):  # no folder can be opened there
            seen = os.stat(path)
            return Workspace(Path(os.path.realpath(path)), seen.st_dev, seen.st_ino)
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise ConfigurationError(f"{setting}: {path} is not a folder. Create it, or name another.") from error
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(f"{setting}: {path} cannot be opened: {reason}. Name a folder that exists.") from error
    if not stat.S_ISDIR(os.fstat(hold.descriptor).st_mode):
        raise ConfigurationError(f"{setting}: {path} is not a folder. Name one that exists.")
    judged = judge_opened(hold.descriptor, path)
    return Workspace(Path(judged.path), judged.device, judged.inode, hold)
