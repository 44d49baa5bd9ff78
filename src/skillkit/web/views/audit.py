"""The audit log -> what ran and what was refused, one by one, and whether the log is intact; and what runs now."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from skillkit.core.record import AuditLog, Record, Verification
from skillkit.core.store.base import Store
from skillkit.core.store.opening import open_store
from skillkit.core.store.requests import PastRequest
from skillkit.core.store.running import Output, RunningRun
from skillkit.core.store.world import World
from skillkit.core.values.hosts import HostUse
from skillkit.web.context import context_of
from skillkit.web.html import Refusal, links_of, refuse, render
from skillkit.web.views.timeline import timeline_of

__all__ = ["RequestRuns", "audit_page", "run_page", "running_page", "running_values"]

RECORDS_READ = 5_000
RUNS_LISTED = 100
RUNNING_LISTED, ENDED_LISTED = 20, 3
TAIL_LINES, MOST_LINES = 12, 5_000
LONGEST_DETAILS = 300


@dataclass(frozen=True, slots=True)
class _Run:
    """A run or a refusal; `seq` is the record that tells of it last."""

    seq: int
    moment: float
    skill: str
    script: str
    session: str
    outcome: str
    details: str
    took: str
    hosts: tuple[HostUse, ...] = ()


def audit_page(request: Request) -> Response:
    """Nothing chosen in a filter means all."""
    wanted = {name: request.query_params.get(name, "") for name in ("skill", "session", "outcome")}
    records, verification = _read(context_of(request).world, is_asked="check" in request.query_params)
    runs = _runs_in(records)
    found = [run for run in runs if all(getattr(run, name) == want for name, want in wanted.items() if want)]
    values = {
        **running_values(request),
        "newest": records[0].seq if records else 0,
        "verification": verification,
        "skills": sorted({run.skill for run in runs} - {""}),
        "sessions": sorted({run.session for run in runs} - {""}),
        "wanted": wanted,
        "runs": found,
        "timeline": timeline_of((run.moment, run.outcome) for run in found),
        "listed": RUNS_LISTED,
    }
    return render(request, "audit", values)


def running_values(request: Request, *, with_ended: bool = False) -> dict[str, object]:
    """For every page that shows which runs go on, the hosts they reach and what they write (`running.html`).

    With `with_ended` also the last that ended with something to read: most are over before anybody can look.
    """
    context = context_of(request)
    version, runs = context.events.now().runs, context.world.running(with_ended=True)
    ended = sorted((each for each in runs if each.ended_at), key=lambda each: -each.ended_at)[:ENDED_LISTED]
    shown = [each for each in runs if not each.ended_at][:RUNNING_LISTED] + (ended if with_ended else [])
    values = [(each, _seconds(each), output_lines(context.world.output_of(each.run), TAIL_LINES)) for each in shown]
    part = links_of(request).to("/running", only=None if with_ended else "now")
    return {"runs_version": version, "running": values, "runs_part": part}


def running_page(request: Request) -> Response:
    """Only what runs: small, so that an open page can renew that part of itself alone."""
    return render(request, "runs", running_values(request, with_ended="only" not in request.query_params))


def _seconds(run: RunningRun) -> int:
    """How long it has run, or ran."""
    return max(0, round((run.ended_at or time.time()) - run.began_at))


def output_lines(output: Output, most: int) -> OutputShown:
    """The last lines; where a script went over to its other stream within a line, each part is one.

    Of a line that was written over again and again, as progress is, the last.
    """
    lines = [
        (stream, line.removesuffix("\r").rpartition("\r")[2])
        for stream, text in output.pieces
        for line in text.removesuffix("\n").split("\n")
    ]
    return OutputShown(lines[-most:], output.left_out + sum(len(line) for _, line in lines[:-most]))


class OutputShown(NamedTuple):
    """What a page shows of what a run wrote: each line with its stream, and how many characters came before."""

    lines: list[tuple[str, str]]
    left_out: int


def run_page(request: Request) -> Response:
    """One run, by the number of any of its records: how it was decided, how it ended, and the hosts that it used."""
    number, context = request.path_params["number"], context_of(request)
    store = open_store(context.world.folder, context.world.state)
    start, end = _find_run(store, number) if store.exists() else (None, None)
    if start is None and end is None:
        return refuse(request, Refusal.NOT_FOUND)
    values: dict[str, object] = {"runs_version": context.events.now().runs}
    going_on = next((each for each in context.world.running() if start and each.run == start.seq), None)
    told = end or start
    values |= {
        "start": start,
        "began": _moment_of(start) if start else 0.0,
        "told_of_start": dict(start.fields) if start else {},
        "told_of_end": dict(end.fields) if end else {},
        "run": _run_from(told) if told else None,
        "hosts": going_on.hosts if going_on and end is None else _hosts_in(end.fields) if end else (),
        "is_running": going_on is not None and end is None,
        "output": output_lines(context.world.output_of(start.seq if start else 0), MOST_LINES),
        "seconds": _seconds(going_on) if going_on else 0,
    }
    return render(request, "run", values)


def _find_run(store: Store, number: int) -> tuple[Record | None, Record | None]:
    """The record of its start, and of its end or refusal."""
    with closing(store):
        log = AuditLog(store)
        told = next(log.records(after=number - 1), None)
        if told is None or told.seq != number:
            return None, None
        if told.kind == "started":
            ended = (
                each for each in log.records(after=number, kind="finished") if each.fields.get("started") == number
            )
            return told, next(ended, None)
        began = told.fields.get("started")
        if told.kind != "finished" or not isinstance(began, int):
            return None, told
        return next(log.records(after=began - 1), None), told


def _hosts_in(fields: Mapping[str, Any]) -> tuple[HostUse, ...]:
    """As they stand in the record of a run's end."""
    found = fields.get("hosts")
    told = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return tuple(map(_host_use, told))


def _host_use(told: Mapping[str, Any]) -> HostUse:
    host, refused, via = (str(told.get(name, "")) for name in ("host", "refused", "resolved_by"))
    connections, sent, received = (int(told.get(name) or 0) for name in ("connections", "sent_bytes", "received_bytes"))
    return HostUse(host, refused, connections, sent, received, via)


def _read(world: World, *, is_asked: bool, may_check: bool = True) -> tuple[list[Record], Verification | None]:
    """The newest records; a long log is checked only when somebody asks."""
    store = open_store(world.folder, world.state)
    if not store.exists():
        return [], None
    with closing(store):
        log = AuditLog(store)
        records = list(islice(log.records(newest_first=True), RECORDS_READ))
        is_short = not records or records[0].seq <= RECORDS_READ
        return records, log.verify() if may_check and (is_short or is_asked) else None


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
    script = "(packages)" if fields.get("purpose") == "prepare" else script
    microseconds = fields.get("duration_us")
    took = f"{microseconds / 1e6:.2f} s" if isinstance(microseconds, int) else "-"
    outcome, details = _outcome_of(record)
    hosts = _hosts_in(fields) if record.kind == "finished" else ()
    return _Run(record.seq, _moment_of(record), skill, script, session, outcome, details, took, hosts)


def _moment_of(record: Record) -> float:
    """In seconds; every page tells time in one way."""
    return datetime.fromisoformat(record.timestamp).timestamp()


class RequestRuns:
    """What became of requests: the run or refusal that each led to, and what the script was given, as recorded.

    Who asks the same again asks under the same id, so of several the one counts that followed the answer.
    """

    def __init__(self, world: World) -> None:
        records, _ = _read(world, is_asked=False, may_check=False)
        self._ends = {each.fields.get("started"): each for each in records if each.kind == "finished"}
        self._starts: dict[str, list[Record]] = {}
        for record in records:
            if record.kind != "finished" and record.fields.get("request"):
                self._starts.setdefault(str(record.fields["request"]), []).append(record)

    def of(self, past: PastRequest) -> tuple[_Run | None, str]:
        starts, answer = self._starts.get(past.request.id), past.answer
        if not starts or answer is None:
            return None, ""
        start = min(starts, key=lambda each: abs(_moment_of(each) - answer.answered_at))
        return _run_from(self._ends.get(start.seq, start)), str(start.fields.get("arguments") or "")


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
