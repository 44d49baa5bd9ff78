"""A running process and its deadline -> killed in time, even while the caller is held up."""

from __future__ import annotations

import threading
import time

from skillkit.core.run.survivors import Tree, kill_group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

__all__ = ["Watchdog"]


class Watchdog:
    """A second thread that kills at the deadline while the first is held up in the caller's `on_output`."""

    def __init__(self, tree: Tree, deadline: float) -> None:
        self._tree = tree
        self._timer = threading.Timer(deadline - time.monotonic(), self._bite)
        self.has_bitten = False

    def __enter__(self) -> Self:
        self._timer.daemon = True
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        # The pid may be reaped, and mean somebody else, only after this thread is through with it.
        self._timer.join()

    def _bite(self) -> None:
        self.has_bitten = True
        kill_group(self._tree)
