"""Runs that begin sooner: a sandbox for the next run of a script, started ahead and used once.

Theory of operation. Most of a short run is the start of walls and of an interpreter, and imports. In a process that
lives on, all that is done before it is asked for: after a script has run, a *spare* is made in the background
(`spares`): the same walls, the interpreter started, libraries imported, waiting (`spare`). Nothing of the skill is in
it: skill, workspace, home, secrets and the way to hosts come when a run is handed over, which is after it was decided
about anew and its start is on record. A spare is taken when it is exactly what would be started now, word by word, and
else ends. It serves one run and ends with it, so that two runs share as little as two processes do that start at once.

How an interpreter waits is its own affair: `python`, `node` and `bash` say how each is made to, and what is loaded
ahead. Of other languages only the walls stand ahead (`shell`). Which one it is, `ways` knows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import NamedTuple, Protocol

from skillkit.core.run.process import Ahead
from skillkit.core.run.sandbox.base import Reach, Sandbox
from skillkit.core.run.tiers import count_together
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.runs import Isolation, ProcessExit, ScriptCommand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.run.hosts.way_out import WayOut
    from skillkit.core.run.sandbox.waiting import Hook, Waiting
    from skillkit.core.run.warm.spare import Request, Spare
    from skillkit.core.run.warm.ways import Way

__all__ = ["Around", "Handover", "Readiness", "kind_of", "make_spare", "started_warm"]

_numbers = count()


class Around(NamedTuple):
    """One run's walls, and how it sees itself inside them."""

    sandbox: Sandbox
    reach: Reach
    placed: ScriptCommand
    environment: Mapping[str, str]


class Preface(Protocol):
    """What is compiled of a skill's modules (`run/compiled`)."""

    @property
    def parts(self) -> tuple[bytes, ...]: ...


WallsNow = Callable[[ScriptCommand, ScriptPolicy, ExitStack], tuple[Around, Path, Path]]
"""A command -> the walls it would get now, its work folder, the copy that would run; the stack undoes what is made."""


@dataclass(frozen=True, slots=True)
class Handover:
    """A spare that fits, and what this run brings to it."""

    spare: Spare
    request: Request

    def begin(
        self, is_stopped: Callable[[], bool], on_stop: Callable[[ProcessExit], None], way_out: WayOut | None = None
    ) -> Ahead | None:
        """Its process, in which the script starts now; None where it has to be started.

        An interrupt comes out of here; if the script had begun by then, `on_stop` is told how it ended.
        """
        return self.spare.hand_over(self.request, is_stopped, on_stop, way_out.open_ahead if way_out else None)


class Readiness:
    """What one `Here` keeps ready."""

    def __init__(self) -> None:
        self._number = next(_numbers)

    def take(self, command: ScriptCommand) -> Spare | None:
        """What was made for the next run of this kind."""
        from skillkit.core.run.warm.spares import spares

        return spares.take(self._slot(command))

    def handover(
        self,
        spare: Spare,
        decided: ScriptCommand,
        around: Around,
        environment: Mapping[str, str],
        preface: Preface | None = None,
    ) -> Handover | None:
        """The spare for this run, if it is exactly what would be started now; else it ends."""
        from skillkit.core.run.sandbox.waiting import attaching
        from skillkit.core.run.warm.spare import Request, Told
        from skillkit.core.run.warm.spares import spares

        placed, reach = around.placed, around.reach
        known = (environment, placed.cwd, reach.process_limits["cpu"], around.sandbox.shows_snapshot)
        told = Told(placed.argv, placed.script_arguments, *known, preface.parts if preface else ())
        names = told.names if spare.waiting.hook.is_renamed else b""
        is_open = not _has_secret(decided)  # else all waits for the record
        if is_open:
            spare.rename(names)
        waiting = _walls(around, spare.waiting.hook)
        fits = waiting is not None and spare.command == kind_of(decided) and spare.fits(waiting)
        spares.note_fit(self._slot(decided), fits=fits)
        order = spare.order(told, spare.waiting.confined.environment) if fits else None
        if waiting is None or order is None:
            spare.end()
            return None
        attached = attaching(around.sandbox, waiting, reach) if waiting.is_put_together else b""  # type: ignore[arg-type]
        request = Request(attached, names, order)
        if is_open:
            spare.attach(request)
        return Handover(spare, request)

    def expect(
        self,
        command: ScriptCommand,
        policy: ScriptPolicy,
        ahead: WallsNow,
        tidy: Callable[[Path], None],
    ) -> None:
        """Tell how the next run would start; `tidy` is for the work folder of one that never came."""
        from skillkit.core.run.warm.spares import Recipe, spares

        kind = kind_of(command)
        make = partial(make_spare, kind, policy, ahead, tidy, has_input=bool(command.stdin))
        limits = policy.limits
        recipe = Recipe(self._number, self._slot(command), kind, make, limits.warm_sandboxes, limits.warm_megabytes)
        spares.expect(recipe)

    def review(self, command: ScriptCommand, *, is_allowed: bool) -> None:
        from skillkit.core.run.warm.spares import spares

        for has_input in (False, True):
            spares.review(self._slot(command, has_input), kind_of(command) if is_allowed else None)

    def close(self) -> None:
        from skillkit.core.run.warm.spares import spares

        spares.close(self._number)

    def _slot(self, command: ScriptCommand, has_input: bool | None = None) -> Hashable:
        fed = bool(command.stdin) if has_input is None else has_input
        return self._number, command.base_directory, command.script_name, fed


def started_warm(isolation: Isolation) -> Isolation:
    return replace(isolation, start="warm")


def kind_of(command: ScriptCommand) -> ScriptCommand:
    """Without what differs from call to call: two calls of one kind start the same."""
    started = command.argv[: len(command.argv) - len(command.script_arguments)]
    return replace(
        command,
        argv=started,
        stdin=b"",
        timeout=0.0,
        output_limit=0,
        arguments=None,
        script_arguments=(),
        session_id=None,
        argument_paths=(),
        closed_paths=(),
        has_unread_arguments=False,
        agent_facing=False,
        call_id="",
        from_instructions="",
    )


def _walls(around: Around, hook: Hook) -> Waiting | None:
    """What would be started ahead for this run; None where it has to start cold."""
    from skillkit.core.run.sandbox.bubblewrap import BubblewrapSandbox
    from skillkit.core.run.sandbox.landlock import LandlockSandbox
    from skillkit.core.run.sandbox.waiting import limits_ahead, walls_ahead

    started = (_beginning(around.placed), around.environment, around.reach, hook)
    if isinstance(around.sandbox, BubblewrapSandbox):
        return walls_ahead(around.sandbox, *started)
    if isinstance(around.sandbox, LandlockSandbox):
        return limits_ahead(around.sandbox, *started)
    return None


def _beginning(placed: ScriptCommand) -> tuple[str, ...]:
    return placed.argv[: len(placed.argv) - len(placed.script_arguments)]


def _has_secret(command: ScriptCommand) -> bool:
    return any(grant.kind == "secret" for grant in command.grants)


def _way(kind: ScriptCommand, around: Around, snapshot: Path, most_imports: int) -> Way | None:
    from skillkit.core.run.sandbox.landlock import LandlockSandbox
    from skillkit.core.run.warm.ways import way_of

    placed = around.placed
    environment = around.sandbox.confine(placed.argv, placed.cwd, around.environment, around.reach).environment
    is_landlock = isinstance(around.sandbox, LandlockSandbox)
    if is_landlock and kind.interpreter != "python3":
        return None
    # Who will be told a secret, or will reach a host, meets nothing but the standard library before; and what Landlock
    # opens is open from the beginning.
    own_only = _has_secret(kind) or bool(around.reach.hosts) or is_landlock
    started = (kind, _beginning(placed), environment, snapshot, most_imports)
    return way_of(*started, own_only=own_only, has_attacher=not is_landlock)


def make_spare(
    kind: ScriptCommand,
    policy: ScriptPolicy,
    ahead: WallsNow,
    tidy: Callable[[Path], None],
    most_imports: int,
    *,
    has_input: bool,
) -> Spare:
    """One that is on its way; called in the one thread that makes them."""
    from skillkit.core.run.warm.spare import Spare, Unready

    with ExitStack() as failed, ExitStack() as made:
        around, work, snapshot = ahead(kind, policy, made)
        failed.callback(tidy, work)
        way = _way(kind, around, snapshot, most_imports)
        waiting = _walls(around, way.hook) if way else None
        if way is None or waiting is None:
            raise Unready("it cannot be started ahead")
        counted = made.enter_context(count_together(waiting.confined, policy.limits))
        spare = Spare(kind, waiting, way.request, work, made.pop_all(), counted, partial(tidy, work))
        failed.callback(spare.end)
        spare.start(way.order, has_input=has_input)
        failed.pop_all()
        return spare
