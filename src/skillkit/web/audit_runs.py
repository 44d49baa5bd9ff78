"""Records -> one line for each run and each refusal, with how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from skillkit.core.record import Record

__all__ = ["OUTCOMES", "Run", "runs_in"]

OUTCOMES = {
    "succeeded": "Succeeded",
    "failed": "Failed",
    "timed_out": "Timed out",
    "refused": "Refused",
    "unfinished": "No end on record",
}


@dataclass(frozen=True, slots=True)
class Run:
    """What happened once; `seq` is the record that tells of it last."""

    seq: int
    moment: str
    skill: str
    script: str
    session: str
    outcome: str
    details: str
    seconds: float | None


def runs_in(records: Iterable[Record]) -> list[Run]:
    """The newest first, as the records are given; a start whose end is known is not told of twice."""
    ended: set[object] = set()
    runs = []
    for record in records:
        if record.kind == "finished":
            ended.add(record.fields.get("started"))
        if record.kind != "started" or record.seq not in ended:
            runs.append(run_from(record))
    return runs


def run_from(record: Record) -> Run:
    fields = record.fields
    skill, script, session = (str(fields.get(name) or "") for name in ("skill", "script", "session"))
    microseconds = fields.get("duration_us")
    seconds = microseconds / 1e6 if isinstance(microseconds, int) else None
    outcome = outcome_of(record)
    moment = record.timestamp[:19].replace("T", " ")
    return Run(record.seq, moment, skill, script, session, outcome, details_of(record, outcome), seconds)


def outcome_of(record: Record) -> str:
    if record.kind == "refused":
        return "refused"
    if record.kind != "finished":
        return "unfinished"
    if record.fields.get("timed_out"):
        return "timed_out"
    return "succeeded" if record.fields.get("exit_code") == 0 else "failed"


def details_of(record: Record, outcome: str) -> str:
    fields = record.fields
    if outcome == "failed":
        return str(fields.get("signal") or fields.get("error") or f"exit {fields.get('exit_code', '?')}")
    if outcome == "refused":
        return refusal_words(fields)
    return ""


def refusal_words(fields: Mapping[str, object]) -> str:
    reasons = fields.get("reasons")
    because = "; ".join(map(str, reasons)) if isinstance(reasons, list) else ""
    channel = f"{fields.get('answer') or 'asked'} by {fields['channel']}: " if fields.get("channel") else ""
    return f"{channel}{because}"[:300]
