"""A request -> the first of several ways to ask that reaches a person."""

from __future__ import annotations

from skillkit.core.exceptions import ApprovalUnavailableError
from skillkit.core.questions import Approver, Cancel, OptionAnswer, OptionRequest

__all__ = ["ChainApprover"]


class ChainApprover:
    """Goes on only when a way is unavailable: whatever a person says is final."""

    def __init__(self, *approvers: Approver) -> None:
        self.approvers = approvers

    @property
    def channel(self) -> str:
        return ", ".join(approver.channel for approver in self.approvers)

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:
        reasons = []
        for approver in self.approvers:
            if cancel is not None and cancel.is_set():
                reasons.append("the question was cancelled")
                break
            try:
                return approver.ask(request, cancel)
            except ApprovalUnavailableError as error:
                reasons.append(f"{approver.channel}: {'; '.join(error.reasons) or error}")
        told = "; ".join(reasons) or "there is no way to ask"
        raise ApprovalUnavailableError(f"{request.title} Not approved: {told}.", reasons=reasons or [told])
