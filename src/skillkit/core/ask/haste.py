"""How soon the answer to a form can be a person's: one bound, which only a program's own tests may lower."""

from __future__ import annotations

__all__ = ["FORM_SECONDS", "form_seconds", "lowered_to"]

FORM_SECONDS = 0.4
"""Programs that answered for their person took 1 to 4 ms; nobody reads a line and presses a key in this time."""

_lowered: list[float] = []


def form_seconds() -> float:
    return min(FORM_SECONDS, *_lowered) if _lowered else FORM_SECONDS


class lowered_to:  # noqa: N801 - used as a function is
    """Inside, the bound is no higher than this."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        _lowered.append(self.seconds)

    def __exit__(self, *_: object) -> None:
        _lowered.remove(self.seconds)
