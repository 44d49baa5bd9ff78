"""Commands in a model's text: `%{...}` runs for its effect, `!{...}` for its output."""

from __future__ import annotations

from skillkit.integrations.inline.commands import CommandOutcome
from skillkit.integrations.inline.loop import Budget, LoopResult, run_rounds
from skillkit.integrations.inline.processor import InlineProcessor, Shown, shown_text
from skillkit.integrations.inline.syntax import Command, InlineParser, Text

__all__ = [
    "Budget",
    "Command",
    "CommandOutcome",
    "InlineParser",
    "InlineProcessor",
    "LoopResult",
    "Shown",
    "Text",
    "run_rounds",
    "shown_text",
]
