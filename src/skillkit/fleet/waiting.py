"""A run that was ordered -> what becomes of it: its output as it comes, its result, or why there is none."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol

from skillkit.core.exceptions import (
    ContentLoadError,
    RunLostError,
    ScriptRefusedError,
    SkillKitError,
    StateUnavailableError,
)
from skillkit.core.paths.files import Folder
from skillkit.core.run.aio import run_in_thread
from skillkit.core.run.work import WorkFolders
from skillkit.core.values.runs import NO_CONTROL, RunControl, ScriptExecutionResult
from skillkit.fleet.results import Fetch, error_from, result_from
from skillkit.fleet.rows import Row, Rows, patiently
from skillkit.fleet.sending import Sender
from skillkit.fleet.watch import watch_of

__all__ = ["FleetRun"]

STOP_LOOK_SECONDS = 0.1
AWAY_SECONDS = 120.0
"""How long the database may be away before a caller is told; the run goes on, and is found again by its id."""


class Orderer(Protocol):
    """Who ordered a run, as long as that process lives."""

    @property
    def script_path(self) -> Path: ...
    def work_folder(self) -> Path: ...
    def declined(self, request_id: str) -> SkillKitError: ...
    def record(self, run: str, error: SkillKitError) -> None: ...


@dataclass(slots=True)
class FleetRun:
    """One run on a worker. Whoever has its id finds it again: `CeleryRunner.find`."""

    id: str
    _rows: Rows = field(repr=False)
    _sender: Sender = field(repr=False)
    _orderer: Orderer | None = field(default=None, repr=False)
    _seen: int = field(default=-1, repr=False)

    @property
    def state(self) -> str:
        """One of waiting (for a person), queued, running; then finished, refused, lost, cancelled or expired."""
        return self._row().state

    def cancel(self) -> None:
        """Ends it: at once where no worker has it, else within a second."""
        patiently(lambda: self._rows.cancel(self.id))

    async def aresult(self) -> ScriptExecutionResult:
        """As `result`, without blocking the loop; cancelling the task cancels the run."""
        return await run_in_thread(lambda control: self.result(control=control))

    def result(
        self, timeout: float | None = None, *, control: RunControl = NO_CONTROL, is_new: bool = False
    ) -> ScriptExecutionResult:
        """Waits for its end; what a worker or a person refused is raised. TimeoutError ends the waiting alone.

        `is_new` is for who ordered it just now, and wants it stopped when the waiting is.
        """
        try:
            return self._outcome(self._wait(timeout, control, is_new=is_new), control)
        except SkillKitError:
            raise
        except BaseException:  # an interrupt, or the caller's own function
            if is_new:
                with suppress(SkillKitError):
                    self._rows.cancel(self.id)
            raise

    def _wait(self, timeout: float | None, control: RunControl, *, is_new: bool) -> Row:
        until = None if timeout is None else time.monotonic() + timeout
        is_stopped, is_looking = False, not is_new
        with watch_of(self._rows.store).of(self.id, is_streamed=control.on_output is not None) as woken:
            while True:
                if is_looking:
                    woken.clear()
                    row = patiently(self._row, AWAY_SECONDS)
                    self._hear(control)
                    if row.is_over:
                        return row
                while not woken.wait(STOP_LOOK_SECONDS):
                    if not is_stopped and control.is_set():
                        is_stopped = True
                        self.cancel()
                    if until is not None and time.monotonic() >= until:
                        raise TimeoutError(f"The run {self.id} is not over. Look again: CeleryRunner.find.")
                is_looking = True

    def _row(self) -> Row:
        found = self._rows.find(self.id)
        if found is None:
            raise ContentLoadError(f"There is no run {self.id!r} in this world, or it is over for long. Run it again.")
        return found

    def _hear(self, control: RunControl) -> None:
        if control.on_output is None:
            return
        with suppress(StateUnavailableError):
            for n, stream, data in self._rows.output(self.id, self._seen):
                self._seen = n
                control.on_output(stream, data)

    def _outcome(self, row: Row, control: RunControl) -> ScriptExecutionResult:
        if row.state in ("finished", "cancelled") and row.result and error_from(row.result) is None:
            result = result_from(row.result, self._script_path(row), self._fetch_into())
            for host in result.hosts if control.on_host else ():
                control.on_host(host)  # type: ignore[misc]  # looked at above
            return result
        error = self._error(row)
        if row.finished_seq is None and self._orderer is not None:
            self._orderer.record(self.id, error)
        raise error

    def _error(self, row: Row) -> SkillKitError:
        told = error_from(row.result)
        if told is not None:
            return told
        if row.state == "lost":
            return RunLostError(
                f"The run {self.id} was lost: its worker died or was cut off after it had started. What it did is not "
                "known, and it is not run again. Look at what it left, then decide.",
                run_id=self.id,
            )
        if row.state == "expired":
            reason = f"No worker took it from the queue {row.queue!r} in time"
            remedy = "Start a worker with that interpreter and those walls: skillkit worker; skillkit fleet status."
            return ScriptRefusedError.because(reason, remedy)
        if row.state == "cancelled":
            return ScriptRefusedError.because("The call was cancelled before it started")
        if self._orderer is not None:
            return self._orderer.declined(row.order_id)
        return ScriptRefusedError.because("A person said no, or nobody answered in time", "Run it again.")

    def _script_path(self, row: Row) -> Path:
        if self._orderer is not None:
            return self._orderer.script_path
        return Path("/", row.order().folder, row.order().script)  # whose front is gone

    def _fetch_into(self) -> Fetch:
        """Artifacts lie in a work folder of the manager, as they do after a run on this machine.

        Those of a run that was found again by its id lie in one of this process, and go with it.
        """
        folder: list[Path] = []

        def fetch(relative: str, digest: str) -> Path:
            if not folder:
                folder.append(self._orderer.work_folder() if self._orderer else _found_again().new())
            *inside, name = relative.split("/")
            if any(part in ("", ".", "..") for part in (*inside, name)):
                raise ScriptRefusedError.because(f"The run names a file outside its work folder: {relative!r}")
            content = patiently(lambda: self._rows.blob(digest))
            with Folder.of(folder[0]) as work, work.below(inside, make=True) as into:
                into.write_new(name, content or b"")
            return folder[0] / relative

        return fetch


@cache
def _found_again() -> WorkFolders:
    return WorkFolders()
