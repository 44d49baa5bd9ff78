"""A question that no client asks -> the world's store and page, for whoever shares the world."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from skillkit.approvers.store import leave_open, waiting_error
from skillkit.core.ask.approvals import Cancellation
from skillkit.core.exceptions import ApprovalUnavailableError, RequestClosedError, StateUnavailableError
from skillkit.core.store.world import LIFETIME_SECONDS, World
from skillkit.core.values.questions import Cancel, OptionAnswer, OptionRequest
from skillkit.present.form import headline

__all__ = ["Asking", "Deadline", "LocalApprover", "PageAddress", "Tell", "untold"]

Asking = Callable[[OptionRequest, Cancel | None], OptionAnswer]
PageAddress = Callable[[], str]
"""Where the world's approval page is, made sure of when it is called; "" where there is none."""
Tell = Callable[[str], None]
"""Gets what a call waits for, for as long as it waits; "" when it goes on."""


def untold(_: str) -> None:
    """Nobody listens."""


class Deadline:
    """A reason to stop waiting that comes with time."""

    def __init__(self, seconds: float) -> None:
        self.until = time.monotonic() + seconds

    def is_set(self) -> bool:
        return time.monotonic() >= self.until


class LocalApprover:
    """The question stays open while its server lives; the same call made later finds the answer."""

    channel = "store"

    def __init__(
        self,
        state_dir: Path,
        wait_seconds: float,
        page: PageAddress | None = None,
        tell: Tell = untold,
        *,
        state: str | None = None,
    ) -> None:
        self.state_dir = state_dir
        self.state = state
        self.wait_seconds = wait_seconds
        self.page = page
        self.tell = tell

    def telling(self, tell: Tell) -> LocalApprover:
        """The same for one call, which hears what it waits for."""
        return LocalApprover(self.state_dir, self.wait_seconds, self.page, tell, state=self.state)

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        """Waits for a while."""
        lifetime, address = max(LIFETIME_SECONDS, self.wait_seconds), self._address()
        stop = Cancellation(cancel, Deadline(self.wait_seconds))
        place = f"on the page {address}" if address else "by `skillkit approvals`"
        self.tell(f"Waiting for a person's answer {place}: {headline(request)}")
        try:
            with self._kept() as world:
                world.open(request, expires_in=lifetime, single_use=request.single_use, ends_with_us=True)
                return world.wait(request.id, cancel=stop)
        except ApprovalUnavailableError as error:
            if (cancel is not None and cancel.is_set()) or not stop.is_set():
                raise
            raise waiting_error(f"nobody answered within {self.wait_seconds:g} s", lifetime, address) from error
        finally:
            self.tell("")

    def ask_later(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:  # noqa: ARG002 - no wait
        """Waits for nobody."""
        with self._kept() as world:
            return leave_open(world, request, self._address())

    def _address(self) -> str:
        return self.page() if self.page is not None else ""

    @contextmanager
    def _kept(self) -> Iterator[World]:
        try:
            with World(self.state_dir, state=self.state) as world:
                yield world
        except (RequestClosedError, StateUnavailableError) as error:
            reason = "the question cannot be kept for a person"
            raise ApprovalUnavailableError(f"Not approved: {reason}: {error}", reasons=[reason]) from error
