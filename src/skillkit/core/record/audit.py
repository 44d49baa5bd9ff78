"""What happened -> the world's append-only log, mirrored to logging; and back: read, verify, export, checkpoint."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import asdict

from skillkit.core.exceptions import AuditUnavailableError, StateUnavailableError
from skillkit.core.record.fields import finish_fields, shown_fields, shown_text
from skillkit.core.store.audit_rows import AuditRows
from skillkit.core.store.base import Head
from skillkit.core.values.records import (
    Checkpoint,
    NextRecord,
    Record,
    Verification,
    canonical_json,
    checkpoint_from,
    exact_fields,
    export_line,
    first_link,
    moment_text,
    record_from,
    verification_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillkit.core.store.base import Store
    from skillkit.core.values.masking import Masker
    from skillkit.core.values.records import JSON
    from skillkit.core.values.runs import Ran

__all__ = ["KINDS", "LOGGER_NAME", "AuditLog"]

KINDS = frozenset(("started", "finished", "refused"))
LOGGER_NAME = "skillkit.audit"
# They name what a caller asked for, and stand below this stage.
NAMING_LOGGERS = ("skillkit.security", "skillkit.run")
NAMING_FIELDS = ("requested_path", "base_directory", "skill", "script")

_LOOKED_BACK = 20_000  # records
_BEFORE_ALL = -(2**63)
_logger = logging.getLogger(LOGGER_NAME)
# Without a handler of its own Python would print warnings of a program that set up no logging to its stderr.
_logger.addHandler(logging.NullHandler())


class AuditLog:
    """The log of one world; every process that shares the world's folder appends to the same chain."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows = AuditRows(store)

    def append(self, kind: str, fields: Mapping[str, JSON]) -> Record:
        """Write one record, masked and cut, and mirror it to logging; when this returns, it outlives the process."""
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is no kind of record; known: {', '.join(sorted(KINDS))}.")
        record = NextRecord(kind, shown_fields(exact_fields(fields)))
        try:
            row = self._store.append(record.after)
        except StateUnavailableError as error:
            raise _unavailable("written", error) from error
        written = Record(row[0], row[1], kind, record.fields, row[4], row[5])
        _mirror(written)
        return written

    def finish(self, started: int, ran: Ran, masker: Masker) -> None:
        """Whatever stopped the run is on record before it is raised; an interrupt stays an interrupt."""
        try:
            self.append("finished", finish_fields(started, ran, masker))
        except AuditUnavailableError as unrecorded:
            if ran.error is None:
                unrecorded.result = ran.result
                raise
            ran.error.add_note(f"Its end could not be recorded: {unrecorded}")

    def records(
        self,
        *,
        after: int = 0,
        limit: int | None = None,
        skill: str | None = None,
        session: str | None = None,
        kind: str | None = None,
        newest_first: bool = False,
    ) -> Iterator[Record]:
        """Records that fit every filter, in order; the log may grow while they are read."""
        wanted = {"skill": skill, "session": session}
        exact = {name: shown_text(value) for name, value in wanted.items() if value is not None}
        # The text narrows the search inside the store; the parsed fields decide.
        hints = [canonical_json({name: value})[1:-1] for name, value in exact.items()]
        found = 0
        with _available("read"):
            for row in self._rows.read(after=after, kind=kind, holding=hints, newest_first=newest_first):
                if found == limit:
                    return
                record = record_from(row)
                if all(record.fields.get(name) == value for name, value in exact.items()):
                    found += 1
                    yield record

    def was_answered(self, skill: str, option_id: str) -> bool:
        """Whether a run of the skill began under this answer, as far back as is quickly read."""
        newest = next(self.records(limit=1, newest_first=True), None)
        after = max(newest.seq - _LOOKED_BACK, 0) if newest else 0
        found = self.records(after=after, skill=skill, kind="started", newest_first=True)
        runs = (record.fields for record in found if "purpose" not in record.fields)  # others than runs name theirs
        return any(fields.get("answer") == option_id for fields in runs)

    def verify(self, *, checkpoint: Checkpoint | None = None) -> Verification:
        """Read the whole log and say whether it is as it was written, or which record is not."""
        with _available("read"):
            world, kept = self._rows.world(), self._rows.checkpoint()
            checkpoints = [] if checkpoint is None else [checkpoint]
            if kept is not None:
                # Whoever can edit the file can edit this too; it still shows a careless cut.
                try:
                    checkpoints.append(checkpoint_from(kept))
                except ValueError:
                    problem = "The checkpoint that the file keeps of itself is unreadable: it was altered."
                    return Verification(ok=False, count=0, head=first_link(world), problem=problem)
            return verification_of(self._rows.read(after=_BEFORE_ALL), world=world, checkpoints=checkpoints)

    def export(self, *, after: int = 0) -> Iterator[str]:
        """One line of JSON for each record."""
        return (export_line(record) for record in self.records(after=after))

    def checkpoint(self) -> Checkpoint:
        """Where the log ends now, to be kept where the writer cannot edit; the file keeps one too."""
        made: list[Checkpoint] = []

        def text_of(head: Head) -> str:
            made.append(Checkpoint(head.world, head.seq, head.link, moment_text()))
            return canonical_json(asdict(made[-1]))

        with _available("written"):
            self._rows.keep_checkpoint(text_of)
        return made[-1]


@contextmanager
def _available(purpose: str) -> Iterator[None]:
    """A state that cannot be used is said to be the audit's."""
    try:
        yield
    except StateUnavailableError as error:
        raise _unavailable(purpose, error) from error


def _unavailable(purpose: str, error: StateUnavailableError) -> AuditUnavailableError:
    rule = "; a run that cannot be recorded does not start" if purpose == "written" else ""
    return AuditUnavailableError(f"The audit cannot be {purpose}{rule}. {error}")


def _mirror(record: Record) -> None:
    """Write the record to the logger `skillkit.audit`; handlers find it as a mapping in `skillkit`."""
    level = _level_of(record)
    if not _logger.isEnabledFor(level):
        return
    fields = {
        "seq": record.seq,
        "timestamp": record.timestamp,
        "kind": record.kind,
        **record.fields,
        "hash": record.hash,
    }
    _logger.log(level, "%s", export_line(record), extra={"skillkit": fields})


def _level_of(record: Record) -> int:
    """INFO for what went well, WARNING for what was stopped or failed, ERROR for crashes and our failures."""
    fields = record.fields
    if record.kind == "refused" or fields.get("timed_out"):
        return logging.WARNING
    if fields.get("signal") or fields.get("error"):
        return logging.ERROR
    return logging.WARNING if fields.get("exit_code") else logging.INFO


def _mask_logged(logged: logging.LogRecord) -> bool:
    """A filter that keeps every line of the other logs of a run, without its secrets and cut."""
    logged.msg, logged.args = shown_text(logged.getMessage()), ()
    for name in NAMING_FIELDS:
        if isinstance(said := getattr(logged, name, None), str):
            setattr(logged, name, shown_text(said))
    return True


for _name in NAMING_LOGGERS:
    logging.getLogger(_name).addFilter(_mask_logged)
