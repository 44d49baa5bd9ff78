"""Whether reading a longer text takes far more than its share: a ratio inside one run, never a number of seconds."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from skillkit import SkillKitError

__all__ = ["CHARACTERS", "GROWTH", "grows_fast", "repeated", "seconds_for"]

GROWTH = 8
# A reader that looks at everything again for each part takes 64 times as long.
MOST_GROWTH = 5 * GROWTH
CHARACTERS = 2_500
LEAST_SECONDS = 0.02  # of the large text; what takes less has said enough


def seconds_for(action: Callable[[], object]) -> float:
    """Of this process, so that what else the machine does counts little; the better of two."""
    spent = []
    gc.disable()  # it looks through all that the tests have made so far, and more often for a long text
    try:
        for _ in range(2):
            start = time.process_time()
            with suppress(SkillKitError):
                action()
            spent.append(time.process_time() - start)
    finally:
        gc.enable()
    return min(spent)


def grows_fast(
    read: Callable[[str], object], text_of: Callable[[int], str], *, of_three: Callable[[Iterable[bool]], bool] = all
) -> bool:
    """Whether reading eight times the text takes far more than eight times as long; a busy machine may look so once."""
    small, large = (text_of(CHARACTERS * times) for times in (1, GROWTH))
    read(small)  # what is made once is made

    def looks_fast() -> bool:
        taken = seconds_for(lambda: read(large))
        return taken > LEAST_SECONDS and taken > MOST_GROWTH * seconds_for(lambda: read(small))

    return of_three(looks_fast() for _ in range(3))


def repeated(unit: str, before: str = "", after: str = "") -> Callable[[int], str]:
    return lambda length: f"{before}{unit * (length // len(unit))}{after}"
