"""Standard streams that were closed (`>&-`) -> ones that nobody reads and that hold nothing."""

from __future__ import annotations

import os
import sys

__all__ = ["open_closed_streams"]

STREAMS = (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w"))


def open_closed_streams() -> None:
    """Who starts us without one wants to hear nothing on it; its number must not become another file's."""
    for name, number, mode in STREAMS:
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8"))
