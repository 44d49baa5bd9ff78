"""May it run? Rules that each give a decision and a reason; the strictest wins."""

from __future__ import annotations

from skillkit.core.decide.rules import NO_SCRIPTS, after_change, after_widening, after_yes, decide, under_approval

__all__ = ["NO_SCRIPTS", "after_change", "after_widening", "after_yes", "decide", "under_approval"]
