"""Candidates -> interleaved timings -> ratios that hold on a noisy machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import Choice
from skillkit.core.run.tiers import machine_tiers

Work = Callable[[], object]
REPEATS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a figure, what it must be and what it should be."""

    what: str
    figure: float
    must: float
    goal: float
    unit: str = "x"
    detail: str = ""
    at_least: bool = False
    why: str = ""
    """What keeps it from the goal, where that is known."""

    def meets(self, bound: float) -> bool:
        return self.figure >= bound if self.at_least else self.figure <= bound

    @property
    def verdict(self) -> str:
        if not self.meets(self.must):
            return "MISSED"
        return "goal" if self.meets(self.goal) else "must"

    def cells(self) -> list[str]:
        sign = ">=" if self.at_least else "<="
        return [
            self.what,
            f"{self.figure:.2f} {self.unit}",
            f"{sign} {self.must:g}",
            f"{sign} {self.goal:g}",
            self.verdict,
            self.detail,
            self.why if self.verdict != "goal" else "",
        ]


@dataclass(slots=True)
class Timings:
    """Milliseconds per candidate, one list for each repeat."""

    repeats: list[dict[str, list[float]]] = field(default_factory=list)

    def p50(self, name: str) -> float:
        return statistics.median(statistics.median(repeat[name]) for repeat in self.repeats)

    def p95(self, name: str) -> float:
        return statistics.median(percentile(repeat[name], 95) for repeat in self.repeats)

    def ratio(self, name: str, baseline: str) -> float:
        """Median over the repeats of the ratio of medians inside each."""
        return statistics.median(
            statistics.median(repeat[name]) / statistics.median(repeat[baseline]) for repeat in self.repeats
        )

    def detail(self, name: str, baseline: str) -> str:
        return f"p50 {self.p50(name):.2f} ms against {self.p50(baseline):.2f} ms"


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(percent / 100 * len(ordered)))]


def measure(candidates: Mapping[str, Work], rounds: int, prepare: Work | None = None) -> Timings:
    """Every round runs each candidate once, so that a slow moment of the machine hits all alike."""
    timings = Timings()
    for work in candidates.values():
        work()
    for _ in range(REPEATS):
        repeat: dict[str, list[float]] = {name: [] for name in candidates}
        for number in range(rounds):
            names = list(candidates)
            for name in names[number % len(names) :] + names[: number % len(names)]:
                if prepare is not None:
                    prepare()
                started = time.perf_counter()
                candidates[name]()
                repeat[name].append((time.perf_counter() - started) * 1000)
        timings.repeats.append(repeat)
    return timings


@contextmanager
def only_walls(tier: str) -> Iterator[None]:
    """As if this machine had no other kind of walls; afterwards it has them again."""
    usual = vars(tiers)["this_machines"]
    sandbox = next(each.sandbox for each in machine_tiers() if each.tier == tier and each.sandbox is not None)
    vars(tiers)["this_machines"] = Choice({tier: lambda: sandbox})
    try:
        yield
    finally:
        vars(tiers)["this_machines"] = usual
