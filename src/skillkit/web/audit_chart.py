"""Runs -> a small chart of how many there were and how long they took; the same numbers as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from skillkit.web.audit_runs import Run
from skillkit.web.markup import Child, Markup, tag

__all__ = ["chart"]

COLUMNS = 24
WIDTH, HEIGHT, BASE, GAP = 720, 132, 108, 4
PARTS = (("ran", "Ran well"), ("wrong", "Failed or timed out"), ("refused", "Refused"))
# How much of a moment's text names its minute, its hour, its day or its month.
LENGTHS = (16, 13, 10, 7)


@dataclass(frozen=True, slots=True)
class Span:
    """All runs of one stretch of time."""

    name: str
    ran: int
    wrong: int
    refused: int
    seconds: float | None


def chart(runs: Sequence[Run]) -> Child:
    spans = spans_of(runs)
    if not spans:
        return None
    highest = max(span.ran + span.wrong + span.refused for span in spans)
    step = min(WIDTH / len(spans), 60)
    bars = [bar(span, at * step, step - GAP, highest) for at, span in enumerate(spans)]
    labels = [
        tag("text", spans[0].name, x=0, y=HEIGHT - 6, class_="axis"),
        tag("text", spans[-1].name, x=round(step * len(spans)), y=HEIGHT - 6, class_="axis end")
        if len(spans) > 3  # noqa: PLR2004 - fewer bars leave no room for two names
        else None,
    ]
    drawing = tag(
        "svg",
        tag("line", x1=0, y1=BASE, x2=WIDTH, y2=BASE, class_="base"),
        bars,
        labels,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        class_="chart",
        role="img",
        aria_label="Runs and refusals over time. The table below holds the same numbers.",
    )
    legend = [tag("li", tag("span", class_=f"swatch {kind}"), name) for kind, name in PARTS]
    return tag("section", tag("h2", "Over time"), drawing, tag("ul", legend, class_="legend"), numbers(spans),
               class_="card")  # fmt: skip


def bar(span: Span, x: float, width: float, highest: int) -> Child:
    parts: list[Child] = []
    y = float(BASE)
    for kind, _ in PARTS:
        size = getattr(span, kind) / highest * (BASE - 8)
        y -= size
        if size:
            parts.append(
                tag("rect", x=f"{x:.1f}", y=f"{y:.1f}", width=f"{width:.1f}", height=f"{size:.1f}", class_=kind)
            )
    return parts


def numbers(spans: list[Span]) -> Markup:
    names = ("When (UTC)", *(name for _, name in PARTS), "Median time")
    head = tag("thead", tag("tr", [tag("th", name, scope="col") for name in names]))
    rows = [
        tag(
            "tr",
            tag("th", span.name, scope="row"),
            [tag("td", getattr(span, kind)) for kind, _ in PARTS],
            tag("td", f"{span.seconds:.2f} s" if span.seconds is not None else "-"),
        )
        for span in spans
    ]
    table = tag("table", head, tag("tbody", rows), class_="numbers")
    scroll = tag("div", table, class_="scroll", tabindex=0, role="region", aria_label="Numbers over time")
    return tag("details", tag("summary", "As a table, with durations"), scroll)


def spans_of(runs: Sequence[Run]) -> list[Span]:
    """By the finest of minute, hour, day and month that gives few enough; the oldest first."""
    if not runs:
        return []
    length = next((each for each in LENGTHS if len({run.moment[:each] for run in runs}) <= COLUMNS), LENGTHS[-1])
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.moment[:length], []).append(run)
    return [span_from(name, groups[name]) for name in sorted(groups)][-COLUMNS:]


def span_from(name: str, runs: list[Run]) -> Span:
    counts = {kind: sum(run.outcome in group for run in runs) for kind, group in GROUPS.items()}
    seconds = [run.seconds for run in runs if run.seconds is not None]
    shown = f"{name}h" if len(name) == LENGTHS[1] else name
    return Span(shown, counts["ran"], counts["wrong"], counts["refused"], median(seconds) if seconds else None)


GROUPS = {
    "ran": ("succeeded",),
    "wrong": ("failed", "timed_out", "unfinished"),
    "refused": ("refused",),
}
