"""What happens while a model answers: text, outcomes of its commands and tool calls, and notes of our own."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass

from skillkit.integrations.inline import Shown
from skillkit.integrations.tool_schemas import parsed_arguments
from skillkit.present.terminal import cut, visible

__all__ = ["REFUSALS", "Event", "Note", "ToolOutcome"]

NAME_COLUMNS = 100
DETAIL_COLUMNS = 240
REFUSALS = ("refused", "declined", "approval_unavailable")
"""Statuses that say: somebody or something did not let it run."""
SAID = {
    "ok": "done",
    "timeout": "stopped, its time was over",
    "declined": "not approved",
    "approval_unavailable": "not run, nobody could approve it",
    "not_found": "not found",
    "invalid_arguments": "not run, its arguments do not fit",
    "needs_arguments": "not run, it needs arguments",
    "refused": "not run",
}


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
        name = cut(visible(f"{self.tool} {self._told_arguments()}".strip()), NAME_COLUMNS)
        time = "" if self.seconds is None else f", {self.seconds:.1f} s"
        why = f": {cut(visible(self._reason()), DETAIL_COLUMNS)}" if self.detail else ""
        return f"[{name}: {SAID.get(self.status, self.status)}{time}{why}]"

    def _told_arguments(self) -> str:
        given = parsed_arguments(self.arguments)
        if given is None:
            return self.arguments
        return " ".join(told(value) for value in given.values() if value not in (None, []))

    def _reason(self) -> str:
        """A refusal is told to the model as a structure; a person reads its message."""
        structure = parsed_arguments(self.detail)
        message = (structure or {}).get("message")
        return message if isinstance(message, str) else self.detail


def told(value: object) -> str:
    """Words as words, anything else as JSON."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return shlex.join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Note:
    """Something that the chat itself has to say."""

    text: str


Event = Shown | ToolOutcome | Note
