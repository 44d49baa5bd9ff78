"""Runs -> a small chart of how many there were and how long they took; the same numbers as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from skillkit.web.audit_runs import Run
from skillkit.web.markup import Child, Markup, tag

__all__ = ["chart"]

COLUMNS = 24
WIDTH, BASE, GAP, WIDEST = 720, 100, 3, 40
TIMES_HEIGHT = 36
PARTS = (("ran", "Ran well"), ("wrong", "Failed or timed out"), ("refused", "Refused"))
# How much of a moment's text names its minute, its hour, its day or its month.
UNITS = {16: "minute", 13: "hour", 10: "day", 7: "month"}


@dataclass(frozen=True, slots=True)
class Span:
    """All runs of one stretch of time."""

    name: str
    ran: int
    wrong: int
    refused: int
    seconds: float | None


def chart(runs: Sequence[Run]) -> Child:
    unit, spans = spans_of(runs)
    if not spans:
        return None
    legend = [tag("li", tag("span", class_=f"swatch {kind}"), name) for kind, name in PARTS]
    ends = [tag("span", spans[0].name), tag("span", spans[-1].name) if len(spans) > 1 else None]
    return tag(
        "section",
        tag("h2", "Over time"),
        tag("p", f"Runs and refusals by {unit}; {len(runs):,} in all."),
        bars(spans),
        times(spans),
        tag("p", ends, class_="axis"),
        tag("ul", legend, class_="legend"),
        numbers(spans),
        class_="card",
    )


def bars(spans: list[Span]) -> Markup:
    highest = max(span.ran + span.wrong + span.refused for span in spans)
    step = step_of(spans)
    drawn = [bar(span, at * step, step - GAP, highest) for at, span in enumerate(spans)]
    base = tag("line", x1=0, y1=BASE, x2=WIDTH, y2=BASE, class_="base")
    told = "Runs and refusals over time. The table below holds the same numbers."
    return drawing([base, drawn], BASE + 2, "chart", told)


def times(spans: list[Span]) -> Child:
    """How long runs took in the middle, as a line; one point is none."""
    known = [(at, span.seconds) for at, span in enumerate(spans) if span.seconds is not None]
    if len(known) < 2:  # noqa: PLR2004 - as the docstring says
        return None
    slowest = max(seconds for _, seconds in known) or 1.0
    step, room = step_of(spans), TIMES_HEIGHT - 4
    points = " ".join(f"{(at + 0.5) * step:.1f},{2 + room * (1 - seconds / slowest):.1f}" for at, seconds in known)
    line = tag("polyline", points=points, class_="times")
    told = "Median duration over time. The table below holds the same numbers."
    label = tag("p", f"Median time, at most {slowest:.2f} s", class_="label")
    return [label, drawing(line, TIMES_HEIGHT, "chart low", told)]


def drawing(content: Child, height: int, kind: str, told: str) -> Markup:
    """As wide as there is room, and as high on a phone as elsewhere."""
    box = f"0 0 {WIDTH} {height}"
    return tag("svg", content, viewBox=box, preserveAspectRatio="none", class_=kind, role="img", aria_label=told)


def step_of(spans: list[Span]) -> float:
    return min(WIDTH / len(spans), WIDEST)


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


def spans_of(runs: Sequence[Run]) -> tuple[str, list[Span]]:
    """By the finest of minute, hour, day and month that gives few enough; the oldest first."""
    if not runs:
        return "", []
    fitting = (each for each in UNITS if len({run.moment[:each] for run in runs}) <= COLUMNS)
    length = next(fitting, min(UNITS))
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.moment[:length], []).append(run)
    return UNITS[length], [span_from(name, groups[name]) for name in sorted(groups)][-COLUMNS:]


def span_from(name: str, runs: list[Run]) -> Span:
    counts = {kind: sum(run.outcome in group for run in runs) for kind, group in GROUPS.items()}
    seconds = [run.seconds for run in runs if run.seconds is not None]
    shown = f"{name}:00" if UNITS[len(name)] == "hour" else name
    return Span(shown, counts["ran"], counts["wrong"], counts["refused"], median(seconds) if seconds else None)


GROUPS = {
    "ran": ("succeeded",),
    "wrong": ("failed", "timed_out", "unfinished"),
    "refused": ("refused",),
}
