"""The audit log -> what ran and what was refused, over time and one by one, and whether the log is intact."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from skillkit.core.record import AuditLog, Record, Verification
from skillkit.core.state import StateStore
from skillkit.web.audit_chart import chart
from skillkit.web.audit_runs import OUTCOMES, Run, runs_in
from skillkit.web.frame import framed, links_of
from skillkit.web.icons import icon
from skillkit.web.links import Links
from skillkit.web.markup import Child, Markup, tag
from skillkit.web.served import served
from skillkit.web.shown import empty_card, listing, plural

__all__ = ["audit_page"]

LOOKED_AT = 5_000
LISTED = 100


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the filters say; empty means all."""

    skill: str
    session: str
    outcome: str

    def fits(self, run: Run) -> bool:
        return all(
            not want or want == has
            for want, has in ((self.skill, run.skill), (self.session, run.session), (self.outcome, run.outcome))
        )


def audit_page(request: Request) -> Response:
    links = links_of(request)
    wanted = Wanted(*(request.query_params.get(name, "") for name in ("skill", "session", "outcome")))
    records, verification = read(served(request).world.folder, is_asked="check" in request.query_params)
    runs = runs_in(records)
    found = [run for run in runs if wanted.fits(run)]
    content: Child = empty_card("file", tag("p", "Nothing ran and nothing was refused yet."))
    if runs:
        content = [chain_notice(verification, records, links), filters(runs, wanted, links), chart(found), table(found)]
    body = tag("div", tag("h1", "Audit"), content, class_="stack")
    return framed(request, "Audit", body, current="/audit")


def read(folder: Path, *, is_asked: bool) -> tuple[list[Record], Verification | None]:
    """The newest records; a long log is checked only when somebody asks."""
    store = StateStore(folder)
    if not store.path.exists():
        return [], None
    try:
        log = AuditLog(store)
        records = list(islice(log.records(newest_first=True), LOOKED_AT))
        is_short = not records or records[0].seq <= LOOKED_AT
        return records, log.verify() if is_short or is_asked else None
    finally:
        store.close()


def chain_notice(verification: Verification | None, records: list[Record], links: Links) -> Markup:
    if verification is None:
        told = f"{records[0].seq:,} records. Whether all of them are as they were written takes a moment to check."
        return tag("p", icon("shield"), tag("span", told, " ", tag("a", "Check now", href=links.to("/audit", check=1))),
                   class_="notice")  # fmt: skip
    if verification.ok:
        told = f"Intact: {plural(verification.count, 'record')}, none altered, removed or inserted."
        return tag("p", icon("shield"), tag("span", told), class_="notice good")
    return tag("p", icon("flag"), tag("span", tag("strong", "Broken: "), verification.problem), class_="notice bad",
               role="alert")  # fmt: skip


def filters(runs: list[Run], wanted: Wanted, links: Links) -> Markup:
    skills = sorted({run.skill for run in runs if run.skill})
    sessions = sorted({run.session for run in runs if run.session})
    fields = [
        choice("skill", "Skill", [(name, name) for name in skills], wanted.skill),
        choice("session", "Session", [(name, name) for name in sessions], wanted.session),
        choice("outcome", "Outcome", list(OUTCOMES.items()), wanted.outcome),
    ]
    clear = tag("a", "Show all", href=links.to("/audit")) if wanted != Wanted("", "", "") else None
    return tag("form", fields, tag("button", "Filter", type="submit", class_="button"), clear, method="get",
               action=links.to("/audit"), class_="filters")  # fmt: skip


def choice(name: str, label: str, options: list[tuple[str, str]], chosen: str) -> Markup:
    every = tag("option", "All", value="")
    listed = [tag("option", shown, value=value, selected=value == chosen) for value, shown in options]
    return tag("label", tag("span", label), tag("select", every, listed, name=name))


def table(runs: list[Run]) -> Child:
    if not runs:
        return tag("p", "Nothing fits these filters.", class_="card")
    more = len(runs) - LISTED
    hint = f"{more:,} more. See all with: skillkit audit tail -n {len(runs)}"
    listed = listing("Runs and refusals", [row(run) for run in runs[:LISTED]])
    return [listed, tag("p", hint, class_="quiet") if more > 0 else None]


def row(run: Run) -> dict[str, Child]:
    took = f"{run.seconds:.2f} s" if run.seconds is not None else "-"
    kind = {"succeeded": "chip good", "refused": "chip warn"}.get(run.outcome, "chip")
    kind = "chip bad" if run.outcome in ("failed", "timed_out") else kind
    outcome = [tag("span", OUTCOMES[run.outcome], class_=kind), tag("span", run.details, class_="quiet")]
    return {
        "Record": run.seq,
        "Time (UTC)": tag("span", run.moment, class_="number"),
        "Script": tag("div", tag("code", run.script or "-"), tag("code", run.skill, class_="quiet"), class_="who"),
        "Outcome": tag("div", outcome, class_="outcome"),
        "Took": tag("span", took, class_="number"),
        "Session": tag("code", run.session) if run.session else "-",
    }
