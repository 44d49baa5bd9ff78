"""A request -> an answer by a function, by a flag that was given beforehand, or by the first of several ways."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from skillkit.core.exceptions import ApprovalUnavailableError, ApprovalWaitingError
from skillkit.core.values.questions import ANSWER_SECONDS, Approver, Cancel, OptionAnswer, OptionRequest, grant_ids

__all__ = ["CallbackApprover", "ChainApprover", "FlagApprover"]

YES, NO = "yes_once", "no"


class CallbackApprover:
    """A function of the program that uses skillkit asks its person in its own way.

    It returns the id of an option, or an OptionAnswer, which may tick what the request offers and say why; anything
    else is not an approval.
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
        _require_wanted(cancel)
        try:
            said = self.function(request)
        except self.passing:
            raise
        except Exception as error:
            reason = f"the callback raised {type(error).__name__}"
            raise ApprovalUnavailableError(f"Not approved: {reason}: {error}", reasons=[reason]) from error
        answer = self._answer_from(said, request)
        if answer.option_id != NO:  # a no counts even where a yes is not needed any more
            _require_wanted(cancel)
            _require_open(request)
        return answer

    def _answer_from(self, said: object, request: OptionRequest) -> OptionAnswer:
        offered = [option.id for option in request.options]
        if isinstance(said, str) and said in offered:
            return OptionAnswer(said, self.channel, time.time(), request.id)
        if isinstance(said, OptionAnswer) and said.option_id in offered and said.request_id in ("", request.id):
            ticks = {tick.id for tick in request.grants}
            if ticks.issuperset(grant_ids(said.grants)):
                channel = said.channel or self.channel
                return replace(said, channel=channel, request_id=request.id, grants=grant_ids(said.grants))
            raise ApprovalUnavailableError.because(
                f"the callback grants {said.grants!r:.200}", f"The question offers: {', '.join(ticks) or 'nothing'}."
            )
        if inspect.iscoroutine(said):
            said.close()
            said = "a coroutine: the function must not be async"
        raise ApprovalUnavailableError.because(
            f"the callback returned {said!r:.200}", f"Return one of these ids: {', '.join(offered)}."
        )


class FlagApprover:
    """The person said so with `--yes` on the command line; approves each run by itself and leaves nothing behind."""

    channel = "flag"

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:  # noqa: ARG002
        if YES not in [option.id for option in request.options]:
            raise ApprovalUnavailableError.because(f"the request does not offer {YES!r}", "Ask a person.")
        return OptionAnswer(YES, self.channel, time.time(), request.id)


class ChainApprover:
    """One after the other; goes on only when a way is unavailable: whatever a person says is final."""

    def __init__(self, *approvers: Approver) -> None:
        self.approvers = approvers

    @property
    def channel(self) -> str:
        return ", ".join(approver.channel for approver in self.approvers)

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        return self._first_answer([approver.ask for approver in self.approvers], request, cancel)

    def ask_later(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        """The same, but nobody waits for an answer that is given elsewhere."""
        ways = [getattr(approver, "ask_later", approver.ask) for approver in self.approvers]
        return self._first_answer(ways, request, cancel)

    def _first_answer(
        self, ways: Sequence[Callable[..., OptionAnswer]], request: OptionRequest, cancel: Cancel | None
    ) -> OptionAnswer:
        reasons = []
        for approver, ask in zip(self.approvers, ways, strict=True):
            if cancel is not None and cancel.is_set():
                reasons.append("the question was cancelled")
                break
            try:
                return ask(request, cancel)
            except ApprovalWaitingError:
                raise
            except ApprovalUnavailableError as error:
                reasons.append(f"{approver.channel}: {'; '.join(error.reasons) or error}")
        told = "; ".join(reasons) or "there is no way to ask"
        raise ApprovalUnavailableError(f"{request.title} Not approved: {told}.", reasons=reasons or [told])


def _require_open(request: OptionRequest) -> None:
    if 0 < request.expires_at < time.time():
        raise ApprovalUnavailableError.because("the question expired before it was answered", "Ask again.")


def _require_wanted(cancel: Cancel | None) -> None:
    if cancel is not None and cancel.is_set():
        raise ApprovalUnavailableError.because("the question was cancelled")
