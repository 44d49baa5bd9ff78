"""May it run? Rules that each give a decision and a reason; the strictest wins."""

from __future__ import annotations

from skillkit.core.decide.approval import approval_request
from skillkit.core.decide.rules import Ruling, Verdict, decide, decided

__all__ = ["Ruling", "Verdict", "approval_request", "decide", "decided"]
