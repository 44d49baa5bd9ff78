"""A request -> the world's store, where any process that shares it can answer: command line, page, window."""

from __future__ import annotations

from collections.abc import Callable

from skillkit.approvers.later import leave_open
from skillkit.core.exceptions import ApprovalUnavailableError, RequestClosedError, StateUnavailableError
from skillkit.core.store.world import LIFETIME_SECONDS, World
from skillkit.core.values.questions import Cancel, OptionAnswer, OptionRequest

__all__ = ["StoreApprover"]


class StoreApprover:
    """Waits for whoever answers first; the answer names their channel. `announce` is told of each question before."""

    channel = "store"

    def __init__(
        self,
        world: World,
        expires_in: float = LIFETIME_SECONDS,
        *,
        announce: Callable[[OptionRequest], object] | None = None,
    ) -> None:
        self.world = world
        self.expires_in = expires_in
        self._announce = announce

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        if self._announce is not None:
            self._announce(request)
        try:
            return self.world.ask_request(
                request, expires_in=self.expires_in, single_use=request.single_use, cancel=cancel
            )
        except StateUnavailableError as error:
            raise ApprovalUnavailableError.because("the question cannot be stored", str(error)) from error

    def ask_later(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:  # noqa: ARG002 - no wait
        """The answer that was given since it was asked; ApprovalWaitingError while there is none."""
        if self._announce is not None:
            self._announce(request)
        try:
            return leave_open(self.world, request, self.address())
        except (RequestClosedError, StateUnavailableError) as error:
            raise ApprovalUnavailableError.because("the question cannot be stored", str(error)) from error

    def address(self) -> str:
        """Of a page where it can be answered; empty where there is none."""
        return ""
