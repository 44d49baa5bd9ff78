"""The flow as a worker goes through it: an order's policy, walls without what is this machine's own, answers by ids."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillkit.core.exceptions import ScriptRefusedError
from skillkit.core.flow import Flow
from skillkit.core.flow.granting import Given
from skillkit.core.models import Skill
from skillkit.core.paths.forbidden import note_writable
from skillkit.core.resolve import CallArguments
from skillkit.core.store.base import Store
from skillkit.core.store.homes import Homes
from skillkit.core.store.running import RunningRuns
from skillkit.core.values.bounds import Bounds
from skillkit.core.values.needs import Grant
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.questions import OPTIONS, OptionAnswer, OptionRequest, Tick
from skillkit.core.values.runs import PreparedRun, ScriptCommand
from skillkit.fleet.front import TRAVELLING_GRANTS
from skillkit.fleet.orders import Order, portable
from skillkit.fleet.work.holding import RunLedger

if TYPE_CHECKING:
    from skillkit.core.decide.rules import Verdict

__all__ = ["WorkerFlow"]


class WorkerFlow(Flow):
    """Of one policy; several runs at once, each in a thread of its own."""

    def __init__(
        self,
        policy: ScriptPolicy,
        state_dir: Path,
        *,
        store: Store,
        ledger: RunLedger,
        running: RunningRuns,
        inputs: Path | None = None,
        homes: Homes | None = None,
    ) -> None:
        """`running` tells of what goes on, for all flows of a worker: it is shown for a while after a flow ended.

        `homes` are those of a volume, where one holds them.
        """
        super().__init__(policy, state_dir, state=store, protected=() if homes is None else (homes.folder,))
        if homes is not None:
            self.here.homes = homes
            note_writable((homes.folder,))
        self.running = running
        self.users = 0
        """Runs that go on in it."""
        self.audit = ledger
        self._inputs = inputs
        self._deciding = threading.local()

    @contextmanager
    def deciding(self, order: Order) -> Iterator[None]:
        """What follows in this thread is about this order."""
        self._deciding.order = order
        try:
            yield
        finally:
            self._deciding.order = None

    def bounds(self, command: ScriptCommand | None) -> Bounds:
        """Inputs that were sent along are part of the order, as its words are."""
        order: Order = self._deciding.order
        found = portable(super().bounds(command), order.workspace)
        return replace(found, readable=()) if self._inputs else found

    def _resolve(self, skill: Skill | None, call: CallArguments, grants: Sequence[Grant] = ()) -> ScriptCommand:
        """No word opens a path here, whatever it names: paths travel as inputs or not at all."""
        command = super()._resolve(skill, call, grants)
        return replace(command, argument_paths=(), closed_paths=(), has_unread_arguments=False)

    def _asking(
        self,
        prepared: PreparedRun,
        verdict: Verdict,
        given: Given,  # noqa: ARG002 - nobody is asked here
        skill: Skill | None,  # noqa: ARG002
    ) -> PreparedRun:
        """A person was asked elsewhere, about the order."""
        order: Order = self._deciding.order
        request = OptionRequest(order.id, order.script, "", OPTIONS, session_id=order.session_id)
        return replace(prepared, reasons=verdict.reasons, request=request)

    def offering(self, prepared: PreparedRun, ticks: Sequence[str]) -> PreparedRun:
        """With what was ticked; each tick names its grant itself."""
        offered = {tick: (Grant.from_id(tick),) for tick in ticks}
        if wrong := [
            tick for tick, (grant,) in offered.items() if grant.kind not in TRAVELLING_GRANTS or grant.content
        ]:
            raise ScriptRefusedError.because(f"The answer grants {wrong[0]!r}, which is about another machine")
        request = prepared.request and replace(prepared.request, grants=tuple(Tick(tick, tick) for tick in ticks))
        return replace(prepared, offered=offered, request=request)

    def close(self) -> None:
        """The store is all flows' together."""
        self.here.close()

    def _spend(self, prepared: PreparedRun, answer: OptionAnswer) -> None:
        """The database spends it, with the record of the start."""
