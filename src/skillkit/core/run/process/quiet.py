"""Looks for what a run left -> whether so many in a row found nobody that there is nobody."""

from __future__ import annotations

import time

__all__ = ["Quiet"]

BRIEF_SECONDS = 0.001  # a look in which nobody can be born, fork and be gone unseen
BRIEF_LOOKS = 4  # of these in a row find nobody of ours: then there is nobody
LOOKS = 4  # of any length, where a busy machine allows no brief ones,
LOOKS_SECONDS = 0.05  # and how long they must have gone on


class Quiet:
    """Looks in a row that found nobody of ours, though some were gone who may have left a successor."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._looks = self._brief_looks = 0

    def add(self, began: float) -> None:
        self._looks += 1
        self._brief_looks += time.monotonic() - began < BRIEF_SECONDS

    def is_enough(self) -> bool:
        if self._brief_looks >= BRIEF_LOOKS:
            return True
        return self._looks >= LOOKS and not self.is_shorter_than(LOOKS_SECONDS)

    def is_shorter_than(self, seconds: float) -> bool:
        return time.monotonic() - self._since < seconds
