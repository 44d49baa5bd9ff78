"""A run's id -> the run, at most once: claimed, decided about again, and run inside this machine's own walls.

Theory of operation. The message is only a hint; the row decides. Who turns it from queued to running has it, for thirty
seconds at a time. Nothing that a front wrote is believed: the order's id is recomputed, the skill's bytes are hashed,
an order looser than this worker's own policy is refused, and whether a person approved it is looked up in the shared
world. The end, the row and the word to who waits are one transaction; where that cannot be written, it is kept in a
file here and written later.
"""

from __future__ import annotations

import logging
import os
import platform
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from skillkit.core.ask.approvals import NO
from skillkit.core.exceptions import (
    ApprovalUnavailableError,
    AuditUnavailableError,
    ContentChangedError,
    SandboxUnavailableError,
    ScriptRefusedError,
    SkillKitError,
    StateUnavailableError,
)
from skillkit.core.models import Skill
from skillkit.core.paths.temporary import temporary_folder
from skillkit.core.paths.trees import remove_tree
from skillkit.core.record import error_text as told_error
from skillkit.core.record import refusal_fields
from skillkit.core.record.redaction import redacted_text
from skillkit.core.resolve import CallArguments
from skillkit.core.run.tiers import sandbox_for
from skillkit.core.store.opening import open_store
from skillkit.core.store.running import RunningRuns
from skillkit.core.store.state import state_folder
from skillkit.core.values.policy import GUARDED, Limits, ScriptPolicy
from skillkit.core.values.questions import OptionAnswer
from skillkit.core.values.runs import Decision, PreparedRun, RunControl, ScriptExecutionResult
from skillkit.fleet.orders import Order, policy_from, refuse_looser, travelling, words_with
from skillkit.fleet.packing import clear_drafts
from skillkit.fleet.results import error_text, result_text
from skillkit.fleet.rows import RETRY_SECONDS, Row, Rows, patiently, shared
from skillkit.fleet.tracing import span
from skillkit.fleet.work.fetching import Materials
from skillkit.fleet.work.holding import LEASE_SECONDS, Hold, RunLedger
from skillkit.fleet.work.keeping import Keeper
from skillkit.fleet.work.metrics import Performed
from skillkit.fleet.work.packages import Packages
from skillkit.fleet.work.reaping import Reaper
from skillkit.fleet.work.spool import Spool
from skillkit.fleet.work.streaming import Streams
from skillkit.fleet.work.volumes import Volumes
from skillkit.fleet.work.worker_flow import WorkerFlow

__all__ = ["Worker"]

MOST_FLOWS = 16
ARTIFACT_BYTES = 100_000_000
FILES_LOST = "The files that it left could not be kept on the way here."

fleet_log = logging.getLogger("skillkit.fleet")


class Worker:
    """What one process runs for a shared world. `run` takes ids; many threads may call it."""

    def __init__(
        self,
        app: Any,  # noqa: ANN401 - a Celery app
        *,
        state: str | None = None,
        state_dir: str | Path | None = None,
        policy: ScriptPolicy | None = None,
        volumes: Mapping[str, str | Path] | None = None,
        homes: str = "",
        told: Mapping[str, Any] | None = None,
    ) -> None:
        """`volumes` are folders by the names that callers know them by; `homes` is the one that holds homes."""
        self.folder = state_folder(state_dir)
        self.state = state
        self.rows = Rows(shared(open_store(self.folder, state)))
        self.policy = travelling(policy or GUARDED, has_volume=True, has_homes=bool(homes))
        self.volumes = Volumes(volumes, homes)
        self.name = f"{platform.node()}-{os.getpid()}-{secrets.token_hex(4)}"
        self.materials = Materials(self.rows, self.folder / "fleet" / "skills")
        self.packages = Packages(self.rows.store, self.folder, self.name)
        self.ledger = RunLedger(self.rows, self.name)
        self.streams = Streams(self.rows)
        self.spool = Spool(self.folder / "fleet" / "spool")
        self.reaper = Reaper(self.rows, app, self.spool)
        self.keeper = Keeper(self.rows, self.name, told or {}, self.reaper.wake)
        self.performed = Performed()
        self.running = RunningRuns(self.rows.store, redacted_text)
        self._flows: dict[str, WorkerFlow] = {}
        self._lock = threading.Lock()

    @property
    def world(self) -> str:
        return self.rows.store.address.world

    @property
    def tier(self) -> str:
        """The strongest walls that this machine has; what was shown within wider ones may run in these."""
        try:
            return sandbox_for(replace(self.policy, sandbox="preferred", limits=Limits())).tier
        except SandboxUnavailableError:
            return "none"

    def start(self) -> None:
        clear_drafts(self.folder / "fleet" / "skills")
        self.keeper.start()
        self.reaper.start()

    def run(self, run_id: str) -> str:
        """What came of it, in a word; raises nothing that a message could cause."""
        if self.keeper.is_stopping:
            self._give_back(run_id)
            return "given back"
        asked_at = time.monotonic()
        try:
            row = self.rows.claim(run_id, self.name, LEASE_SECONDS)
        except (StateUnavailableError, ValueError) as error:
            fleet_log.warning("The run %r cannot be claimed: %s", run_id, error)
            return "unclaimed"
        if row is None:
            return "unclaimed"
        held = Hold(row.id, asked_at)  # as the database writes it: a message may write it otherwise
        self.keeper.add(held)  # after the claim: what is not claimed yet would be taken for lost
        self.ledger.hold(held)
        try:
            with self.performed.run() as say, span("skillkit.run", run=run_id, worker=self.name) as note:
                outcome = say(self._perform(row, held))
                note("outcome", outcome)
                return outcome
        finally:
            self.materials.forget(held.run)
            self.ledger.hold(None)
            self.keeper.remove(held)

    def _give_back(self, run_id: str) -> None:
        """We are about to end: another worker is told of it soon."""
        try:
            self.rows.unpublish(run_id)
        except (StateUnavailableError, ValueError):
            fleet_log.debug("The run %r is sent again later", run_id)

    def _perform(self, row: Row, held: Hold) -> str:
        stream = self.streams.new(row.id) if row.is_streamed else None
        control = RunControl(cancel=held, on_output=stream.write if stream else None)
        try:
            state, told = self._ended(row, held, control)
        except StateUnavailableError as error:
            # Nothing has started: when the lease is over it is queued again, unless the start was written after all.
            fleet_log.warning("The run %s is left: %s", row.id, error)
            return "left"
        finally:
            if stream is not None:
                stream.close()
        return self._finish(held, "cancelled" if state == "refused" and held.is_cancelled else state, told)

    def _ended(self, row: Row, held: Hold, control: RunControl) -> tuple[str, str]:
        """The end of the run, and what is told of it; StateUnavailableError where it could not begin."""
        while True:
            try:
                result = self._run(row, held, control)
            except (StateUnavailableError, AuditUnavailableError) as error:
                if held.started is not None:
                    return self._failed(held, error)
                if held.is_set():
                    raise StateUnavailableError(str(error)) from error
                time.sleep(RETRY_SECONDS)  # the database is away for a moment: nothing is lost by it
            except SkillKitError as error:
                return self._failed(held, error)
            except Exception as error:  # noqa: BLE001 - a message must not end a worker
                fleet_log.exception("The run %s met a fault of ours", row.id)
                fault = ScriptRefusedError.because(f"A fault of skillkit on the worker: {type(error).__name__}")
                return self._failed(held, fault)
            else:
                is_cancelled = held.is_cancelled and result.cancelled
                return "cancelled" if is_cancelled else "finished", self._told(result, held)

    def _failed(self, held: Hold, error: SkillKitError) -> tuple[str, str]:
        self._note(held, error)
        return "finished" if held.started is not None else "refused", error_text(error)

    def _told(self, result: ScriptExecutionResult, held: Hold) -> str:
        """With its files, where they can be kept; that they cannot loses no result."""
        try:
            return result_text(result, self._keep_artifacts(result, held))
        except (StateUnavailableError, OSError) as error:
            fleet_log.warning("The files of the run %s cannot be kept: %s", held.run, error)
            return result_text(replace(result, hint=f"{result.hint} {FILES_LOST}".strip()), [])

    def _note(self, held: Hold, error: SkillKitError) -> None:
        """What the flow put on record, else what can be said of the order."""
        if held.end is None:
            started = {"started": held.started, "error": told_error(error)} if held.started is not None else {}
            fields = {**self.materials.told(held.run), **(started or refusal_fields(error))}
            held.end = "refused", {**fields, "run": held.run, "worker": self.name}

    def _finish(self, held: Hold, state: str, told: str) -> str:
        """Record, row and word in one transaction; kept in a file where the database is away for too long."""
        fields = held.end[1] if held.end is not None else {"run": held.run, "worker": self.name}
        try:
            number = patiently(lambda: self.rows.finish(held.run, self.name, state, fields, told), held.left)
        except StateUnavailableError as error:
            fleet_log.warning("The end of the run %s is kept here and written later: %s", held.run, error)
            self.spool.keep(held.run, self.name, state, fields, told)
            return "spooled"
        return state if number is not None else "lost"

    # Decide again.

    def _run(self, row: Row, held: Hold, control: RunControl) -> ScriptExecutionResult:
        order = row.order()
        self.materials.note(held.run, order)
        self.volumes.require_homes(order)
        if not order.inputs:
            with self._flow(order.policy) as flow:
                return self._decide(flow, order, {}, held, control)
        policy = self._allowed(order.policy)
        with temporary_folder("inputs") as outer:  # should we be killed, another worker here clears it
            placed, folder = self.materials.inputs(order, Path(outer))
            flow = self._new_flow(replace(policy, readable_paths=(folder,), warm="off"), folder)
            with closing(flow):
                return self._decide(flow, order, placed, held, control)

    def _decide(
        self, flow: WorkerFlow, order: Order, placed: Mapping[str, str], held: Hold, control: RunControl
    ) -> ScriptExecutionResult:
        with flow.deciding(order):
            skill = self.materials.skill(order)
            is_ready = self.packages.is_ready(skill, order)
            prepared, answer = self._decided(flow, skill, order, placed, held)
            if not is_ready and _may_run(prepared, answer):
                self.packages.make(skill, order, flow.policy, held)
                prepared, answer = self._decided(flow, skill, order, placed, held)
            if _may_run(prepared, answer):
                self.packages.require_used(prepared.command, order)
            return flow.complete(prepared, answer, control)

    def _decided(
        self, flow: WorkerFlow, skill: Skill, order: Order, placed: Mapping[str, str], held: Hold
    ) -> tuple[PreparedRun, OptionAnswer | None]:
        with self.rows.store.connection():  # one for all that is looked up
            prepared = flow.prepare(skill, self._call(order, placed))
            self._require_ordered(prepared, order)
            if not order.bounds.hold(flow.bounds(prepared.command)):
                raise ScriptRefusedError.because(
                    "This worker's walls are wider than those that were shown, or of a weaker kind",
                    "Use workers like the machine that asks: the same kind of walls, and not root unless that is.",
                )
            return self._answered(flow, prepared, order, held)

    def _answered(
        self, flow: WorkerFlow, prepared: PreparedRun, order: Order, held: Hold
    ) -> tuple[PreparedRun, OptionAnswer | None]:
        """With a person's answer, where one is needed: to this very order, and used by no run."""
        if prepared.decision is not Decision.ASK:
            return prepared, None
        answered = self.rows.answered(order.id, held.run)
        if answered is None:
            raise ApprovalUnavailableError.because(
                "no person's unused answer to this very order is in the shared world", "Ask again."
            )
        held.answered = answered.seq
        return flow.offering(prepared, answered.ticks), answered.answer

    def _call(self, order: Order, placed: Mapping[str, str]) -> CallArguments:
        return CallArguments(
            script_name=order.script,
            argv=words_with(order, placed),
            stdin=self.materials.stdin(order) or None,
            timeout=order.timeout,
            output_limit=order.output_limit,
            session_id=order.session_id,
            workspace=self.volumes.workspace(order),
            agent_facing=True,  # what leaves a worker is masked
            call_id=order.call_id,
            from_instructions=order.from_instructions,
        )

    def _require_ordered(self, prepared: PreparedRun, order: Order) -> None:
        """What is about to run is what was ordered, by content and by name."""
        if prepared.resolved is None or prepared.decision is Decision.DENY:
            return  # says itself why not
        command = prepared.command
        told = (command.skill_name, command.digest, command.script_name, command.interpreter)
        if told != (order.skill, order.digest, order.script, order.interpreter):
            raise ContentChangedError.because("The skill here is not the one that was ordered", "Run it again.")

    def _allowed(self, text: str) -> ScriptPolicy:
        """The policy of an order, where it is no looser than this worker's own."""
        policy = policy_from(text, self.policy)
        refuse_looser(self.policy, policy)
        return policy

    @contextmanager
    def _flow(self, text: str) -> Iterator[WorkerFlow]:
        """One for each policy that is ordered; what is kept ready in it is kept for the next run."""
        with self._lock:
            flow = self._flows.pop(text, None) or self._new_flow(self._allowed(text))
            self._flows[text] = flow
            flow.users += 1
            unused = [name for name, each in self._flows.items() if not each.users]
            gone = [self._flows.pop(name) for name in unused[: max(0, len(self._flows) - MOST_FLOWS)]]
        for each in gone:
            each.close()
        try:
            yield flow
        finally:
            with self._lock:
                flow.users -= 1

    def _new_flow(self, policy: ScriptPolicy, inputs: Path | None = None) -> WorkerFlow:
        return WorkerFlow(
            policy,
            self.folder,
            store=self.rows.store,
            ledger=self.ledger,
            running=self.running,
            inputs=inputs,
            homes=self.volumes.homes(self.world),
        )

    def _keep_artifacts(self, result: ScriptExecutionResult, held: Hold) -> list[tuple[str, int, str]]:
        """By digest; what is too much together stays behind."""
        kept: list[tuple[str, int, str]] = []
        left = ARTIFACT_BYTES
        for each in result.artifacts:
            if each.size <= left:
                left -= each.size
                digest = patiently(partial(self.rows.ship, each.path.read_bytes()), held.left)
                kept.append((str(each.relative_path), each.size, digest))
        for each in result.artifacts[:1]:  # what was kept is not needed here any more
            remove_tree(each.path.parents[len(each.relative_path.parts) - 1])
        return kept

    def drain(self) -> None:
        """Takes no more; those that run finish."""
        self.keeper.is_stopping = True

    def close(self) -> None:
        self.keeper.close()
        self.reaper.close()
        self.streams.close()
        for flow in self._flows.values():
            flow.close()
        self.running.close()
        self.rows.store.close()


def _may_run(prepared: PreparedRun, answer: OptionAnswer | None) -> bool:
    """Whether it is worth making anything for it; what may not run says why when it is completed."""
    return prepared.decision is Decision.ALLOW or (answer is not None and answer.option_id != NO)
