"""A run that is on record as started -> its result; its end is on record too, whatever comes between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from skillkit.core.exceptions import AuditUnavailableError
from skillkit.core.record import AuditLog, end_fields, error_text, identity
from skillkit.core.run import Guard, Guarded, SetAside, Walls, WorkFolders, explanation_of, outcome
from skillkit.core.runs import Isolation, ProcessExit, ScriptCommand, ScriptExecutionResult
from skillkit.core.starting import isolation_of, with_word_of

__all__ = ["Begun", "Ending"]

Run = Callable[[Callable[[ProcessExit], None]], object]
"""Runs the process; whatever it raises, it first tells how the process ended."""


class Begun(NamedTuple):
    """A run that is on record as started, and what has to be seen to when it is over."""

    command: ScriptCommand
    record: int
    isolation: Isolation
    source: str
    walls: Walls
    work: Path
    guarded: Guarded


class Ending:
    """Of the runs of one world: what a script made is looked at, then the record is written, then comes the tidying."""

    def __init__(self, audit: AuditLog, guard: Guard, work_folders: WorkFolders, state_folder: Path) -> None:
        self._audit = audit
        self._guard = guard
        self._work_folders = work_folders
        self._state_folder = state_folder

    def result_of(self, begun: Begun, run: Run) -> ScriptExecutionResult:
        """What stops a run from outside, as an interrupt or the caller's `on_output`, is on record too."""
        seen: list[ProcessExit] = []
        moved: tuple[SetAside, ...] = ()
        try:
            try:
                run(seen.append)
            finally:
                moved = self._guard.end(begun.guarded)
            ended = seen[-1]
            isolation = isolation_of(begun.isolation, ended, source=begun.source)
            artifacts = self._work_folders.artifacts(begun.work)
            explain = explanation_of(begun.walls, isolation, self._state_folder)
            result = with_word_of(moved, outcome(begun.command, ended, isolation, artifacts, explain))
        except BaseException as error:
            self._record_stop(begun, error, seen, moved)
            raise
        else:
            self._record_end(begun, ended, result, moved)
        finally:
            self._work_folders.tidy(begun.work)
        return result

    def _record_end(
        self, begun: Begun, ended: ProcessExit, result: ScriptExecutionResult, moved: tuple[SetAside, ...]
    ) -> None:
        try:
            self._audit.append("finished", {**_known(begun, moved), **end_fields(ended, result)})
        except AuditUnavailableError as error:
            error.result = result
            raise

    def _record_stop(
        self, begun: Begun, error: BaseException, seen: list[ProcessExit], moved: tuple[SetAside, ...]
    ) -> None:
        fields = {**_known(begun, moved), "error": error_text(error)}
        for ended in seen:
            isolation = isolation_of(begun.isolation, ended, source=begun.source)
            fields |= end_fields(ended, outcome(begun.command, ended, isolation, ()))
        try:
            self._audit.append("finished", fields)
        except AuditUnavailableError as unrecorded:  # an interrupt stays an interrupt
            error.add_note(f"Its end could not be recorded: {unrecorded}")


def _known(begun: Begun, moved: tuple[SetAside, ...]) -> dict[str, Any]:
    aside = {"set_aside": [each.path for each in moved]} if moved else {}
    return {**identity(begun.command), "started": begun.record, **aside}
