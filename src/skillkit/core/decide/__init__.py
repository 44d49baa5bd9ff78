"""May it run? Rules that each give a decision and a reason; the strictest wins, and a person answers what is asked."""

from __future__ import annotations

from skillkit.core.decide.approval import approval_request, joint_request
from skillkit.core.decide.rules import after_change, after_widening, decide, decided
from skillkit.core.decide.trust import StandingApprovals

__all__ = [
    "StandingApprovals",
    "after_change",
    "after_widening",
    "approval_request",
    "decide",
    "decided",
    "joint_request",
]
