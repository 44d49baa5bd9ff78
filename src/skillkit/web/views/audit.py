"""The audit log -> what ran and what was refused, one by one, and whether the log is intact."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from skillkit.core.record import AuditLog, Record, Verification
from skillkit.core.store.state import StateStore
from skillkit.web.context import context_of
from skillkit.web.html import render

__all__ = ["audit_page"]

RECORDS_READ = 5_000
RUNS_LISTED = 100
LONGEST_DETAILS = 300


@dataclass(frozen=True, slots=True)
class _Run:
    """A run or a refusal; `seq` is the record that tells of it last."""

    seq: int
    moment: str
    skill: str
    script: str
    session: str
    outcome: str
    details: str
    took: str


def audit_page(request: Request) -> Response:
    """Nothing chosen in a filter means all."""
    wanted = {name: request.query_params.get(name, "") for name in ("skill", "session", "outcome")}
    records, verification = _read(context_of(request).world.folder, is_asked="check" in request.query_params)
    runs = _runs_in(records)
    found = [run for run in runs if all(getattr(run, name) == want for name, want in wanted.items() if want)]
    values = {
        "newest": records[0].seq if records else 0,
        "verification": verification,
        "skills": sorted({run.skill for run in runs} - {""}),
        "sessions": sorted({run.session for run in runs} - {""}),
        "wanted": wanted,
        "runs": found,
        "listed": RUNS_LISTED,
    }
    return render(request, "audit", values)


def _read(folder: Path, *, is_asked: bool) -> tuple[list[Record], Verification | None]:
    """The newest records; a long log is checked only when somebody asks."""
    store = StateStore(folder)
    if not store.path.exists():
        return [], None
    with closing(store):
        log = AuditLog(store)
        records = list(islice(log.records(newest_first=True), RECORDS_READ))
        is_short = not records or records[0].seq <= RECORDS_READ
        return records, log.verify() if is_short or is_asked else None


def _runs_in(records: Iterable[Record]) -> list[_Run]:
    """The newest first, as the records are given; a start whose end is known is not told of twice."""
    ended: set[object] = set()
    runs = []
    for record in records:
        if record.kind == "finished":
            ended.add(record.fields.get("started"))
        if record.kind != "started" or record.seq not in ended:
            runs.append(_run_from(record))
    return runs


def _run_from(record: Record) -> _Run:
    fields = record.fields
    skill, script, session = (str(fields.get(name) or "") for name in ("skill", "script", "session"))
    microseconds = fields.get("duration_us")
    took = f"{microseconds / 1e6:.2f} s" if isinstance(microseconds, int) else "-"
    outcome, details = _outcome_of(record)
    moment = record.timestamp[:19].replace("T", " ")
    return _Run(record.seq, moment, skill, script, session, outcome, details, took)


def _outcome_of(record: Record) -> tuple[str, str]:
    """In one word, and what else is known of it."""
    fields = record.fields
    if record.kind == "refused":
        reasons = fields.get("reasons")
        because = "; ".join(map(str, reasons)) if isinstance(reasons, list) else ""
        channel = f"{fields.get('answer') or 'asked'} by {fields['channel']}: " if fields.get("channel") else ""
        return "refused", f"{channel}{because}"[:LONGEST_DETAILS]
    if record.kind != "finished":
        return "unfinished", ""
    if fields.get("timed_out"):
        return "timed_out", ""
    if fields.get("exit_code") == 0:
        return "succeeded", ""
    return "failed", str(fields.get("signal") or fields.get("error") or f"exit {fields.get('exit_code', '?')}")
