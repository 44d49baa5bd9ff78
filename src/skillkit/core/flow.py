"""The sequence, written once: resolve, decide, record, run, record. Every surface ends here."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NoReturn

from skillkit.core.approving import Approving, Cancellation, require_approved, require_bounds
from skillkit.core.bounds import Bounds
from skillkit.core.decide import after_change, after_widening, approval_request, decide, decided
from skillkit.core.ending import Begun, Ending
from skillkit.core.exceptions import (
    ScriptPermissionError,
    SkillKitError,
    StateUnavailableError,
)
from skillkit.core.models import Skill
from skillkit.core.policy import ScriptPolicy
from skillkit.core.questions import Approver, OptionAnswer, Prompt
from skillkit.core.record import AuditLog, refusal_fields, start_fields, unresolved_fields
from skillkit.core.resolve import CallArguments, resolve_command, resolve_program
from skillkit.core.run import (
    NOTHING_GUARDED,
    Guard,
    Guarded,
    Sandbox,
    Walls,
    WorkFolders,
    able_to_guard,
    counted_together,
    granted_paths,
    is_mounting,
    named_paths,
    require_countable,
    sandbox_for,
    walls_around,
    writable_roots,
)
from skillkit.core.run.own_programs import keep_away_from
from skillkit.core.runs import (
    PROGRAM_OWNER,
    Decision,
    Manifest,
    PreparedRun,
    ScriptCommand,
    ScriptExecutionResult,
)
from skillkit.core.snapshots import Snapshots
from skillkit.core.starting import (
    OnOutput,
    apart_from_others,
    brief_output,
    moved_to,
    run_environment,
    source_of,
    started_and_run,
    unchanged_manifest,
)
from skillkit.core.state import StateStore
from skillkit.core.values import Workspace
from skillkit.core.workspaces import require_same

__all__ = ["Flow", "OnOutput"]

NO_WALLS = Walls(skill="/", snapshot=None, work="/", interpreter=())


class Flow:
    """One policy, one audit, one set of work folders; holds no state of a single run."""

    def __init__(
        self,
        policy: ScriptPolicy,
        state_dir: Path,
        *,
        approver: Approver | None = None,
        protected: Sequence[Path] = (),
    ) -> None:
        """`protected` are paths that no script may change, wherever they lie."""
        self.policy = policy
        self.state_dir = state_dir
        self.approver = approver
        self.named_paths = named_paths(policy)
        self.guard = Guard(state_dir, protected)
        self.store = StateStore(state_dir)
        self.audit = AuditLog(self.store)
        self.approving = Approving(self.store)
        self.snapshots = Snapshots(state_dir, self.approving.standing.digests)
        self.work_folders = WorkFolders()
        self.ending = Ending(self.audit, self.guard, self.work_folders, state_dir)

    def prepare(self, skill: Skill | None, call: CallArguments) -> PreparedRun:
        """What would run and whether it may; has no effects but a copy of the skill, and can be repeated.

        Without a skill, the call names a program of the machine.
        """
        command = self.resolved(skill, call)
        keep_away_from((command.workspace, command.base_directory, *self.policy.writable_paths))
        ruling = decide(command, self.policy)
        if ruling.decision is not Decision.ASK:
            return PreparedRun(command, ruling.decision, ruling.reasons, error=ruling.error)
        bounds = self.bounds(command)
        covering = self.approving.covering(command, bounds) if ruling.is_coverable else None
        if covering is not None:
            ruling = decided(ruling, covering[0])
            return PreparedRun(command, ruling.decision, ruling.reasons, channel=covering[1], bounds=bounds)
        if self.approving.last_approved_digest(command) not in (None, command.digest):
            ruling = after_change(ruling)
        elif approved := self.approving.walls_of_content(command):
            ruling = after_widening(ruling, is_known=any(approved))
        prompt = self.prompt((command,), ruling.reasons)
        request = approval_request(command, prompt, bounds, is_coverable=ruling.is_coverable)
        asked = request.asked(time.time())
        return PreparedRun(
            command, Decision.ASK, ruling.reasons, asked, is_coverable=ruling.is_coverable, bounds=bounds
        )

    def resolved(self, skill: Skill | None, call: CallArguments) -> ScriptCommand:
        if skill is None:
            return resolve_program(call, self.policy, os.environ, state_folder=self.state_dir)
        return resolve_command(skill, call, self.policy, os.environ, brief_output, state_folder=self.state_dir)

    def prompt(self, commands: Sequence[ScriptCommand], reasons: tuple[str, ...]) -> Prompt:
        """What a person is shown: read from the copy that will run, not from the folder."""
        from skillkit.core.decide.prompt import prompt_for  # reads code; most runs ask nothing

        command = commands[0]
        manifest = command.manifest or unchanged_manifest(command)
        with ExitStack() as held:
            return prompt_for(
                commands,
                origin=str(command.script_path if command.is_program else command.base_directory),
                reasons=reasons,
                manifest=manifest,
                source_folder=self.snapshot(command, manifest, held),
                approved_folder=self.snapshots.approved_copy(self.approving.last_approved_digest(command)),
                walls=self.reach(commands),
            )

    def reach(self, commands: Sequence[ScriptCommand]) -> tuple[str, ...]:
        """What the walls will and will not allow, in sentences."""
        granted = [path for each in commands for path in granted_paths(each, self.state_dir)]
        first = commands[0]
        return self.sentences(first.base_directory, first.workspace, granted, max(each.timeout for each in commands))

    def reach_of_any(self, folder: Path) -> tuple[str, ...]:
        """The same for whichever script of the skill in this folder, wherever it is run."""
        return self.sentences(folder, "it is run in", ["files and folders"], self.policy.timeout_seconds)

    def sentences(
        self, folder: Path, workspace: Workspace | str | None, granted: Sequence[str], timeout: float
    ) -> tuple[str, ...]:
        from skillkit.core.decide.reach import wall_sentences

        return wall_sentences(
            self.policy,
            tier=sandbox_for(self.policy).tier,
            skill=str(folder),
            workspace=workspace,
            granted=granted,
            timeout=timeout,
            is_root=is_root(),
        )

    def bounds(self, command: ScriptCommand | None) -> Bounds:
        """What a run gets, to be compared; without a command, any script of a skill in any workspace."""
        from skillkit.core.decide.reach import bounds_of

        return bounds_of(self.policy, command, tier=sandbox_for(self.policy).tier, is_root=is_root())

    def complete(
        self,
        prepared: PreparedRun,
        answer: OptionAnswer | None = None,
        *,
        cancel: threading.Event | None = None,
        on_output: OnOutput | None = None,
        wakeup_fd: int | None = None,
        is_fresh: bool = False,
    ) -> ScriptExecutionResult:
        """Runs what was prepared, once, and records it; a refusal is recorded and raised.

        `is_fresh` says that nothing came between: walls that mount a copy of what was hashed then need no
        second look at the folder. Others may run from the folder, so it is always looked at again.
        """
        with ExitStack() as held:  # the copy that runs stays until the run is over
            return self._completed(prepared, answer, held, cancel, on_output, wakeup_fd, is_fresh=is_fresh)

    def _completed(
        self,
        prepared: PreparedRun,
        answer: OptionAnswer | None,
        held: ExitStack,
        cancel: threading.Event | None,
        on_output: OnOutput | None,
        wakeup_fd: int | None,
        *,
        is_fresh: bool,
    ) -> ScriptExecutionResult:
        try:
            require_approved(prepared, answer)
            require_bounds(prepared, self.bounds)
            if prepared.command.workspace is not None:
                require_same(prepared.command.workspace)
            sandbox = sandbox_for(self.policy)
            is_known = is_fresh and is_mounting(sandbox) and not prepared.command.is_program
            in_place = self.runs_in_place(prepared, is_mounting=is_mounting(sandbox))
            manifest = prepared.command.manifest if is_known else None
            manifest = manifest or unchanged_manifest(prepared.command, by_content=in_place)
            command, snapshot = prepared.command, None
            if not in_place:
                command, snapshot = self.placed(command, manifest, held, is_mounting=is_mounting(sandbox))
            guarded = self.guarded(command, sandbox)
        except SkillKitError as error:
            self.record_refusal(error, prepared, answer)
        try:
            sandbox, walls, work = self.walled(command, sandbox, snapshot, guarded)
            if answer is not None:
                self.approving.keep(prepared, answer)
        except BaseException as error:
            self.guard.end(guarded)
            if isinstance(error, SkillKitError):
                self.record_refusal(error, prepared, answer)
            raise
        placed = moved_to(command, Path(walls.apart)) if walls.apart else command
        environment = run_environment(placed, work, has_walls=sandbox.tier != "none")
        try:
            started = self.audit.append("started", start_fields(prepared, answer))
            confined = sandbox.confine(placed.argv, placed.cwd, environment, walls)
            confined = held.enter_context(counted_together(confined, self.policy.limits))
        except BaseException:
            self.guard.end(guarded)
            self.work_folders.tidy(work)
            raise
        source = source_of(prepared.command, command, snapshot)
        begun = Begun(command, started.seq, confined.isolation, source, walls, work, guarded)
        run = partial(started_and_run, placed, confined, cancel, on_output, wakeup_fd)
        return self.ending.result_of(begun, run)

    def guarded(self, command: ScriptCommand, sandbox: Sandbox) -> Guarded:
        """What inside the folders that the script may write stays as it is."""
        if sandbox.tier == "none":
            return NOTHING_GUARDED
        roots = writable_roots(command, self.policy, self.state_dir)
        try:
            guarded = self.guard.begin(roots, command.timeout, has_mounts=sandbox.tier != "landlock")
        except OSError as error:
            raise StateUnavailableError(
                f"What stays as it is in {', '.join(roots)} cannot be noted in {self.state_dir}: "
                f"{error.strerror or error}. Make the state folder writable, or name another with SKILLKIT_STATE_DIR."
            ) from error
        try:
            require_countable(guarded, self.policy)
        except SkillKitError:
            self.guard.end(guarded)
            raise
        return guarded

    def walled(
        self, command: ScriptCommand, sandbox: Sandbox, snapshot: Path | None, guarded: Guarded
    ) -> tuple[Sandbox, Walls, Path]:
        """The walls around a run, and its work folder."""
        work = self.new_work_folder(command)
        if sandbox.tier == "none":
            return sandbox, NO_WALLS, work
        walls = self.walls(command, work, snapshot, guarded)
        return able_to_guard(sandbox, walls, self.policy), walls, work

    def runs_in_place(self, prepared: PreparedRun, *, is_mounting: bool) -> bool:
        """Whether the folder itself runs: what a person approved never is, since others can write to it."""
        by_a_person = prepared.decision is Decision.ASK or prepared.channel is not None
        is_searching = self.policy.sandbox != "off" and apart_from_others(prepared.command) is not None
        return not (is_mounting or by_a_person or is_searching or self.policy.approval != "never")

    def placed(
        self, command: ScriptCommand, manifest: Manifest, held: ExitStack, *, is_mounting: bool
    ) -> tuple[ScriptCommand, Path | None]:
        """On a copy: mounted in the skill's own place, or where it lies."""
        snapshot = self.snapshot(command, manifest, held)
        return (command, snapshot) if is_mounting else (moved_to(command, snapshot), None)

    def snapshot(self, command: ScriptCommand, manifest: Manifest, held: ExitStack) -> Path:
        """The bytes that were hashed, to be shown, mounted or run."""
        try:
            return held.enter_context(self.snapshots.held(command.base_directory, manifest))
        except OSError as error:
            raise StateUnavailableError(
                f"No copy of {command.skill_name!r} can be kept in {self.snapshots.folder}: "
                f"{error.strerror or error}. "
                "Make the state folder writable, or name another with SKILLKIT_STATE_DIR."
            ) from error

    def walls(self, command: ScriptCommand, work: Path, snapshot: Path | None, guarded: Guarded) -> Walls:
        return walls_around(
            command,
            self.policy,
            work=work,
            snapshot=snapshot,
            state_folder=self.state_dir,
            apart=apart_from_others(command) if snapshot else None,
            guarded=guarded,
            everywhere=self.guard.everywhere() if self.policy.allow_filesystem else (),
            named=self.named_paths,
        )

    def execute(
        self,
        skill: Skill | None,
        call: CallArguments,
        *,
        approver: Approver | None = None,
        cancel: threading.Event | None = None,
        on_output: OnOutput | None = None,
        wakeup_fd: int | None = None,
    ) -> ScriptExecutionResult:
        """Both halves, and the question between them; what cannot even be resolved is on record too."""
        stop = Cancellation(cancel, wakeup_fd=wakeup_fd)
        prepared, answer = self.answered(skill, call, approver or self.approver, stop)
        return self.complete(
            prepared, answer, cancel=cancel, on_output=on_output, wakeup_fd=wakeup_fd, is_fresh=answer is None
        )

    def answered(
        self, skill: Skill | None, call: CallArguments, approver: Approver | None, cancel: Cancellation
    ) -> tuple[PreparedRun, OptionAnswer | None]:
        """What was decided, with a person's answer where one is needed."""
        while True:
            try:
                prepared = self.prepare(skill, call)
            except SkillKitError as error:
                self.record_unresolved(error, skill.name if skill else PROGRAM_OWNER, call)
            if prepared.decision is not Decision.ASK:
                return prepared, None
            try:
                answer = self.approving.answer_for(prepared, approver, cancel)
            except SkillKitError as error:
                self.record_refusal(error, prepared)
            if answer is not None:
                return prepared, answer
            # Somebody's word for the session covered it meanwhile; whether it still does is decided anew.

    def unresolved(self, error: SkillKitError, skill_name: str, call: CallArguments) -> PreparedRun:
        """What cannot be made a command may not run; `complete` records that and raises the error."""
        fields = unresolved_fields(skill_name, call.script_name, call.session_id, call.arguments, call.argv)
        return PreparedRun(None, Decision.DENY, (str(error),), error=error, asked_for=fields)

    def record_unresolved(self, error: SkillKitError, skill_name: str, call: CallArguments) -> NoReturn:
        self.record_refusal(error, self.unresolved(error, skill_name, call))

    def record_refusal(
        self, error: SkillKitError, prepared: PreparedRun, answer: OptionAnswer | None = None
    ) -> NoReturn:
        fields = start_fields(prepared, answer) if prepared.resolved else prepared.asked_for
        self.audit.append("refused", {**fields, **refusal_fields(error)})
        raise error

    def new_work_folder(self, command: ScriptCommand) -> Path:
        try:
            return self.work_folders.new()
        except OSError as error:
            raise ScriptPermissionError(
                f"{command.script_name!r} of {command.skill_name!r} gets no work folder: {error.strerror or error}. "
                "Check the folder for temporary files (TMPDIR) and its free space."
            ) from error

    def close(self) -> None:
        self.work_folders.close()
        self.guard.close()
        self.store.close()


def is_root() -> bool:
    return os.name == "posix" and os.geteuid() == 0
