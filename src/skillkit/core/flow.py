"""The sequence, written once: resolve, decide, record, run, record. Every surface ends here."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

from skillkit.core.ask.approvals import Approvals, require_approved, require_bounds
from skillkit.core.ask.questions import approval_request
from skillkit.core.decide import after_change, after_widening, decide, under_approval
from skillkit.core.exceptions import AuditUnavailableError, SandboxUnavailableError, SkillKitError
from skillkit.core.models import Skill
from skillkit.core.paths.forbidden import note_writable
from skillkit.core.record import (
    AuditLog,
    end_fields,
    error_text,
    identity,
    refusal_fields,
    start_fields,
    unresolved_fields,
)
from skillkit.core.resolve import CallArguments, resolve_command, resolve_program
from skillkit.core.run.place import Here
from skillkit.core.run.unwalled import read_output
from skillkit.core.store.state import StateStore
from skillkit.core.values.bounds import Bounds
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.questions import Approver, OptionAnswer, Prompt
from skillkit.core.values.runs import (
    NO_CONTROL,
    PROGRAM_OWNER,
    Decision,
    PreparedRun,
    Ran,
    RunControl,
    ScriptCommand,
    ScriptExecutionResult,
)
from skillkit.core.values.skills import Workspace

__all__ = ["Flow"]


class Flow:
    """One policy, one audit, one place where runs happen; holds no state of a single run."""

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
        self.store = StateStore(state_dir)
        self.audit = AuditLog(self.store)
        self.approvals = Approvals(self.store)
        self.here = Here(policy, state_dir, protected=protected, approved=self.approvals.standing.digests)

    # The whole way, and its two halves: `prepare` has no effects but a copy of the skill, `complete` acts once.

    def execute(
        self,
        skill: Skill | None,
        call: CallArguments,
        control: RunControl = NO_CONTROL,
        *,
        approver: Approver | None = None,
    ) -> ScriptExecutionResult:
        """Both halves, and the question between them; what cannot even be resolved is on record too."""
        prepared, answer = self._prepare_and_ask(skill, call, approver or self.approver, control)
        return self.complete(prepared, answer, control, is_fresh=answer is None)

    def prepare(self, skill: Skill | None, call: CallArguments) -> PreparedRun:
        """What would run and whether it may; can be repeated. Without a skill, the call names a program."""
        command = self._resolve(skill, call)
        note_writable((command.workspace, command.base_directory, *self.policy.writable_paths))
        verdict = decide(command, self.policy)
        if verdict.decision is not Decision.ASK:
            return PreparedRun(command, verdict.decision, verdict.reasons, error=verdict.error)
        bounds = self.bounds(command)
        covering = self.approvals.covering(command, bounds) if verdict.is_coverable else None
        if covering is not None:
            verdict = under_approval(verdict, covering[0])
            return PreparedRun(command, verdict.decision, verdict.reasons, channel=covering[1], bounds=bounds)
        if self.approvals.last_approved_digest(command) not in (None, command.digest):
            verdict = after_change(verdict)
        elif approved := self.approvals.walls_of_content(command):
            verdict = after_widening(verdict, is_known=any(approved))
        prompt = self.prompt((command,), verdict.reasons)
        request = approval_request(command, prompt, bounds, is_coverable=verdict.is_coverable)
        asked = request.asked(time.time())
        return PreparedRun(
            command, Decision.ASK, verdict.reasons, asked, is_coverable=verdict.is_coverable, bounds=bounds
        )

    def complete(
        self,
        prepared: PreparedRun,
        answer: OptionAnswer | None = None,
        control: RunControl = NO_CONTROL,
        *,
        is_fresh: bool = False,
    ) -> ScriptExecutionResult:
        """Run what was prepared, once, and record it; a refusal is recorded and raised.

        `is_fresh` says that nothing came between the halves.
        """
        try:
            require_approved(prepared, answer)
            require_bounds(prepared, self.bounds)
            place = self.here.prepare(prepared, self.policy, is_fresh=is_fresh)
        except SkillKitError as error:
            self.record_refusal(error, prepared, answer)
        with place:
            if answer is not None and prepared.decision is Decision.ASK:
                self._spend(prepared, answer)
            started = self.audit.append("started", start_fields(prepared, answer))
            ran = place.run(control)
            self._record_end(started.seq, ran)
        return ran.outcome()

    def _spend(self, prepared: PreparedRun, answer: OptionAnswer) -> None:
        """A word for one run is used up; one for the session is kept."""
        try:
            self.approvals.keep(prepared, answer)
        except SkillKitError as error:
            self.record_refusal(error, prepared, answer)

    def _resolve(self, skill: Skill | None, call: CallArguments) -> ScriptCommand:
        if skill is None:
            return resolve_program(call, self.policy, os.environ, state_folder=self.state_dir)
        return resolve_command(skill, call, self.policy, os.environ, read_output, state_folder=self.state_dir)

    def _prepare_and_ask(
        self, skill: Skill | None, call: CallArguments, approver: Approver | None, control: RunControl
    ) -> tuple[PreparedRun, OptionAnswer | None]:
        """What was decided, with a person's answer where one is needed."""
        while True:
            try:
                prepared = self.prepare(skill, call)
            except SkillKitError as error:
                self.record_unresolved(error, skill.metadata.name if skill else PROGRAM_OWNER, call)
            if prepared.decision is not Decision.ASK:
                return prepared, None
            try:
                answer = self.approvals.answer_for(prepared, approver, control)
            except SkillKitError as error:
                self.record_refusal(error, prepared)
            if answer is not None:
                return prepared, answer
            # Somebody's word for the session covered it meanwhile; whether it still does is decided anew.

    # What a person is shown.

    def prompt(self, commands: Sequence[ScriptCommand], reasons: tuple[str, ...]) -> Prompt:
        """Read from the copy that will run, not from the folder."""
        from skillkit.core.ask.prompt import prompt_for  # reads code; most runs ask nothing

        command = commands[0]
        with ExitStack() as held:
            return prompt_for(
                commands,
                origin=str(command.script_path if command.is_program else command.base_directory),
                reasons=reasons,
                manifest=self.here.manifest(command),
                source_folder=self.here.copy(command, held),
                approved_folder=self.here.snapshots.approved_copy(self.approvals.last_approved_digest(command)),
                walls=self.reach(commands),
                reach=self._reach_in_short(commands),
            )

    def reach(self, commands: Sequence[ScriptCommand]) -> tuple[str, ...]:
        """What the walls will and will not allow, in sentences."""
        granted = [path for each in commands for path in self.here.granted_paths(each)]
        first = commands[0]
        starts_in = [each.working_directory for each in commands]
        longest = max(each.timeout for each in commands)
        own = [folder for each in commands for folder in self.here.program_folders(each)]
        return self._sentences(first.base_directory, first.workspace, granted, longest, starts_in, own)

    def _reach_in_short(self, commands: Sequence[ScriptCommand]) -> str:
        from skillkit.core.ask.reach import reach_in_short

        granted = [path for each in commands for path in self.here.granted_paths(each)]
        tier, workspace = self.here.tier(self.policy), commands[0].workspace
        return reach_in_short(self.policy, tier=tier, workspace=workspace, granted=granted)

    def reach_of_any(self, folder: Path) -> tuple[str, ...]:
        """The same for whichever script of the skill in this folder, wherever it is run."""
        return self._sentences(folder, "it is run in", ["files and folders"], self.policy.timeout_seconds)

    def _sentences(
        self,
        folder: Path,
        workspace: Workspace | str | None,
        granted: Sequence[str],
        timeout: float,
        starts_in: Sequence[str] = (),
        programs: Sequence[str] = (),
    ) -> tuple[str, ...]:
        from skillkit.core.ask.reach import wall_sentences

        return wall_sentences(
            self.policy,
            tier=self.here.tier(self.policy),
            skill=str(folder),
            workspace=workspace,
            granted=granted,
            timeout=timeout,
            is_root=_is_root(),
            starts_in=starts_in,
            programs=tuple(dict.fromkeys(programs)),
        )

    @property
    def tier(self) -> str:
        """The kind of walls that runs get; `none` where there are none, though policy may then refuse."""
        try:
            return self.here.tier(self.policy)
        except SandboxUnavailableError:
            return "none"

    def bounds(self, command: ScriptCommand | None) -> Bounds:
        """What a run gets, to be compared; without a command, any script of a skill in any workspace."""
        from skillkit.core.ask.reach import bounds_of

        return bounds_of(self.policy, command, tier=self.here.tier(self.policy), is_root=_is_root())

    # What is put on record.

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

    def _record_end(self, started: int, ran: Ran) -> None:
        """Whatever stopped the run is on record before it is raised; an interrupt stays an interrupt."""
        fields: dict[str, Any] = {**identity(ran.command), "started": started}
        if ran.set_aside:
            fields["set_aside"] = list(ran.set_aside)
        if ran.error is not None:
            fields["error"] = error_text(ran.error)
        if ran.ended is not None and ran.result is not None:
            fields |= end_fields(ran.ended, ran.result)
        try:
            self.audit.append("finished", fields)
        except AuditUnavailableError as unrecorded:
            if ran.error is None:
                unrecorded.result = ran.result
                raise
            ran.error.add_note(f"Its end could not be recorded: {unrecorded}")

    def close(self) -> None:
        self.here.close()
        self.store.close()


def _is_root() -> bool:
    return os.name == "posix" and os.geteuid() == 0
