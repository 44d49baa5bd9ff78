"""What a front may send, and where to: the settings of a runner, and what of a call can travel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from skillkit.core.exceptions import ConfigurationError, ScriptRefusedError
from skillkit.core.resolve import CallArguments
from skillkit.core.values.runs import ScriptCommand
from skillkit.fleet.broker import app_for, queue_name, send
from skillkit.fleet.orders import INPUTS_BYTES, MOST_INPUTS, Input
from skillkit.fleet.rows import Rows

__all__ = ["PUBLISH_AGAIN_SECONDS", "WORKSPACES", "Sender"]

WORKSPACES = ("none", "inputs")
PATIENCE_SECONDS = 600.0
INPUT_BYTES = 100_000_000
PUBLISH_AGAIN_SECONDS = 60.0
CANNOT_TRAVEL = "lies on this machine: the run happens on a worker, and a local path cannot travel"
NAME_A_VOLUME = (
    "Map it on each worker (skillkit worker --volume NAME=FOLDER) and say so here (--volume NAME=FOLDER, or in Python "
    "CeleryRunner(volumes={'NAME': FOLDER})), send the files that arguments name (CeleryRunner(workspace='inputs')), "
    "or name no workspace."
)


class Sender:
    """One way to workers: a Celery app, and what of this machine they have too."""

    def __init__(
        self,
        app: Any,  # noqa: ANN401 - a Celery app, or the address of a broker
        *,
        label: str = "",
        workspace: str = "none",
        volumes: Mapping[str, str | Path] | None = None,
        homes: str = "",
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        if workspace not in WORKSPACES:
            raise ConfigurationError(f"workspace is {workspace!r}; it must be one of: {', '.join(WORKSPACES)}.")
        self.app = app_for(app) if isinstance(app, str) else app
        self.label, self.workspace, self.patience = label, workspace, patience
        self.volumes = {name: Path(os.path.realpath(path)) for name, path in (volumes or {}).items()}
        if homes in self.volumes:
            raise ConfigurationError(
                f"The volume {homes!r} is named for homes and for workspaces; a script could read other skills' homes "
                "in its workspace. Name two volumes."
            )
        self.homes = homes

    # The broker.

    def queue_of(self, world: str, interpreter: str, tier: str) -> str:
        return queue_name(world, interpreter, tier, self.label)

    def publish(self, rows: Rows, run: str, queue: str) -> None:
        """One that cannot be sent now is sent later, by whoever sees that it waits."""
        if not send(self.app, run, queue):
            rows.unpublish(run)

    # What of a call can be sent.

    def sendable_call(self, call: CallArguments, skill: Path) -> CallArguments:
        """The same without the current folder of this machine; files that it names by word, by their whole paths.

        A workspace that somebody named is one that workers map too, or the call is refused.
        """
        workspace = None if call.workspace is None else Path(os.path.realpath(call.workspace))
        if workspace is not None and self.volume_at(workspace):
            return call
        is_named = workspace is not None and getattr(call.workspace, "is_named", True)
        if self.workspace != "inputs":
            if is_named:
                raise ScriptRefusedError.because(f"The workspace {workspace} {CANNOT_TRAVEL}", NAME_A_VOLUME)
            return call._replace(workspace=None)
        words = [_whole(word, workspace, skill, has_workspace=is_named) for word in call.argv]
        return call._replace(workspace=None, argv=words)

    def refuse_local_paths(self, command: ScriptCommand) -> None:
        """What lies here and nowhere else cannot be opened there."""
        paths = [path for path in command.argument_paths if not self.volume_at(Path(path))]
        if self.workspace == "inputs":
            values = {word.partition("=")[2] or word for word in command.script_arguments} | {*command.script_arguments}
            paths = [path for path in paths if path not in values or not os.path.isfile(path)]
        if not paths:
            return
        why = "is no file that a word names" if self.workspace == "inputs" else "lies on this machine"
        raise ScriptRefusedError.because(
            f"The arguments name {paths[0]}, which {why}: the run happens on a worker, and a local path cannot travel",
            "Send files with CeleryRunner(workspace='inputs'), name a volume, or pass the content itself.",
        )

    def inputs_of(self, command: ScriptCommand) -> tuple[Input, ...]:
        if self.workspace != "inputs":
            return ()
        found = tuple(_input(path) for path in command.argument_paths if not self.volume_at(Path(path)))
        if len(found) > MOST_INPUTS or sum(each.size for each in found) > INPUTS_BYTES:
            reason = f"The arguments name {len(found):,} files with {sum(each.size for each in found):,} bytes"
            most = f"{MOST_INPUTS:,} files with {INPUTS_BYTES:,} bytes can be sent along"
            raise ScriptRefusedError.because(f"{reason}; {most}", "Name a volume for them.")
        return found

    def volume_of(self, command: ScriptCommand) -> str:
        """`NAME/folder` where the workspace lies in a volume that workers map too."""
        return self.volume_at(command.workspace.path) if command.workspace is not None else ""

    def volume_at(self, path: Path) -> str:
        """`NAME/folder` for a path in a volume; else empty."""
        for name, place in self.volumes.items():
            if path == place or path.is_relative_to(place):
                return str(Path(name) / path.relative_to(place))
        return ""


def _whole(word: str, workspace: Path | None, skill: Path, *, has_workspace: bool) -> str:
    """A word that names a file, with the file's whole path; one of the skill's own files is there too.

    A folder inside the workspace cannot be sent. By its name alone it is one where somebody named the workspace; else
    that may be any word.
    """
    option, separator, value = word.partition("=") if word.startswith("-") else ("", "", word)
    folder = os.path.realpath(workspace or Path.cwd())
    path = os.path.realpath(os.path.join(folder, os.path.expanduser(value))) if value and "\0" not in value else ""
    if not path or os.path.exists(skill / value):
        return word
    is_path = has_workspace or os.sep in value
    if is_path and os.path.isdir(path) and Path(path).is_relative_to(folder):
        raise ScriptRefusedError.because(
            f"The word {word!r} names the folder {path}, which {CANNOT_TRAVEL}; only files are sent along",
            "Name each file, or name a volume that holds the folder and that each worker maps.",
        )
    return f"{option}{separator}{path}" if os.path.isfile(path) else word


def _input(path: str) -> Input:
    content = Path(path).read_bytes()
    if len(content) > INPUT_BYTES:
        reason = f"{path} has {len(content):,} bytes; {INPUT_BYTES:,} can be sent along"
        raise ScriptRefusedError.because(reason, "Name a volume for it.")
    return Input(path, sha256(content).hexdigest(), len(content))
