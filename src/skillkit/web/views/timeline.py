"""Runs -> bars on a true axis of time: a quiet hour is as long as a busy one, and what is empty stays empty."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Timeline", "timeline_of"]

WIDTH, HEIGHT, GAP = 960, 64, 2
MOST_BARS = 60
# From a second to a month: what people count time in.
STEPS = (1, 5, 15, 60, 300, 900, 3600, 10_800, 43_200, 86_400, 604_800, 2_592_000)
GROUPS = {"succeeded": "good", "failed": "bad", "timed_out": "bad", "refused": "warn", "unfinished": "open"}


@dataclass(frozen=True, slots=True)
class Part:
    """Of one bar, those that ended alike."""

    kind: str
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Timeline:
    """From `start` to `end`, both in seconds; `step` is how long one bar is."""

    start: float
    end: float
    step: int
    parts: tuple[Part, ...]
    most: int
    busiest: float
    """When the fullest bar begins."""
    width: int = WIDTH
    height: int = HEIGHT


def timeline_of(runs: Iterable[tuple[float, str]]) -> Timeline | None:
    """Of moments and outcomes; None where there is nothing to compare."""
    counted = Counter((moment, GROUPS.get(outcome, "open")) for moment, outcome in runs)
    moments = [moment for moment, _ in counted]
    if len(moments) < 2:  # noqa: PLR2004 - one moment is no axis
        return None
    first, last = min(moments), max(moments)
    step = next((step for step in STEPS if (last - first) / step < MOST_BARS), math.ceil((last - first) / MOST_BARS))
    start = math.floor(first / step) * step
    count = int((last - start) // step) + 1
    bars: list[Counter[str]] = [Counter() for _ in range(count)]
    for (moment, kind), times in counted.items():
        bars[int((moment - start) // step)][kind] += times
    most = max(bar.total() for bar in bars)
    parts = tuple(part for at, bar in enumerate(bars) for part in _stacked(bar, at, count, most))
    busiest = next(at for at, bar in enumerate(bars) if bar.total() == most)
    return Timeline(start, start + count * step, step, parts, most, start + busiest * step)


def _stacked(bar: Counter[str], at: int, count: int, most: int) -> Iterable[Part]:
    left, right = at * WIDTH // count, (at + 1) * WIDTH // count
    below = 0
    for kind in dict.fromkeys(GROUPS.values()):
        if number := bar[kind]:
            bottom = HEIGHT - below * HEIGHT // most
            below += number
            top = HEIGHT - below * HEIGHT // most
            yield Part(kind, left, top, max(1, right - left - GAP), max(1, bottom - top))
