"""What happens while a model answers: text, outcomes of its commands and tool calls, and notes of our own."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from typing import Any

from skillkit.core.decide import NO_SCRIPTS
from skillkit.core.values.text import visible
from skillkit.integrations.inline.commands import CommandOutcome
from skillkit.integrations.inline.syntax import Text
from skillkit.integrations.tool_schemas import parse_arguments
from skillkit.present.terminal import cut
from skillkit.present.tool_result import STATUS_WORDS

__all__ = ["REFUSALS", "Event", "Note", "ToolOutcome", "with_own_remedy"]

START_WITH = "Scripts may not run in this chat: start it with --allow-scripts."
NAME_COLUMNS = 100
DETAIL_COLUMNS = 240
REFUSALS = ("refused", "declined", "approval_unavailable", "waiting")
"""Statuses that say: somebody or something did not let it run."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What became of a tool call; `arguments` as the model wrote them."""

    tool: str
    arguments: str
    status: str
    detail: str = ""
    seconds: float | None = None

    @property
    def line(self) -> str:
        """For a person, on one line, without anything that a terminal would obey."""
        name = cut(visible(f"{self.tool} {self._argument_words()}".strip()), NAME_COLUMNS)
        time = "" if self.seconds is None else f", {self.seconds:.1f} s"
        why = f": {cut(visible(self._reason()), DETAIL_COLUMNS)}" if self.detail else ""
        return f"[{name}: {STATUS_WORDS.get(self.status, self.status)}{time}{why}]"

    @property
    def data(self) -> dict[str, Any]:
        """As a program reads it: nothing cut, nothing put together."""
        given = parse_arguments(self.arguments)
        told = {"tool": self.tool, "arguments": self.arguments if given is None else dict(given)}
        return told | ({} if self.seconds is None else {"seconds": round(self.seconds, 3)})

    def _argument_words(self) -> str:
        given = parse_arguments(self.arguments)
        if given is None:
            return self.arguments
        return " ".join(_as_words(value) for value in given.values() if value not in (None, []))

    def _reason(self) -> str:
        """A refusal is told to the model as a structure; a person reads its message."""
        structure = parse_arguments(self.detail)
        message = (structure or {}).get("message")
        return message if isinstance(message, str) else self.detail


def _as_words(value: object) -> str:
    """Words as words, anything else as JSON."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return shlex.join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Note:
    """Something that the chat itself has to say."""

    text: str


Event = Text | CommandOutcome | ToolOutcome | Note


def with_own_remedy(event: Event) -> Event:
    """Where only the chat's own option is missing, its name is the remedy and not that of a policy's field."""
    if isinstance(event, CommandOutcome | ToolOutcome):
        return replace(event, detail=event.detail.replace(NO_SCRIPTS, START_WITH))
    return event
