"""Work that is interrupted at its first step, its second, and so on, as a signal's handler would."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["interrupted_at"]


class Interrupt(BaseException):
    """No error that anybody expects."""


def interrupted_at(step: int, work: Callable[[], object], is_part: Callable[[FrameType], bool]) -> bool:
    """Whether `work`, as far as it is in the frames meant, had so many steps; it is interrupted at the last of them."""
    steps = 0

    def tracer(frame: FrameType, _: str, __: object) -> Any:
        nonlocal steps
        if not is_part(frame):
            return None
        steps += 1
        if steps == step:
            raise Interrupt
        return tracer

    # What earlier tests left to the collector would be closed inside our frames, and be interrupted in our place.
    collects = gc.isenabled()
    gc.disable()
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        work()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return False
