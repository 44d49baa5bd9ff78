"""A request -> yes, once: the person said so beforehand, with `--yes` on the command line."""

from __future__ import annotations

import time

from skillkit.core.exceptions import ApprovalUnavailableError
from skillkit.core.questions import Cancel, OptionAnswer, OptionRequest

__all__ = ["FlagApprover"]

ANSWER = "yes_once"


class FlagApprover:
    """Approves each run by itself and leaves nothing behind."""

    channel = "flag"

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:  # noqa: ARG002
        if ANSWER not in [option.id for option in request.options]:
            reason = f"the request does not offer {ANSWER!r}"
            raise ApprovalUnavailableError(f"Not approved: {reason}. Ask a person.", reasons=[reason])
        return OptionAnswer(ANSWER, self.channel, time.time(), request.id)
