"""CeleryRunner: what makes the runs of a SkillManager happen on workers."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.run.aio import run_in_thread
from skillkit.core.store.opening import open_store
from skillkit.core.store.state import state_folder
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.runs import Decision
from skillkit.fleet.front import FrontFlow
from skillkit.fleet.rows import Rows, shared
from skillkit.fleet.sending import PATIENCE_SECONDS, Sender
from skillkit.fleet.waiting import FleetRun

if TYPE_CHECKING:
    from skillkit.core.manager import SkillManager

__all__ = ["CeleryRunner"]


class CeleryRunner(Sender):
    """Sends runs through a Celery app; `SkillManager(..., state='postgresql://...', runner=CeleryRunner(app))`."""

    def __init__(
        self,
        app: Any,  # noqa: ANN401 - a Celery app, or the address of a broker
        *,
        label: str = "",
        workspace: str = "none",
        volumes: Mapping[str, str | Path] | None = None,
        homes: str = "",
        patience: float = PATIENCE_SECONDS,
        state: str | None = None,
    ) -> None:
        """`label` picks workers that have it; `patience` is how long a run may wait for one, in seconds.

        `workspace` is `none`, or `inputs`: files that arguments name are sent along, read-only. `volumes` are folders
        that each worker maps under the same name: a workspace inside one is that folder there. `homes` is the name of
        the volume in which workers keep the homes of skills; without one every run has a new home.
        """
        super().__init__(app, label=label, workspace=workspace, volumes=volumes, homes=homes, patience=patience)
        self.state = state
        self.session_id = f"fleet-{secrets.token_hex(16)}"
        """Of managers that name no session: in a shared world every run has one, and it is one login's."""

    def flow(self, policy: ScriptPolicy, state_dir: Path, **options: Any) -> FrontFlow:  # noqa: ANN401 - the flow's own
        """Where runs of a manager under this policy go through."""
        if self.state is None:
            self.state = options.get("state")
        return FrontFlow(self, policy, state_dir, **options)

    # By hand: a run that waits for a person is a row, and nobody has to wait for it here.

    def order(
        self,
        manager: SkillManager,
        skill_name: str,
        script_name: str,
        *args: Any,  # noqa: ANN401 - the manager's own
        **options: Any,  # noqa: ANN401
    ) -> FleetRun:
        """Orders a run and comes back at once; arguments are those of `prepare_skill_script`.

        Where a person has to be asked, the question waits in the shared world, and their yes queues the run.
        """
        prepared = manager.prepare_skill_script(skill_name, script_name, *args, **options)
        flow = manager.flow_for(agent_facing=prepared.resolved is not None and prepared.resolved.agent_facing)
        if not isinstance(flow, FrontFlow):
            raise ConfigurationError(
                "The manager has no runner. Make it with SkillManager(..., runner=CeleryRunner(app))."
            )
        return flow.begin(prepared, waits=prepared.decision is Decision.ASK)

    async def aorder(
        self,
        manager: SkillManager,
        skill_name: str,
        script_name: str,
        *args: Any,  # noqa: ANN401 - the manager's own
        **options: Any,  # noqa: ANN401
    ) -> FleetRun:
        """As `order`, without blocking the loop."""
        return await run_in_thread(lambda _: self.order(manager, skill_name, script_name, *args, **options))

    def find(self, run_id: str) -> FleetRun:
        """A run by its id, whoever ordered it: its state, its result when it is over, and a way to cancel it."""
        return FleetRun(run_id, Rows(shared(open_store(state_folder(), self.state))), self)
