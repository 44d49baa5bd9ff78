"""A call in a manager that has a runner -> a run on a worker, and its result: the same flow, but for where it runs.

Theory of operation. Everything until the decision happens here, as it does without a runner. Then the order is written,
the skill's bytes are put where workers find them, a row is made, and the broker carries its id. A question about a run
carries its order and has its id. A person's answer must be in the shared world before anything is ordered: one that
came through a channel of this process is written there, which takes a login with the role of approvers.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillkit.core.ask.approvals import declined, with_what_is_kept
from skillkit.core.exceptions import (
    ContentChangedError,
    RequestClosedError,
    ScriptRefusedError,
    SkillKitError,
    StateUnavailableError,
)
from skillkit.core.flow import Flow
from skillkit.core.flow.granting import Given, Granting
from skillkit.core.models import Skill
from skillkit.core.models.digest import manifest_of
from skillkit.core.paths import real_path
from skillkit.core.record import refusal_fields, start_fields
from skillkit.core.resolve import CallArguments
from skillkit.core.store.locks import ApprovedLocks
from skillkit.core.store.requests import PastRequest, Requests, question_from
from skillkit.core.values.bounds import Bounds
from skillkit.core.values.needs import Grant
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.questions import ANSWER_SECONDS, OptionAnswer, OptionRequest
from skillkit.core.values.runs import (
    NO_CONTROL,
    Decision,
    PreparedRun,
    RunControl,
    ScriptCommand,
    ScriptExecutionResult,
)
from skillkit.core.values.skills import Workspace
from skillkit.fleet.lacking import PLUGIN_VARIABLE, has_own_plugin, refuse_lost_home, refuse_plugin_files
from skillkit.fleet.orders import Lock, Order, order_of, portable, travelling
from skillkit.fleet.packing import pack
from skillkit.fleet.reasons import told_reason
from skillkit.fleet.rows import Rows, patiently, shared
from skillkit.fleet.sending import Sender
from skillkit.fleet.tracing import span
from skillkit.fleet.waiting import FleetRun
from skillkit.fleet.watch import watch_of
from skillkit.packages.values import names_in

if TYPE_CHECKING:
    from skillkit.core.decide.rules import Verdict

__all__ = ["ORDER", "TRAVELLING_GRANTS", "FrontFlow"]

ORDER = "order"
"""Where a question says in its context which order it is about; its id is the digest of that text."""
ATTEMPTS = 3
TRAVELLING_GRANTS = frozenset(("host", "secret", "variable", "interpreter"))
"""Kinds that mean the same on every machine; a path means another file there."""


class FrontGranting(Granting):
    """With packages that workers prepare, whatever was prepared here."""

    def packages_of(self, skill: Skill) -> frozenset[str]:
        locks = ApprovedLocks(self._store).of(skill.metadata.name, manifest_of(real_path(skill.base_directory)).digest)
        return frozenset(name for kind, lock in locks.items() for name in names_in(lock, kind))


class FrontFlow(Flow):
    """The flow of one manager whose runs happen on workers."""

    asks_together = False
    """A worker looks for an answer to its very order, and who answers looks at one order at a time."""

    def __init__(self, runner: Sender, policy: ScriptPolicy, state_dir: Path, **options: Any) -> None:  # noqa: ANN401 - the flow's own
        has = {"has_volume": bool(runner.volumes), "has_homes": bool(runner.homes)}
        super().__init__(travelling(policy, **has), state_dir, **options)
        self.here.ends_soon()  # nothing runs here
        self.runner = runner
        self.shared = shared(self.store)
        self.granting = FrontGranting(self.policy, self.store, state_dir)
        self._locks = ApprovedLocks(self.store)
        self._loses_homes = policy.home == "kept" and not runner.homes and not policy.allow_filesystem
        self._complete: set[tuple[str, str, bool]] = set()
        self.rows = Rows(self.shared)
        self.requests = Requests(self.store)
        self._watch = watch_of(self.shared)
        self._packages: dict[str, str] = {}

    # What differs before the decision: nothing of this machine may enter it.

    def prepare(self, skill: Skill | None, call: CallArguments) -> PreparedRun:
        with self.store.connection():  # one for all that is looked up
            return super().prepare(skill, call)

    def bounds(self, command: ScriptCommand | None) -> Bounds:
        found = super().bounds(command)
        return found if command is None else portable(found, self.runner.volume_of(command))

    def _sentences(
        self,
        folder: Path,
        workspace: Workspace | str | None,
        granted: Sequence[str],
        timeout: float,
        grants: tuple[Grant, ...],
        starts_in: Sequence[str] = (),
        programs: Sequence[str] = (),  # noqa: ARG002 - of this machine, where nothing runs
    ) -> tuple[str, ...]:
        """A volume is named as every machine knows it."""
        shown = f"volume:{self.runner.volume_at(workspace.path)}" if isinstance(workspace, Workspace) else workspace
        return super()._sentences(folder, shown, granted, timeout, grants, starts_in)

    def _resolve(self, skill: Skill | None, call: CallArguments, grants: Sequence[Grant] = ()) -> ScriptCommand:
        if skill is None:
            raise ScriptRefusedError.because(
                f"{call.script_name!r} is a program of this machine, and runs happen on workers",
                "Put it into a script of a skill, or use a manager without a runner.",
            )
        for grant in grants:
            if grant.kind not in TRAVELLING_GRANTS:
                raise ScriptRefusedError.because(
                    f"The grant {grant.id} is about this machine, and cannot travel to a worker",
                    "Take it back, or use a manager without a runner.",
                )
        command = super()._resolve(skill, self.runner.sendable_call(call, skill.base_directory), grants)
        self.runner.refuse_local_paths(command)
        self._refuse_lacking(skill, command)
        return command

    def _refuse_lacking(self, skill: Skill, command: ScriptCommand) -> None:
        """What it needs and no worker has; read once for each content."""
        is_part = skill.metadata.plugin_root is not None and not has_own_plugin(skill)
        key = (command.digest, command.script_name, is_part)
        if key in self._complete or not (is_part or self._loses_homes):
            return
        with ExitStack() as held:
            copy = self.here.copy(command, held)
            if is_part:
                refuse_plugin_files(command, copy, self.here.manifest(command))
            if self._loses_homes:
                refuse_lost_home(command, self.granting.needs_in(copy, skill, command))
        self._complete.add(key)

    def _asking(self, prepared: PreparedRun, verdict: Verdict, given: Given, skill: Skill | None) -> PreparedRun:
        """The same question, about the order: its id is the order's, and it offers what can be given there."""
        told = verdict._replace(reasons=tuple(map(told_reason, verdict.reasons)))
        asked = super()._asking(prepared, told, given, skill)
        if asked.request is None:
            return asked
        offered = {name: grants for name, grants in asked.offered.items() if _travels(name, grants)}
        ticks = tuple(tick for tick in asked.request.grants if tick.id in offered)
        order = self._order(asked.command, self.bounds(asked.command))
        self._supply(asked.command, order.blobs[1:])  # who answers looks at it too
        context = {**asked.request.context, ORDER: order.to_text()}
        return replace(
            asked, offered=offered, request=replace(asked.request, id=order.id, grants=ticks, context=context)
        )

    def _order(self, command: ScriptCommand, bounds: Bounds) -> Order:
        return order_of(
            command,
            bounds,
            self.policy,
            package=self._package(command),
            workspace=self.runner.volume_of(command),
            inputs=self.runner.inputs_of(command),
            homes=self.runner.homes,
            locks=tuple(Lock(*each) for each in self._locks.digests(command.skill_name, command.digest).items()),
            is_plugin=command.environment.get(PLUGIN_VARIABLE) == str(command.base_directory),
        )

    def _package(self, command: ScriptCommand) -> str:
        """Of the bytes that were hashed; shipped once for each content, and again where they are gone."""
        known = self._packages.get(command.digest)
        return known or self._ship(command)

    def _ship(self, command: ScriptCommand) -> str:
        with ExitStack() as held:
            packed = pack(self.here.copy(command, held), self.here.manifest(command))
        digest = patiently(lambda: self.rows.ship(packed))
        self._packages[command.digest] = digest
        return digest

    # The second half.

    def complete(
        self,
        prepared: PreparedRun,
        answer: OptionAnswer | None = None,
        control: RunControl = NO_CONTROL,
        *,
        is_fresh: bool = False,  # noqa: ARG002 - the worker looks again in any case
    ) -> ScriptExecutionResult:
        """Ordered, waited for, and given back; what a worker refuses is on record there, and raised here."""
        streams = control.on_output is not None
        with self._watch.expecting(streams=streams) as run:
            return self.begin(prepared, answer, streams=streams, run=run).result(control=control, is_new=True)

    def begin(
        self,
        prepared: PreparedRun,
        answer: OptionAnswer | None = None,
        *,
        waits: bool = False,
        streams: bool = False,
        run: str = "",
    ) -> FleetRun:
        """The run, ordered; with `waits`, one that waits for a person as a row and nothing else."""
        try:
            if not (waits and prepared.decision is Decision.ASK):
                self._approved(prepared, answer)
            is_asked = prepared.decision is Decision.ASK
            order = Order.from_text(_order_text(prepared)) if is_asked else None
            order = order or self._order(prepared.command, self.bounds(prepared.command))
            if is_asked:
                self._keep_in_store(prepared, answer)
            return self._send(run or str(uuid.uuid4()), prepared, order, needs_answer=is_asked, streams=streams)
        except SkillKitError as error:
            self.record_refusal(error, prepared, answer)

    def _keep_in_store(self, prepared: PreparedRun, answer: OptionAnswer | None) -> None:
        """The question is in the shared world, and the answer too, however it came; one that a run has used is none."""
        request = prepared.request
        assert request is not None  # noqa: S101 - asked
        kept = self.rows.answered(request.id)
        if answer and kept and (kept.answer.option_id, kept.ticks) == (answer.option_id, answer.grants):
            return
        if kept is None:
            self.requests.collect(request.id)  # an answer that a run has used waits for nobody
        if not isinstance(self.requests.find(request.id), OptionRequest):
            # One that was answered already was answered here, where all commands of a list were shown together.
            asked = with_what_is_kept(request.asked(time.time()), prepared, is_alone=answer is None)
            self.requests.open(question_from(asked, ANSWER_SECONDS, asked.single_use, is_held=False))
        if answer is not None:
            given: dict[str, Any] = {"grants": answer.grants, "reason": answer.reason}
            self.requests.answer(request.id, answer.option_id, answer.channel, **given)
            self.requests.collect(request.id)

    def _send(self, run: str, prepared: PreparedRun, order: Order, **options: bool) -> FleetRun:
        with span("skillkit.order", run=run, skill=order.skill, script=order.script):
            return self._sent(run, prepared, order, **options)

    def _sent(self, run: str, prepared: PreparedRun, order: Order, *, needs_answer: bool, streams: bool) -> FleetRun:
        runner = self.runner
        queue = runner.queue_of(self.shared.address.world, order.interpreter, order.bounds.tier)
        options = {"waiting": ANSWER_SECONDS, "patience": runner.patience}
        for _ in range(ATTEMPTS):
            said, missing = patiently(
                lambda: self.rows.order(run, order, queue, needs_answer=needs_answer, streams=streams, **options)
            )
            if said == "full":
                raise ScriptRefusedError.because(
                    f"The world {self.shared.address.world} holds as many runs that wait as it may",
                    "Try later, start more workers, or let its owner allow more: skillkit fleet init --most-queued N.",
                )
            if said != "missing":
                break
            self._supply(prepared.command, missing)
        else:
            raise ContentChangedError.because("What is to be sent changes all the time", "Run it again.")
        if said == "queued":
            runner.publish(self.rows, run, queue)
        return FleetRun(run, self.rows, runner, _Orderer(self, prepared))

    def _supply(self, command: ScriptCommand, missing: Sequence[str]) -> None:
        """The bytes that workers will need."""
        if not missing:
            return
        if self._packages.get(command.digest) in missing:
            self._ship(command)
        contents = [command.stdin, *(Path(each.path).read_bytes() for each in self.runner.inputs_of(command))]
        for content in filter(None, contents):
            patiently(partial(self.rows.ship, content))


@dataclass(frozen=True, slots=True)
class _Orderer:
    """Who ordered a run: knows what was prepared, and where its files may lie."""

    flow: FrontFlow
    prepared: PreparedRun

    @property
    def script_path(self) -> Path:
        return self.prepared.command.script_path

    def work_folder(self) -> Path:
        return self.flow.here.work_folders.new()

    def record(self, run: str, error: SkillKitError) -> None:
        """The end of a run that never started, unless somebody recorded it before."""
        with suppress(StateUnavailableError):
            self.flow.rows.record_end(run, {**start_fields(self.prepared), **refusal_fields(error), "run": run})

    def declined(self, request_id: str) -> SkillKitError:
        """Why a run that waited for a person may not run."""
        found = None
        with suppress(StateUnavailableError, RequestClosedError):
            found = self.flow.requests.find(request_id)
        if isinstance(found, PastRequest) and found.answer is not None:
            return declined(self.prepared, found.answer)
        return ScriptRefusedError.because("Nobody answered the question in time", "Run it again.")


def _travels(name: str, grants: tuple[Grant, ...]) -> bool:
    return len(grants) == 1 and grants[0].id == name and grants[0].kind in TRAVELLING_GRANTS and not grants[0].content


def _order_text(prepared: PreparedRun) -> str:
    return str(prepared.request.context[ORDER]) if prepared.request is not None else ""
