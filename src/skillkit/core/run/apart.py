"""Words -> a program of the person's own desktop, started and left to itself: a browser, a notification."""

from __future__ import annotations

import threading

from skillkit.core.run.own_programs import own_environment
from skillkit.core.run.spawn import DEVNULL, opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["start_apart"]


def start_apart(argv: Sequence[str]) -> bool:
    """Whether it started. It has the person's environment, no input and no output, and goes on when we end."""
    try:
        popen = opened(argv, "/", own_environment(), (DEVNULL, DEVNULL, DEVNULL))
    except OSError:
        return False
    # Nobody else waits for it, and one that is not waited for stays in the table of processes.
    threading.Thread(target=popen.wait, name="skillkit-apart", daemon=True).start()
    return True
