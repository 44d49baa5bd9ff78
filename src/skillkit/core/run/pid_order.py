"""Looks at the newest pid, one after the other -> whether a higher pid still means a newer process."""

from __future__ import annotations

import math
import threading
import time

from skillkit.core.run.kernel import last_pid, seconds_to_start_over

__all__ = ["PidOrder"]

LOOKS = 4  # in the time that the kernel needs at least to use up all pids


class PidOrder:
    """Pids are given out upwards until they are used up; then the low ones are given out again.

    Between two looks that are close enough, the kernel cannot have come round to where it was: the newest pid
    is higher than before, or the order was lost.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._lock = threading.Lock()
        self._losses = 0
        self._newest = 0
        self._looked = -math.inf

    def losses(self) -> int:
        """How often the order was lost: two equal answers say that it was not in between.

        Whoever asks keeps it known for everybody, if somebody asks every `look_seconds`.
        """
        now = time.monotonic()
        with self._lock:
            if now - self._looked >= self.look_seconds():
                newest, before = last_pid(), self._newest
                is_close = time.monotonic() - self._looked < seconds_to_start_over()
                self._losses += not (is_close and 0 < before <= newest)
                self._newest, self._looked = newest, now
            return self._losses

    def newest(self) -> tuple[int, int]:
        """The newest pid, and how often the order was lost until that was made.

        Every look before counts here: after a round, a pid can be lower than the last one seen and yet higher than
        that of a run which began long ago.
        """
        before = self._newest
        newest = last_pid()
        losses = self.losses()
        return newest, losses if newest >= before else losses + 1

    @staticmethod
    def look_seconds() -> float:
        return seconds_to_start_over() / LOOKS
