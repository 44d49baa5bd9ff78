"""How soon the answer to a form can be a person's: one bound, which only a program's own tests may lower."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["FORM_SECONDS", "form_seconds", "lowered_to"]

FORM_SECONDS = 0.4
"""Programs that answered for their person took 1 to 4 ms; nobody reads a line and presses a key in this time."""

_lowered: list[float] = []


def form_seconds() -> float:
    return min(FORM_SECONDS, *_lowered) if _lowered else FORM_SECONDS


@contextmanager
def lowered_to(seconds: float) -> Iterator[None]:
    _lowered.append(seconds)
    try:
        yield
    finally:
        _lowered.remove(seconds)
