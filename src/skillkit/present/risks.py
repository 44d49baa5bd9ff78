"""What a reader should look at first -> rows on a terminal: the heaviest risks, or all of them."""

from __future__ import annotations

from collections.abc import Sequence

from skillkit.core.values.questions import Prompt, RiskFlag, Tick
from skillkit.core.values.text import grouped
from skillkit.present.glance import NO_RISKS, glance_of, place_of, stopped_shortly, stopped_words
from skillkit.present.terminal import DIM, YELLOW, Layout, cut, harmless, width_of

__all__ = ["MOST_TERSE", "all_risk_lines", "risk_lines"]

KIND_COLUMNS = 14
NAME_ROWS = 4
MOST_TERSE = 2
"""The shortest that a question can be."""


def risk_lines(prompt: Prompt, layout: Layout, ticks: Sequence[Tick], terse: int) -> list[str]:
    """The heaviest, each with its place and whether the walls stop it; on one row, with one of the two."""
    glance = glance_of(prompt, ticks)
    if not glance.risks:
        return layout.said("Risks", NO_RISKS)
    more = layout.said("", f"{grouped(glance.more_risks)} more{layout.more('v')}") if glance.more_risks else []
    flags = (_short_flag_lines if terse else _flag_lines)(glance.risks, layout, prompt)
    return [*flags, *(more if terse < MOST_TERSE else [])]


def all_risk_lines(prompt: Prompt, layout: Layout, ticks: Sequence[Tick] = ()) -> list[str]:
    flags = [(risk, stopped_words(risk, ticks)) for risk in prompt.risks_by_weight]
    return _flag_lines(flags, layout, prompt) or layout.said("Risks", NO_RISKS)


def _flag_lines(flags: Sequence[tuple[RiskFlag, str]], layout: Layout, prompt: Prompt) -> list[str]:
    lines: list[str] = []
    for start, (risk, stopped) in zip(_kinds(flags), flags, strict=True):
        told = f"{risk.message} ({'; '.join(filter(None, (place_of(risk, prompt), stopped)))})"
        style, label = DIM if stopped else YELLOW, "" if lines else "Risks"
        lines += layout.quoted(label, [told], style=style, start=start, limit=NAME_ROWS)
    return lines


def _short_flag_lines(flags: Sequence[tuple[RiskFlag, str]], layout: Layout, prompt: Prompt) -> list[str]:
    lines: list[str] = []
    for start, (risk, stopped) in zip(_kinds(flags), flags, strict=True):
        end = stopped_shortly(stopped) or place_of(risk, prompt)
        style, label = DIM if stopped else YELLOW, "" if lines else "Risks"
        lines += layout.row(label, risk.message, style=style, start=start, end=f"({end})")
    return lines


def _kinds(flags: Sequence[tuple[RiskFlag, str]]) -> list[str]:
    """As wide as the widest, and the gap behind it."""
    kinds = [cut(harmless(risk.kind.replace("_", " ")), KIND_COLUMNS) for risk, _ in flags]
    column = max(map(width_of, kinds), default=0)
    return [kind + " " * (column - width_of(kind) + 2) for kind in kinds]
