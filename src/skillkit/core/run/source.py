"""A command that may run -> the bytes that run: the skill is looked at once more, and relocated to its copy."""

from __future__ import annotations

import os
import stat
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from skillkit.core.exceptions import ContentChangedError, ContentLoadError, ScriptNotFoundError
from skillkit.core.models.digest import content_of, manifest_of
from skillkit.core.paths import is_roots
from skillkit.core.store.snapshots import Snapshots
from skillkit.core.values.runs import Manifest, ScriptCommand

__all__ = ["held_copies", "relocate", "unchanged_manifest"]


def unchanged_manifest(command: ScriptCommand, *, by_content: bool = False) -> Manifest:
    """The skill as it is now, which must be the skill that was decided about.

    `by_content` is for a folder that runs itself. A file that somebody has mapped into memory can change and keep
    its times, so there every byte is read again: what is recorded is what runs. A copy needs none of this, and a
    skill of common size costs some microseconds.
    """
    if command.is_program:
        _require_same_program(command)
    try:
        manifest = manifest_of(command.base_directory, by_content=by_content)
    except ContentLoadError:
        _require_script(command)
        raise
    if manifest.digest != command.digest:
        _require_script(command)
        raise _changed(repr(command.skill_name))
    return manifest


def held_copies(command: ScriptCommand, snapshots: Snapshots, held: ExitStack) -> dict[str, str]:
    """Of folders with code of other skills that were given to it: what runs is what was seen, here too."""
    copies = {}
    for grant in (each for each in command.grants if each.content):
        manifest = manifest_of(grant.name)
        if manifest.digest != grant.content:
            raise _changed(grant.name)
        copies[grant.name] = str(held.enter_context(snapshots.hold(Path(grant.name), manifest)))
    return copies


def _require_script(command: ScriptCommand) -> None:
    """Of all that may have changed, a script that is gone is what a caller should hear of."""
    try:
        is_there = stat.S_ISREG(os.stat(command.script_path).st_mode)
    except PermissionError:  # nobody can tell; that the skill cannot be read is what a caller hears of then
        return
    except (OSError, ValueError):
        is_there = False
    if not is_there:
        raise ScriptNotFoundError(
            f"{command.script_name!r} of {command.skill_name!r} is not there any more. Put it back, or name another.",
            skill_name=command.skill_name,
            script_name=command.script_name,
        )


def _require_same_program(command: ScriptCommand) -> None:
    """The card says which bytes the program had when it was decided about.

    It runs where it lies, approved or not: what others than the system's owner can write is read again.
    """
    real = os.path.realpath(command.script_path)
    # Large programs are the system's, and reading them takes its time.
    content = content_of(real, again=not is_roots(real))
    try:
        card = (command.base_directory / command.script_name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        card = ""
    if not card.endswith(f"File: {real}\n{content}\n"):
        raise _changed(f"The program {command.script_name!r}")


def _changed(what: str) -> ContentChangedError:
    reason = f"{what} changed after it was decided that it may run"
    return ContentChangedError.because(reason, "Run it again to decide about what it is now.")


def relocate(command: ScriptCommand, folder: Path) -> ScriptCommand:
    """The same command on a copy of the skill; what it is told about its place is told about the copy."""
    if command.is_program:
        cwd = str(folder) if command.cwd == str(command.base_directory) else command.cwd
        return replace(command, base_directory=folder, cwd=cwd)
    base, script = str(command.base_directory), folder / command.script_name
    before = len(command.argv) - len(command.script_arguments) - 1
    return replace(
        command,
        base_directory=folder,
        script_path=script,
        argv=(*command.argv[:before], str(script), *command.script_arguments),
        cwd=str(folder) if command.cwd == base else command.cwd,
        environment={name: str(folder) if value == base else value for name, value in command.environment.items()},
    )
