"""The sequence, written once: resolve, decide, record, run, record. Every surface ends here."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from skillkit.core.decide import approval_request, decide
from skillkit.core.digest import has_unchanged, manifest_of, snapshot_of
from skillkit.core.exceptions import (
    ApprovalUnavailableError,
    AuditUnavailableError,
    ConfigurationError,
    ContentChangedError,
    ScriptNotFoundError,
    ScriptPermissionError,
    ScriptRefusedError,
    SkillKitError,
    StateUnavailableError,
)
from skillkit.core.models import Skill, SkillMetadata
from skillkit.core.policy import STANDARD, ScriptPolicy
from skillkit.core.record import (
    AuditLog,
    end_fields,
    error_text,
    identity,
    refusal_fields,
    start_fields,
    unresolved_fields,
)
from skillkit.core.resolve import CallArguments, resolve_command
from skillkit.core.run import (
    Confined,
    ProcessRequest,
    Walls,
    WorkFolders,
    explanation_of,
    guarded,
    is_mounting,
    outcome,
    require_walls,
    run_confined,
    run_process,
    sandbox_for,
    walls_around,
)
from skillkit.core.runs import (
    Decision,
    Isolation,
    Manifest,
    PreparedRun,
    ProcessExit,
    ScriptCommand,
    ScriptExecutionResult,
)
from skillkit.core.state import StateStore, state_folder

__all__ = ["Flow", "OnOutput", "ScriptExecutor"]

OnOutput = Callable[[str, bytes], None]
SHIM_TIMEOUT_SECONDS = 10.0
LONGEST_SECONDS = 86_400
NO_WALLS = Walls(skill="/", snapshot=None, work="/", interpreter=())


class Flow:
    """One policy, one audit, one set of work folders; holds no state of a single run."""

    def __init__(self, policy: ScriptPolicy, state_dir: Path, skill_roots: Sequence[Path] = ()) -> None:
        self.policy = policy
        self.state_dir = state_dir
        self.skill_roots = tuple(skill_roots)
        self.store = StateStore(state_dir)
        self.audit = AuditLog(self.store)
        self.work_folders = WorkFolders()

    def prepare(self, skill: Skill, call: CallArguments) -> PreparedRun:
        """What would run and whether it may; has no effects and can be repeated."""
        command = resolve_command(skill, call, self.policy, os.environ, brief_output)
        ruling = decide(command, self.policy)
        request = approval_request(command, ruling.reasons) if ruling.decision is Decision.ASK else None
        return PreparedRun(command, ruling.decision, ruling.reasons, request, ruling.error)

    def complete(
        self,
        prepared: PreparedRun,
        *,
        cancel: threading.Event | None = None,
        on_output: OnOutput | None = None,
        wakeup_fd: int | None = None,
        is_fresh: bool = False,
    ) -> ScriptExecutionResult:
        """Runs what was prepared, once, and records it; a refusal is recorded and raised.

        `is_fresh` says that nothing came between: only the script itself is then looked at again. Walls that
        mount a copy of what was hashed need not even that; the others run from the folder.
        """
        command = prepared.command
        try:
            require_allowed(prepared)
            require_workspace(command.workspace)
            sandbox = sandbox_for(self.policy)
            manifest = unchanged_manifest(command, is_fresh=is_fresh)
            snapshot = self.snapshot(command, manifest) if is_mounting(sandbox) else None
            work = self.new_work_folder(command)
        except SkillKitError as error:
            self.record_refusal(error, prepared)
        walls = self.walls(command, work, snapshot) if sandbox.tier != "none" else NO_WALLS
        environment = {**command.environment, "SKILL_WORK_DIR": str(work)}
        try:
            started = self.audit.append("started", start_fields(prepared))
            with guarded(sandbox, walls):
                confined = sandbox.confine(command.argv, command.cwd, environment, walls)
                ended = self.recorded_run(started.seq, command, confined, cancel, on_output, wakeup_fd)
        except BaseException:
            self.work_folders.artifacts(work)
            raise
        isolation = isolation_of(confined.isolation, ended)
        artifacts = self.work_folders.artifacts(work)
        result = outcome(command, ended, isolation, artifacts, explanation_of(walls, isolation))
        self.record_end(command, started.seq, ended, result)
        return result

    def snapshot(self, command: ScriptCommand, manifest: Manifest) -> Path:
        """The bytes that were hashed, for walls that show them in the skill's place."""
        folder = self.state_dir / "snapshots"
        try:
            return snapshot_of(command.base_directory, manifest, folder)
        except OSError as error:
            raise StateUnavailableError(
                f"No copy of {command.skill_name!r} can be kept in {folder}: {error.strerror or error}. "
                "Make the state folder writable, or name another with SKILLKIT_STATE_DIR."
            ) from error

    def walls(self, command: ScriptCommand, work: Path, snapshot: Path | None) -> Walls:
        return walls_around(
            command,
            self.policy,
            work=work,
            snapshot=snapshot,
            state_folder=self.state_dir,
            skill_roots=self.skill_roots,
        )

    def execute(self, skill: Skill, call: CallArguments, **run: Any) -> ScriptExecutionResult:  # noqa: ANN401 - complete's
        """Both halves; what cannot even be resolved is on record too."""
        try:
            prepared = self.prepare(skill, call)
        except SkillKitError as error:
            self.record_unresolved(error, skill.name, call)
        return self.complete(prepared, is_fresh=True, **run)

    def record_unresolved(self, error: SkillKitError, skill_name: str, call: CallArguments) -> NoReturn:
        fields = unresolved_fields(skill_name, call.script_name, call.session_id, call.arguments, call.argv)
        self.audit.append("refused", {**fields, **refusal_fields(error)})
        raise error

    def record_refusal(self, error: SkillKitError, prepared: PreparedRun) -> NoReturn:
        self.audit.append("refused", {**start_fields(prepared), **refusal_fields(error)})
        raise error

    def recorded_run(
        self,
        started: int,
        command: ScriptCommand,
        confined: Confined,
        cancel: threading.Event | None,
        on_output: OnOutput | None,
        wakeup_fd: int | None,
    ) -> ProcessExit:
        """What stops a run from outside, as an interrupt or the caller's `on_output`, is on record too."""
        try:
            return started_and_run(command, confined, cancel, on_output, wakeup_fd)
        except BaseException as error:
            fields = {**identity(command), "started": started, "error": error_text(error)}
            try:
                self.audit.append("finished", fields)
            except AuditUnavailableError as unrecorded:  # an interrupt stays an interrupt
                error.add_note(f"Its end could not be recorded: {unrecorded}")
            raise

    def new_work_folder(self, command: ScriptCommand) -> Path:
        try:
            return self.work_folders.new()
        except OSError as error:
            raise ScriptPermissionError(
                f"{command.script_name!r} of {command.skill_name!r} gets no work folder: {error.strerror or error}. "
                "Check the folder for temporary files (TMPDIR) and its free space."
            ) from error

    def record_end(
        self, command: ScriptCommand, started: int, ended: ProcessExit, result: ScriptExecutionResult
    ) -> None:
        try:
            self.audit.append("finished", {**identity(command), "started": started, **end_fields(ended, result)})
        except AuditUnavailableError as error:
            error.result = result
            raise

    def close(self) -> None:
        self.work_folders.close()
        self.store.close()


class ScriptExecutor:
    """Runs one script of a skill through the same sequence, for callers without a manager."""

    def __init__(
        self,
        timeout: float = 30,
        max_output_size: int = 10_000_000,
        *,
        policy: ScriptPolicy = STANDARD,
        state_dir: str | Path | None = None,
    ) -> None:
        require_seconds(timeout)
        self.timeout = timeout
        self.max_output_size = max_output_size
        self._flow = Flow(policy, state_folder(state_dir))

    def execute(
        self,
        script_path: str | Path,
        arguments: object,
        skill_base_dir: str | Path,
        skill_metadata: Any,  # noqa: ANN401 - anything with name, version, allowed_tools
        timeout: float | None = None,
        *,
        argv: Sequence[str] = (),
    ) -> ScriptExecutionResult:
        """`script_path` is relative to the skill, or absolute inside it; fractions of a second are fine."""
        version = getattr(skill_metadata, "version", None)
        metadata = SkillMetadata(
            name=skill_metadata.name,
            description=getattr(skill_metadata, "description", ""),
            skill_path=Path(skill_base_dir).absolute() / "SKILL.md",
            allowed_tools=tuple(getattr(skill_metadata, "allowed_tools", None) or ()),
            version=None if version is None else str(version),
        )
        require_seconds(self.timeout if timeout is None else timeout)
        call = CallArguments(
            script_name=str(script_path),
            arguments=arguments,
            argv=argv,
            timeout=self.timeout if timeout is None else timeout,
            output_limit=self.max_output_size,
        )
        return self._flow.execute(Skill(metadata), call)

    def close(self) -> None:
        """Removes what scripts left in their work folders and lets go of the state."""
        self._flow.close()


def require_seconds(timeout: object) -> None:
    """Fractions too; zero, infinity and what is no number would time out always or never."""
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= LONGEST_SECONDS:
        raise ConfigurationError(
            f"A timeout is a number of seconds above 0 and at most {LONGEST_SECONDS}; {timeout!r} is not."
        )


def require_allowed(prepared: PreparedRun) -> None:
    if prepared.decision is Decision.DENY:
        raise prepared.error or ScriptRefusedError("Refused.", reasons=prepared.reasons)
    if prepared.decision is Decision.ASK:
        command = prepared.command
        raise ApprovalUnavailableError(
            f"{command.skill_name}: {command.script_name} needs a person's approval, and nobody can be asked here. "
            f"{' '.join(prepared.reasons)}",
            reasons=prepared.reasons,
        )


def require_workspace(workspace: Path | None) -> None:
    """It was there when it was named; walls cannot be put around a folder that is gone."""
    if workspace is not None and not workspace.is_dir():
        raise ConfigurationError(f"workspace: {workspace} is not there any more. Create it again or name another.")


def unchanged_manifest(command: ScriptCommand, *, is_fresh: bool = False) -> Manifest:
    """The skill as it is now, which must be the skill that was decided about."""
    known = command.manifest
    if is_fresh and known and has_unchanged(command.base_directory, command.script_name, known):
        return known
    if not command.script_path.is_file():
        raise ScriptNotFoundError(
            f"{command.script_name!r} of {command.skill_name!r} is not there any more.",
            skill_name=command.skill_name,
            script_name=command.script_name,
        )
    manifest = manifest_of(command.base_directory)
    if manifest.digest != command.digest:
        reason = f"{command.skill_name!r} changed after it was decided that it may run"
        raise ContentChangedError(f"{reason}. Run it again to decide about what it is now.", reasons=[reason])
    return manifest


def started_and_run(
    command: ScriptCommand,
    confined: Confined,
    cancel: threading.Event | None,
    on_output: OnOutput | None,
    wakeup_fd: int | None,
) -> ProcessExit:
    """What the system refuses to start is an error that says what was too much."""
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
        )
    except (OSError, ValueError) as error:
        if error in raised:  # the caller's own: it passes through as it is
            raise
        raise ScriptPermissionError(
            f"{command.script_name!r} of {command.skill_name!r} could not be started: "
            f"{getattr(error, 'strerror', None) or error}. "
            "Check its interpreter, the working directory, and the size of arguments and environment."
        ) from error
    require_walls(confined, command.argv, ended)
    return ended


def isolation_of(isolation: Isolation, ended: ProcessExit) -> Isolation:
    """Walls kill by namespace or subreaper, unless somebody was seen to be left all the same."""
    is_exact = isolation.tier != "none" and ended.kill != "incomplete"
    return isolation if is_exact or isolation.kill == ended.kill else replace(isolation, kill=ended.kill)


def brief_output(argv: Sequence[str], path: str) -> str:
    """For asking a version manager where the real program is; runs the user's own program, never a skill's.

    A shim looks for programs itself, so it gets the PATH without the folders of skill and workspace.
    """
    environment = {**os.environ, "PATH": path}
    command = ProcessRequest(tuple(argv), "/", environment, b"", SHIM_TIMEOUT_SECONDS, 100_000)
    try:
        ended = run_process(command)
    except OSError:
        return ""
    return ended.stdout.decode("utf-8", "replace") if ended.status == 0 else ""
