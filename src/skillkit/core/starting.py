"""A command that may run -> its place, its last check and its process, and what was around it."""

from __future__ import annotations

import logging
import os
import stat
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from skillkit.core.digest import content_of, manifest_of
from skillkit.core.exceptions import (
    ContentChangedError,
    ContentLoadError,
    ScriptNotFoundError,
    ScriptPermissionError,
)
from skillkit.core.run import (
    Confined,
    ProcessRequest,
    SetAside,
    is_searching_upwards,
    require_walls,
    run_confined,
    run_process,
)
from skillkit.core.run.own_programs import own_environment
from skillkit.core.runs import Isolation, Manifest, ProcessExit, ScriptCommand, ScriptExecutionResult

__all__ = [
    "OnOutput",
    "apart_from_others",
    "brief_output",
    "isolation_of",
    "moved_to",
    "run_environment",
    "source_of",
    "started_and_run",
    "unchanged_manifest",
    "with_word_of",
]

OnOutput = Callable[[str, bytes], None]
SHIM_TIMEOUT_SECONDS = 10.0
NAMED_ASIDE = 5
NAME_CHARACTERS = 250

run_log = logging.getLogger("skillkit.run")


def unchanged_manifest(command: ScriptCommand, *, by_content: bool = False) -> Manifest:
    """The skill as it is now, which must be the skill that was decided about.

    `by_content` is for a folder that runs itself. A file that somebody has mapped into memory can change and keep
    its times, so there every byte is read again: what is recorded is what runs. A copy needs none of this, and a
    skill of common size costs some microseconds.
    """
    if command.is_program:
        require_same_program(command)
    try:
        manifest = manifest_of(command.base_directory, by_content=by_content)
    except ContentLoadError:
        require_script(command)
        raise
    if manifest.digest != command.digest:
        require_script(command)
        reason = f"{command.skill_name!r} changed after it was decided that it may run"
        raise ContentChangedError(f"{reason}. Run it again to decide about what it is now.", reasons=[reason])
    return manifest


def require_script(command: ScriptCommand) -> None:
    """Of all that may have changed, a script that is gone is what a caller should hear of."""
    try:
        is_there = command.script_path.is_file()
    except PermissionError:  # nobody can tell; that the skill cannot be read is what a caller hears of then
        return
    if not is_there:
        raise ScriptNotFoundError(
            f"{command.script_name!r} of {command.skill_name!r} is not there any more. Put it back, or name another.",
            skill_name=command.skill_name,
            script_name=command.script_name,
        )


def require_same_program(command: ScriptCommand) -> None:
    """The card says which bytes the program had when it was decided about.

    It runs where it lies, approved or not: what others than the system's owner can write is read again.
    """
    real = os.path.realpath(command.script_path)
    content = content_of(real, again=not is_of_system(real))
    try:
        card = (command.base_directory / command.script_name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        card = ""
    if not card.endswith(f"File: {real}\n{content}\n"):
        reason = f"The program {command.script_name!r} changed after it was decided that it may run"
        raise ContentChangedError(f"{reason}. Run it again to decide about what it is now.", reasons=[reason])


def is_of_system(path: str) -> bool:
    """Whether only the system's owner can write it; large programs are, and reading them takes its time."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    return status.st_uid == 0 and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def started_and_run(
    command: ScriptCommand,
    confined: Confined,
    cancel: threading.Event | None,
    on_output: OnOutput | None,
    wakeup_fd: int | None,
    on_end: Callable[[ProcessExit], None],
) -> None:
    """What the system refuses to start is an error that says what was too much.

    How the process ended is told to `on_end`, also where something is raised afterwards.
    """
    raised: list[BaseException] = []

    def listen(stream: str, data: bytes) -> None:
        try:
            on_output(stream, data)  # type: ignore[misc]  # only passed on where there is one
        except BaseException as error:
            raised.append(error)
            raise

    try:
        ended = run_confined(
            confined,
            stdin=command.stdin,
            timeout=command.timeout,
            output_limit=command.output_limit,
            cancel=cancel,
            on_output=listen if on_output else None,
            wakeup_fd=wakeup_fd,
            on_stop=on_end,
        )
    except (OSError, ValueError) as error:
        if error in raised:  # the caller's own: it passes through as it is
            raise
        raise ScriptPermissionError(
            f"{command.script_name!r} of {command.skill_name!r} could not be started: "
            f"{getattr(error, 'strerror', None) or error}. "
            "Check its interpreter, the working directory, and the size of arguments and environment."
        ) from error
    on_end(ended)
    require_walls(confined, command.argv, ended)


def isolation_of(isolation: Isolation, ended: ProcessExit, *, source: str) -> Isolation:
    """Walls kill by namespace or subreaper, unless somebody was seen to be left all the same."""
    is_exact = isolation.tier != "none" and ended.kill != "incomplete"
    kill = isolation.kill if is_exact else ended.kill
    is_said = (isolation.kill, isolation.skill) == (kill, source)
    return isolation if is_said else replace(isolation, kill=kill, skill=source)


def with_word_of(moved: tuple[SetAside, ...], result: ScriptExecutionResult) -> ScriptExecutionResult:
    """The result, and in its hint what the script made that others would have obeyed."""
    if not moved:
        return result
    more = f" and {len(moved) - NAMED_ASIDE} more" if len(moved) > NAMED_ASIDE else ""
    names = ", ".join(quoted(each.path) for each in moved[:NAMED_ASIDE]) + more
    kept = next((os.path.dirname(each.kept) for each in moved if each.kept), "")
    left = [each.path for each in moved if not each.kept]
    said = f"The script made or changed what agents, editors, shells or git obey: {names}."
    said += f" It was moved to {kept}; look at it before you put anything back." if kept else ""
    said += f" Remove what could not be moved: {', '.join(map(quoted, left[:NAMED_ASIDE]))}." if left else ""
    run_log.warning(said)
    return replace(result, hint=f"{result.hint} {said}".strip())


def quoted(path: str) -> str:
    """A script chose the name: it can neither write a sentence of its own nor hide what it is."""
    return repr(path if len(path) <= NAME_CHARACTERS else f"{path[:NAME_CHARACTERS]}...")


def source_of(decided: ScriptCommand, run: ScriptCommand, mounted: Path | None) -> str:
    if mounted is not None:
        return "mounted snapshot"
    return "folder" if run is decided else "snapshot"


def moved_to(command: ScriptCommand, folder: Path) -> ScriptCommand:
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


def apart_from_others(command: ScriptCommand) -> Path | None:
    """Where a script of such a language runs instead of its skill's place: no code lies in the folders above."""
    return Path("/skill", command.base_directory.name) if is_searching_upwards(command) else None


def run_environment(command: ScriptCommand, work: Path, *, has_walls: bool) -> dict[str, str]:
    """Its environment, the work folder, and inside walls for Ruby the one list of gems that is the skill's own."""
    environment = {**command.environment, "SKILL_WORK_DIR": str(work)}
    if has_walls and command.interpreter == "ruby" and not command.is_program:
        names = [name for name in ("gems.rb", "Gemfile") if (command.base_directory / name).exists()]
        # Else Bundler looks for one from the working directory upwards, and runs it.
        environment["BUNDLE_GEMFILE"] = str(command.base_directory / (names or ["Gemfile"])[0])
    return environment


def brief_output(argv: Sequence[str], path: str) -> str:
    """For asking a version manager where the real program is; runs the user's own program, never a skill's.

    A shim looks for programs itself, so it gets the PATH without the folders of skill and workspace.
    """
    environment = {**own_environment(), "PATH": path}
    command = ProcessRequest(tuple(argv), "/", environment, b"", SHIM_TIMEOUT_SECONDS, 100_000)
    try:
        ended = run_process(command)
    except OSError:
        return ""
    return ended.stdout.decode("utf-8", "replace") if ended.status == 0 else ""
