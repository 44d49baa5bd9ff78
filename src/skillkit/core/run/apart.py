"""Words -> a program of the person's own desktop, started and left to itself: a browser, a notification."""

from __future__ import annotations

import os
import shutil
import threading

from skillkit.core.run.spawn import DEVNULL, opened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["own_program", "start_apart"]


def own_program(*names: str) -> str:
    """The first of these on PATH, by absolute entries only, so that no project's folder offers one; "" for none."""
    entries = [entry for entry in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(entry)]
    path = os.pathsep.join(entries)
    return next(filter(None, (shutil.which(name, path=path) for name in names)), "")


def start_apart(argv: Sequence[str]) -> bool:
    """Whether it started. It has the caller's environment, no input and no output, and goes on when we end."""
    try:
        popen = opened(argv, "/", os.environ, (DEVNULL, DEVNULL, DEVNULL))
    except OSError:
        return False
    # Nobody else waits for it, and one that is not waited for stays in the table of processes.
    threading.Thread(target=popen.wait, name="skillkit-apart", daemon=True).start()
    return True
