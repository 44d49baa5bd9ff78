"""A request -> the world's store, where any process that shares it can answer, at once or when it is asked again."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from skillkit.core.exceptions import (
    ApprovalUnavailableError,
    ApprovalWaitingError,
    RequestClosedError,
    StateUnavailableError,
)
from skillkit.core.store.world import LIFETIME_SECONDS, World
from skillkit.core.values.questions import ANSWER_SECONDS, Approver, Cancel, OptionAnswer, OptionRequest

if TYPE_CHECKING:
    from skillkit.core.store.world import World

__all__ = ["StoreApprover"]

OPEN_SECONDS = 600.0
HOW_TO_ANSWER = (
    "A person can answer it {page}from a terminal (`skillkit approvals list`); then make the same call again. "
    "Only a person may answer: tell them, and do not answer it yourself."
)
ON_THE_PAGE = "on the page {address} (`skillkit web` logs them in) or "


def waiting_error(reason: str, seconds: float, address: str = "") -> ApprovalWaitingError:
    """That a question stays open so long, and how a person can answer it; for a model to read.

    The page's address is not a secret; a link that logs in never stands here.
    """
    page = ON_THE_PAGE.format(address=address) if address else ""
    remedy = f"The question stays open for {seconds:g} s. {HOW_TO_ANSWER.format(page=page)}"
    return ApprovalWaitingError.because(reason, remedy)


def leave_open(world: World, request: OptionRequest, address: str = "") -> OptionAnswer:
    """The answer, if it was given to the same question before; else the question stays open and nobody waits."""
    world.open(request, expires_in=OPEN_SECONDS, single_use=request.single_use, ends_with_us=True)
    answer = world.collect(request.id)
    if answer is None:
        raise waiting_error("the question waits for a person", OPEN_SECONDS, address)
    return answer


class LaterApprover:
    """Asks through another approver without waiting where its question waits elsewhere; a person here is waited for."""

    def __init__(self, approver: Approver) -> None:
        self.approver = approver
        self.channel = approver.channel

    @property
    def expires_in(self) -> float:
        return float(getattr(self.approver, "expires_in", ANSWER_SECONDS))

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        ask: Callable[..., OptionAnswer] = getattr(self.approver, "ask_later", self.approver.ask)
        return ask(request, cancel)


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
