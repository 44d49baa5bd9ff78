"""A request -> a function of the program that uses skillkit, which asks its person in its own way."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable

from skillkit.core.exceptions import ApprovalUnavailableError
from skillkit.core.questions import ANSWER_SECONDS, Cancel, OptionAnswer, OptionRequest

__all__ = ["CallbackApprover"]

REFUSAL = "no"


class CallbackApprover:
    """The function returns the id of an option, or an OptionAnswer; anything else is not an approval.

    `control_flow` are exceptions by which a framework leaves and comes back: they pass through unchanged.
    """

    def __init__(
        self,
        function: Callable[[OptionRequest], str | OptionAnswer],
        *,
        channel: str = "callback",
        control_flow: tuple[type[BaseException], ...] = (),
        expires_in: float = ANSWER_SECONDS,
    ) -> None:
        self.function = function
        self.expires_in = expires_in
        self.channel = channel
        self.passing: tuple[type[BaseException], ...] = (ApprovalUnavailableError, *control_flow)

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        require_wanted(cancel)
        try:
            said = self.function(request)
        except self.passing:
            raise
        except Exception as error:
            reason = f"the callback raised {type(error).__name__}"
            raise ApprovalUnavailableError(f"Not approved: {reason}: {error}", reasons=[reason]) from error
        answer = self.answer_from(said, request)
        if answer.option_id != REFUSAL:  # a no counts even where a yes is not needed any more
            require_wanted(cancel)
            require_open(request)
        return answer

    def answer_from(self, said: object, request: OptionRequest) -> OptionAnswer:
        offered = [option.id for option in request.options]
        if isinstance(said, str) and said in offered:
            return OptionAnswer(said, self.channel, time.time(), request.id)
        if isinstance(said, OptionAnswer) and said.option_id in offered and said.request_id in ("", request.id):
            return OptionAnswer(said.option_id, said.channel or self.channel, said.answered_at, request.id)
        if inspect.iscoroutine(said):
            said.close()
            said = "a coroutine: the function must not be async"
        reason = f"the callback returned {said!r:.200}"
        raise ApprovalUnavailableError(
            f"Not approved: {reason}. Return one of these ids: {', '.join(offered)}.", reasons=[reason]
        )


def require_open(request: OptionRequest) -> None:
    if 0 < request.expires_at < time.time():
        reason = "the question expired before it was answered"
        raise ApprovalUnavailableError(f"Not approved: {reason}. Ask again.", reasons=[reason])


def require_wanted(cancel: Cancel | None) -> None:
    if cancel is not None and cancel.is_set():
        reason = "the question was cancelled"
        raise ApprovalUnavailableError(f"Not approved: {reason}.", reasons=[reason])
