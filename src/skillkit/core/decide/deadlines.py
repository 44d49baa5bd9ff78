"""Now -> a moment that a clock set back or forward cannot move: what has run out stays run out."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache

__all__ = ["Moment", "is_over", "moment_now", "steady_seconds"]

BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id"


@dataclass(frozen=True, slots=True)
class Moment:
    """A point in time by both clocks; every process of the machine reads the same steady one."""

    boot: str
    """Which start of the machine `steady` counts from; empty where the system does not say."""
    steady: float
    wall: float

    def after(self, seconds: float) -> Moment:
        return Moment(self.boot, self.steady + seconds, self.wall + seconds)


def moment_now() -> Moment:
    return Moment(boot_id(), steady_seconds(), time.time())


def steady_seconds() -> float:
    """Since the machine started; time asleep counts where the system can tell."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@cache
def boot_id() -> str:
    try:
        with open(BOOT_ID_FILE, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


def is_over(deadline: Moment, created_at: float, now: Moment) -> bool:
    """The steady clock decides; after a restart, or where starts cannot be told apart, the other one counts too."""
    is_same_boot = deadline.boot == now.boot
    if is_same_boot and now.steady >= deadline.steady:
        return True
    if is_same_boot and now.boot:
        return False
    # A clock that stands before the beginning cannot be believed.
    return not created_at <= now.wall < deadline.wall
