"""The sequence, written once: resolve, decide, record, run, record. Every surface ends here."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from skillkit.core.ask.approvals import Approvals, require_approved, require_bounds
from skillkit.core.ask.questions import approval_request
from skillkit.core.decide import after_change, after_widening, decide, under_approval
from skillkit.core.decide.rules import Verdict
from skillkit.core.exceptions import (
    AuditUnavailableError,
    ContentChangedError,
    InterpreterNotAllowedError,
    SandboxUnavailableError,
    SkillKitError,
)
from skillkit.core.granting import Given, Granting, keeps_home, ticked
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
from skillkit.core.resolve import CallArguments, resolve_command, resolve_program, version_of
from skillkit.core.run.place import Here
from skillkit.core.run.unwalled import read_output
from skillkit.core.store.installed import InstalledSkills
from skillkit.core.store.state import StateStore
from skillkit.core.store.trust import Approval
from skillkit.core.values.bounds import Bounds
from skillkit.core.values.grants import grant_label, names_of
from skillkit.core.values.masking import Masker
from skillkit.core.values.needs import Grant, Need
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
        self.granting = Granting(policy, self.store, state_dir)
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
        given = self.granting.of(skill)
        command, lacking = self._resolve_first(skill, call, given.lasting)
        known = command.grants if lacking is None else (*command.grants, Grant("interpreter", command.interpreter))
        policy = self.granting.policy(known)
        note_writable((command.workspace, command.base_directory, *policy.writable_paths))
        verdict = decide(command, policy)
        needs = partial(self.needs, skill, command)
        if verdict.decision is not Decision.ASK:
            error = verdict.error or lacking
            decision, reasons = (Decision.DENY, (str(error),)) if lacking else (verdict.decision, verdict.reasons)
            return PreparedRun(command, decision, reasons, error=error, needs=needs)
        bounds = self.bounds(command)
        prepared = PreparedRun(
            command,
            Decision.ASK,
            verdict.reasons,
            error=lacking,
            is_coverable=verdict.is_coverable,
            bounds=bounds,
            again=partial(self._resolve, skill, call),
            needs=needs,
        )
        covering = self.approvals.covering(command, bounds) if verdict.is_coverable else None
        if covering is not None:
            return self._covered(prepared, verdict, covering)
        return self._asking(prepared, verdict, given, skill)

    def _covered(self, prepared: PreparedRun, verdict: Verdict, covering: Approval) -> PreparedRun:
        """Under an earlier word of a person, with what they ticked then and policy still lets be given."""
        verdict = under_approval(verdict, covering.kind)
        allowed = replace(prepared, decision=verdict.decision, reasons=verdict.reasons, channel=covering.channel)
        return self._with_ticks(allowed, self.granting.usable(covering.ticks))

    def _with_ticks(self, prepared: PreparedRun, ticks: tuple[Grant, ...]) -> PreparedRun:
        """The same run within the same walls and what was ticked; where it lacks its interpreter, it may not run."""
        if prepared.error is not None and Grant("interpreter", prepared.command.interpreter) not in ticks:
            return replace(prepared, decision=Decision.DENY, reasons=(str(prepared.error),))
        if not ticks or prepared.again is None:
            return prepared
        before = prepared.command
        command = prepared.again((*before.grants, *ticks))
        if _what_runs(command) != _what_runs(before):
            raise ContentChangedError.because(f"{before.skill_name} changed after it was looked at", "Run it again.")
        return replace(prepared, resolved=command, ticks=ticks, error=None)

    def _asking(self, prepared: PreparedRun, verdict: Verdict, given: Given, skill: Skill | None) -> PreparedRun:
        """With the question: what changed, what it needs, what it had, and what a yes may open."""
        command, last = prepared.command, self.approvals.last_approved(prepared.command)
        had = given.had
        if last is not None and last.digest != command.digest:
            verdict = after_change(verdict)
            had = (*had, *last.ticks)
        elif approved := self.approvals.walls_of_content(command):
            verdict = after_widening(verdict, is_known=any(approved))
        prompt = replace(
            self.prompt((command,), verdict.reasons),
            needs=self.needs(skill, command),
            had=tuple(map(grant_label, dict.fromkeys(had))),
        )
        left = self.approvals.left_in_session(command)
        offers = self.granting.offers(prompt.needs, command, had=had, left=left, home=self.here.home_before(command))
        version = "" if command.is_program else version_of(command.argv[0], command.environment["PATH"], read_output)
        request = approval_request(
            command, prompt, self.bounds(command), tuple(offers), version=version, is_coverable=verdict.is_coverable
        )
        offered = {tick.id: grants for tick, grants in offers.items()}
        return replace(prepared, reasons=verdict.reasons, request=request.asked(time.time()), offered=offered)

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
            prepared = self._opened(prepared, answer)
            require_bounds(prepared, self.bounds)
            policy = self.granting.policy(prepared.command.grants)
            keys = self.granting.keys(prepared.command)
            masker = self.granting.masker(prepared.command, keys)
            place = self.here.prepare(prepared, policy, is_fresh=is_fresh, keys=keys, masker=masker)
        except SkillKitError as error:
            self.record_refusal(error, prepared, answer)
        with place:
            if answer is not None and prepared.decision is Decision.ASK:
                self._spend(prepared, answer)
            started = self.audit.append("started", start_fields(prepared, answer, masker))
            ran = place.run(control)
            self._record_end(started.seq, ran, masker)
        return self._hinted(prepared, ran)

    def _hinted(self, prepared: PreparedRun, ran: Ran) -> ScriptExecutionResult:
        """The result; of one that failed, what its skill needs, is here and was not given stands in the hint."""
        result = ran.outcome()
        if result.success or result.timed_out or result.cancelled or prepared.needs is None:
            return result
        said = ""
        with suppress(SkillKitError, OSError):  # the run has ended, and what cannot be looked at is not said
            said = self.granting.hint(prepared.command, prepared.needs(), result)
        if not said:
            return result
        is_told = said.split(maxsplit=1)[0] in result.hint  # of the same name, with the remedy for who has no grants
        return replace(result, hint=said if is_told else f"{result.hint} {said}".strip())

    def _spend(self, prepared: PreparedRun, answer: OptionAnswer) -> None:
        """A word for one run is used up; one for the session is kept."""
        try:
            self.approvals.keep(prepared, answer)
        except SkillKitError as error:
            self.record_refusal(error, prepared, answer)

    def _opened(self, prepared: PreparedRun, answer: OptionAnswer | None) -> PreparedRun:
        """What was asked about, with what the person ticked."""
        if prepared.decision is not Decision.ASK or answer is None:
            return prepared
        opened = self._with_ticks(prepared, self.granting.usable(ticked(prepared, answer)))
        require_approved(opened, answer)
        if keeps_home(answer):
            self.here.keep_home(opened.command)
        return opened

    def _resolve(self, skill: Skill | None, call: CallArguments, grants: Sequence[Grant] = ()) -> ScriptCommand:
        policy, given = self.granting.policy(grants), tuple(grants)
        if skill is None:
            return resolve_program(call, policy, os.environ, state_folder=self.state_dir)
        return resolve_command(skill, call, policy, os.environ, read_output, state_folder=self.state_dir, grants=given)

    def _resolve_first(
        self, skill: Skill | None, call: CallArguments, lasting: tuple[Grant, ...]
    ) -> tuple[ScriptCommand, InterpreterNotAllowedError | None]:
        """The command; with the error that stays, unless a person gives it the interpreter that it needs."""
        try:
            return self._resolve(skill, call, lasting), None
        except InterpreterNotAllowedError as error:
            if "interpreter" not in self.policy.grantable:
                raise
            command = self._resolve(skill, call, (*lasting, Grant("interpreter", error.interpreter)))
            return replace(command, grants=lasting), error

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
                signer=InstalledSkills(self.store).signer_of(command.base_directory, command.digest),
            )

    def needs(self, skill: Skill | None, command: ScriptCommand) -> tuple[Need, ...]:
        """What a script uses beyond its skill's folder and whether it is there for it; read from the copy that runs."""
        if skill is None:
            return ()
        with ExitStack() as held:
            return self.granting.needs(skill, command, self.here.copy(command, held), self.here.tier())

    def reach(self, commands: Sequence[ScriptCommand]) -> tuple[str, ...]:
        """What the walls will and will not allow, in sentences."""
        granted = [path for each in commands for path in self.here.granted_paths(each)]
        first = commands[0]
        starts_in = [each.working_directory for each in commands]
        longest = max(each.timeout for each in commands)
        own = [folder for each in commands for folder in self.here.program_folders(each)]
        return self._sentences(first.base_directory, first.workspace, granted, longest, first.grants, starts_in, own)

    def _reach_in_short(self, commands: Sequence[ScriptCommand]) -> str:
        from skillkit.core.ask.reach import reach_in_short

        granted = [path for each in commands for path in self.here.granted_paths(each)]
        policy, workspace = self.granting.policy(commands[0].grants), commands[0].workspace
        return reach_in_short(policy, tier=self.here.tier(), workspace=workspace, granted=granted)

    def reach_of_any(self, skill: Skill) -> tuple[str, ...]:
        """The same for whichever script of the skill, wherever it is run."""
        given, timeout = self.granting.of(skill), self.policy.timeout_seconds
        return self._sentences(skill.base_directory, "it is run in", ["files and folders"], timeout, given.lasting)

    def _sentences(
        self,
        folder: Path,
        workspace: Workspace | str | None,
        granted: Sequence[str],
        timeout: float,
        grants: tuple[Grant, ...],
        starts_in: Sequence[str] = (),
        programs: Sequence[str] = (),
    ) -> tuple[str, ...]:
        from skillkit.core.ask.reach import wall_sentences

        return wall_sentences(
            self.granting.policy(grants),
            tier=self.here.tier(),
            skill=str(folder),
            workspace=workspace,
            granted=granted,
            timeout=timeout,
            is_root=_is_root(),
            secrets=names_of("secret", grants),
            starts_in=starts_in,
            programs=tuple(dict.fromkeys(programs)),
        )

    @property
    def tier(self) -> str:
        """The kind of walls that runs get; `none` where there are none, though policy may then refuse."""
        try:
            return self.here.tier()
        except SandboxUnavailableError:
            return "none"

    def bounds(self, command: ScriptCommand | None) -> Bounds:
        """What a run gets, to be compared; without a command, any script of a skill in any workspace."""
        from skillkit.core.ask.reach import bounds_of

        policy = self.granting.policy(command.grants if command else ())
        return bounds_of(policy, command, tier=self.here.tier(), is_root=_is_root())

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

    def _record_end(self, started: int, ran: Ran, masker: Masker) -> None:
        """Whatever stopped the run is on record before it is raised; an interrupt stays an interrupt."""
        fields: dict[str, Any] = {**identity(ran.command), "started": started}
        if ran.set_aside:
            fields["set_aside"] = list(ran.set_aside)
        if ran.error is not None:
            fields["error"] = error_text(ran.error)
        if ran.ended is not None and ran.result is not None:
            fields |= end_fields(ran.ended, ran.result)
        try:
            self.audit.append("finished", masker.mask_all(fields))
        except AuditUnavailableError as unrecorded:
            if ran.error is None:
                unrecorded.result = ran.result
                raise
            ran.error.add_note(f"Its end could not be recorded: {unrecorded}")

    def close(self) -> None:
        self.here.close()
        self.store.close()


def _what_runs(command: ScriptCommand) -> tuple[object, ...]:
    """What a tick may not change: it gives to a run, and never makes it another one."""
    named = (command.skill_name, command.digest, command.script_name, command.interpreter, command.workspace)
    return *named, command.argv, command.stdin, command.session_id, command.call_id


def _is_root() -> bool:
    return os.name == "posix" and os.geteuid() == 0
