"""A skill's files -> risk flags for the person who is asked; no rule may read them."""

from __future__ import annotations

from skillkit.core.decide.risk.flags import risk_flags

__all__ = ["risk_flags"]
