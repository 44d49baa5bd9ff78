"""The sequence, written once: resolve, decide, record, run, record. Every surface ends here."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

from skillkit.core.ask.approvals import Approvals, require_approved, require_bounds
from skillkit.core.ask.questions import approval_request
from skillkit.core.decide import after_change, after_widening, after_yes, decide, under_approval
from skillkit.core.decide.rules import Verdict
from skillkit.core.exceptions import (
    ContentChangedError,
    InterpreterNotAllowedError,
    SandboxUnavailableError,
    SkillKitError,
)
from skillkit.core.flow.explaining import explained
from skillkit.core.flow.granting import (
    NOTHING_GIVEN,
    Given,
    Granting,
    Opened,
    grantable,
    is_outdated,
    is_same_run,
    keeps_home,
    ticked,
)
from skillkit.core.models import Skill
from skillkit.core.paths import is_root
from skillkit.core.paths.forbidden import note_writable
from skillkit.core.record import AuditLog, refusal_fields, start_fields, unresolved_fields
from skillkit.core.record.redaction import redacted_text
from skillkit.core.resolve import CallArguments, resolve_command, resolve_program, version_of
from skillkit.core.run.place import Here
from skillkit.core.run.unwalled import read_output
from skillkit.core.store.base import Store
from skillkit.core.store.opening import open_store
from skillkit.core.store.running import RunningRuns
from skillkit.core.store.skills import InstalledSkills, Signing
from skillkit.core.store.trust import Approval
from skillkit.core.values.bounds import Bounds
from skillkit.core.values.grants import grant_label, names_of
from skillkit.core.values.masking import NOTHING_MASKED
from skillkit.core.values.needs import Grant, Need
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.questions import Approver, OptionAnswer, Prompt
from skillkit.core.values.runs import (
    NO_CONTROL,
    PROGRAM_OWNER,
    Decision,
    PreparedRun,
    RunControl,
    ScriptCommand,
    ScriptExecutionResult,
)
from skillkit.core.values.skills import Workspace

__all__ = ["Flow"]


class Flow:
    """One policy, one audit, one place where runs happen; holds no state of a single run."""

    asks_together = True  # whether one question may be about several runs

    def __init__(
        self,
        policy: ScriptPolicy,
        state_dir: Path,
        *,
        state: str | Store | None = None,
        approver: Approver | None = None,
        protected: Sequence[Path] = (),
    ) -> None:
        """`protected` are paths that no script may change, wherever they lie."""
        self.policy = policy
        self.state_dir = state_dir
        self.approver = approver
        self.store = open_store(state_dir, state)
        self.audit = AuditLog(self.store)
        self.approvals = Approvals(self.store)
        self.running = RunningRuns(self.store, redacted_text)
        self.installed = InstalledSkills(self.store)
        self.granting = Granting(policy, self.store, state_dir)
        self._nothing_opened = Opened(policy, {}, NOTHING_MASKED)
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
        prepared = self._decided(skill, call)
        return self.here.review(prepared) if self.here.warm else prepared

    def _decided(self, skill: Skill | None, call: CallArguments) -> PreparedRun:
        given = self._given(skill)
        has_signers = self.installed.knows_signers()
        command, lacking = self._resolve_first(skill, call, given.lasting)
        if skill and has_signers:
            command = self.installed.with_signer(command)
        known = command.grants if lacking is None else (*command.grants, Grant("interpreter", command.interpreter))
        policy = self.granting.policy(known) if known else self.policy
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
            again=partial(self._resolve_again, skill, call),
            needs=needs,
        )
        covering = self.approvals.covering(command, bounds) if verdict.is_coverable else None
        if covering is not None and not any(map(is_outdated, covering.ticks)):
            return self._covered(prepared, verdict, covering)
        return self._asking(prepared, verdict, given, skill)

    def _given(self, skill: Skill | None) -> Given:
        """What a person gave the skill for good; most were given nothing, and one look into the store says so."""
        if skill is None or not self.policy.grantable:
            return NOTHING_GIVEN
        kept = self.granting.standing.of(skill.metadata.name, skill.base_directory)
        return self.granting.given(skill, kept) if kept else NOTHING_GIVEN

    def _covered(self, prepared: PreparedRun, verdict: Verdict, covering: Approval) -> PreparedRun:
        """Under an earlier word of a person, with what they ticked then and policy still lets be given."""
        verdict = under_approval(verdict, covering.kind)
        allowed = replace(prepared, decision=verdict.decision, reasons=verdict.reasons, channel=covering.channel)
        return self._with_ticks(allowed, self.granting.usable(covering.ticks))

    def _with_ticks(self, prepared: PreparedRun, ticks: tuple[Grant, ...], *, was_asked: bool = False) -> PreparedRun:
        """The same run within the same walls and what was ticked; where it lacks its interpreter, it may not run.

        A person who was asked may have prepared packages for it before they answered.
        """
        if prepared.error is not None and Grant("interpreter", prepared.command.interpreter) not in ticks:
            return replace(prepared, decision=Decision.DENY, reasons=(str(prepared.error),))
        before = prepared.command
        if prepared.again is None or not (ticks or (was_asked and self.granting.has_new_packages(before))):
            return prepared
        command = prepared.again((*before.grants, *ticks))
        if not is_same_run(before, command):
            raise ContentChangedError.because(f"{before.skill_name} changed after it was looked at", "Run it again.")
        return replace(prepared, resolved=command, ticks=ticks, error=None)

    def _asking(self, prepared: PreparedRun, verdict: Verdict, given: Given, skill: Skill | None) -> PreparedRun:
        """With the question: what changed, what it needs, what it had, and what a yes may open."""
        command, last = prepared.command, self.approvals.last_approved(prepared.command)
        had = (*given.had, *filter(is_outdated, last.ticks if last else ()))
        if last is not None and last.digest != command.digest:
            verdict = after_change(verdict)
            had = (*had, *last.ticks)
        elif approved := self.approvals.walls_of_content(command):
            verdict = after_widening(verdict, is_known=any(approved))
        elif last_yes := self._last_yes(command):
            verdict = after_yes(verdict, last_yes)
        prompt = replace(
            self.prompt((command,), verdict.reasons),
            needs=self.needs(skill, command),
            had=tuple(map(grant_label, dict.fromkeys(had))),
        )
        left = self.approvals.left_in_session(command)
        offers = self.granting.offers(
            prompt.needs, command, skill, had=had, left=left, home=self.here.home_before(command)
        )
        version = "" if command.is_program else version_of(command.own_interpreter, command.own_path, read_output)
        contents = [grant.content for grants in offers.values() for grant in grants if grant.content]
        bounds, is_coverable = self.bounds(command), verdict.is_coverable
        request = approval_request(
            command, prompt, bounds, tuple(offers), version=version, contents=contents, is_coverable=is_coverable
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
        """Run what was prepared, once, and record it; `is_fresh` says that nothing came between the halves."""
        try:
            if prepared.decision is not Decision.ALLOW:
                prepared = self._approved(prepared, answer)
            if prepared.bounds is not None:
                require_bounds(prepared, self.bounds)
            has_grants = prepared.command.grants
            policy, keys, masker = self.granting.opened(prepared.command) if has_grants else self._nothing_opened
            place = self.here.prepare(prepared, policy, is_fresh=is_fresh, keys=keys, masker=masker)
        except SkillKitError as error:
            self.record_refusal(error, prepared, answer)
        with place:
            if answer is not None and prepared.decision is Decision.ASK:
                self._spend(prepared, answer)
            started = self.audit.append("started", start_fields(prepared, answer, masker))
            told = (started.seq, prepared, answer, masker, place.way_out)
            is_told = place.way_out or answer or prepared.channel  # else nobody looks for what it does meanwhile
            with self.running.listening(*told) if is_told else nullcontext() as heard:
                ran = place.run(heard(control) if heard else control)
                self.audit.finish(started.seq, ran, masker)
        if self.here.warm:
            self.here.expect(place, prepared, policy)
        result = ran.outcome()
        return result if result.success else explained(prepared, result, policy)

    def _spend(self, prepared: PreparedRun, answer: OptionAnswer) -> None:
        """A word for one run is used up; one for the session is kept."""
        try:
            self.approvals.keep(prepared, answer)
        except SkillKitError as error:
            self.record_refusal(error, prepared, answer)

    def _approved(self, prepared: PreparedRun, answer: OptionAnswer | None) -> PreparedRun:
        """What was asked about and a person said yes to, with what they ticked; all else is refused."""
        require_approved(prepared, answer)
        ticks = self.granting.usable(ticked(prepared, answer)) if answer else ()
        opened = self._with_ticks(prepared, ticks, was_asked=True)
        require_approved(opened, answer)
        if answer and keeps_home(answer):
            self.here.keep_home(opened.command)
        return opened

    def _resolve(self, skill: Skill | None, call: CallArguments, grants: Sequence[Grant] = ()) -> ScriptCommand:
        policy, given = self.granting.policy(grants) if grants else self.policy, tuple(grants)
        if skill is None:
            return resolve_program(call, policy, os.environ, state_folder=self.state_dir)
        return resolve_command(skill, call, policy, os.environ, read_output, state_folder=self.state_dir, grants=given)

    def _resolve_again(self, skill: Skill | None, call: CallArguments, grants: Sequence[Grant]) -> ScriptCommand:
        command = self._resolve(skill, call, grants)
        return self.installed.with_signer(command) if skill else command

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
            return replace(command, grants=lasting), grantable(error, command)

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
                bounds=[self.bounds(each) for each in commands],
                granted=[path for each in commands for path in self.here.granted_paths(each)],
                last_yes=self._last_yes(command),
                signer=Signing(command.signer, command.lost_signer).said,
            )

    def needs(self, skill: Skill | None, command: ScriptCommand) -> tuple[Need, ...]:
        """What a script uses beyond its skill's folder and whether it is there for it; read from the copy that runs."""
        if skill is None:
            return ()
        with ExitStack() as held:
            return self.granting.needs(skill, command, self.here.copy(command, held), self.here.tier())

    def reach(self, commands: Sequence[ScriptCommand]) -> tuple[str, ...]:
        """What the walls will and will not allow, in sentences."""
        granted, first = [path for each in commands for path in self.here.granted_paths(each)], commands[0]
        starts_in = [each.working_directory for each in commands]
        longest = max(each.timeout for each in commands)
        own = [folder for each in commands for folder in self.here.program_folders(each)]
        return self._sentences(first.base_directory, first.workspace, granted, longest, first.grants, starts_in, own)

    def _last_yes(self, command: ScriptCommand) -> str:
        """What kind of yes this skill had last: for longer than one run, for one, or none that is known."""
        if self.approvals.last_approved(command) is not None:
            return "lasting"
        return "once" if self.store.exists() and self.audit.was_answered(command.skill_name, "yes_once") else ""

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
            is_root=is_root(),
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
        return bounds_of(policy, command, tier=self.here.tier(), is_root=is_root())

    # What is put on record.

    def unresolved(self, error: SkillKitError, skill_name: str, call: CallArguments) -> PreparedRun:
        """What cannot be made a command may not run; `complete` records that and raises the error."""
        fields = unresolved_fields(skill_name, call.script_name, call.session_id, call.arguments, call.argv)
        return PreparedRun(None, Decision.DENY, (str(error),), error=error, asked_for=fields)

    def record_unresolved(self, error: SkillKitError, skill_name: str, call: CallArguments) -> NoReturn:
        self.record_refusal(error, self.unresolved(error, skill_name, call))

    def record_refusal(self, error: SkillKitError, prepared: PreparedRun, said: OptionAnswer | None = None) -> NoReturn:
        fields = start_fields(prepared, said) if prepared.resolved else prepared.asked_for
        self.audit.append("refused", {**fields, **refusal_fields(error)})
        raise error

    def close(self) -> None:
        self.here.close()
        self.running.close()
        self.store.close()
