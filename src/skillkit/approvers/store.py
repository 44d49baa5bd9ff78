"""A request -> the world's store, where any process that shares it can answer: command line, page, window."""

from __future__ import annotations

from skillkit.core.decide.requests import LIFETIME_SECONDS, World
from skillkit.core.exceptions import ApprovalUnavailableError, StateUnavailableError
from skillkit.core.questions import SINGLE_USE, Cancel, OptionAnswer, OptionRequest

__all__ = ["StoreApprover"]


def single_use_of(request: OptionRequest) -> tuple[str, ...]:
    """Which answers are for one asker alone; where the request does not say, a yes for one run."""
    return tuple(request.context.get(SINGLE_USE, ("yes_once",)))


class StoreApprover:
    """Waits for whoever answers first; the answer names their channel."""

    channel = "store"

    def __init__(self, world: World, expires_in: float = LIFETIME_SECONDS) -> None:
        self.world = world
        self.expires_in = expires_in

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        try:
            single_use = single_use_of(request)
            return self.world.ask_request(request, expires_in=self.expires_in, single_use=single_use, cancel=cancel)
        except StateUnavailableError as error:
            reason = "the question cannot be stored"
            raise ApprovalUnavailableError(f"Not approved: {reason}. {error}", reasons=[reason]) from error
