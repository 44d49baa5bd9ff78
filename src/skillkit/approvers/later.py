"""A request -> a question that stays open while nobody waits; whoever asks the same again takes the answer."""

from __future__ import annotations

from collections.abc import Callable

from skillkit.core.exceptions import ApprovalWaitingError
from skillkit.core.store.world import World
from skillkit.core.values.questions import ANSWER_SECONDS, Approver, Cancel, OptionAnswer, OptionRequest

__all__ = ["LaterApprover", "leave_open", "waiting_error"]

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
