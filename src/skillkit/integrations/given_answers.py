"""An answer that a framework's own person gave -> the answer to one question, good for as much as it was meant for.

Theory of operation. A framework that asks its person by its own means calls `SkillFunctions.question` first, shows the
question, and makes the call with the answer. The question's id is a hash of all that it states; the call makes the
question anew and compares. So an answer outlives the process in which it was asked for, and is none for a skill that
changed meanwhile. An option's id alone is taken for the question that was asked last about the same call, here; after
a restart the question's id has to come with it. A yes for one run is used up by it until the question is asked again.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from skillkit.core.values.questions import OptionAnswer, OptionRequest

__all__ = ["CHANNEL", "GivenAnswers"]

CHANNEL = "framework"
REMEMBERED = 10_000


class GivenAnswers:
    """Which questions were asked about which calls, and which of them have been answered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: dict[str, str] = {}
        self._answered_at: dict[str, float] = {}

    def remember(self, request: OptionRequest, call: str) -> None:
        with self._lock:
            _put(self._asked, call, request.id)
            self._answered_at.pop(request.id, None)

    def answer(self, given: OptionAnswer | str, question_id: str, call: str) -> OptionAnswer:
        """Without a question that is known, an answer to none."""
        with self._lock:
            asked = question_id or self._asked.get(call, "")
            if isinstance(given, OptionAnswer):
                return replace(given, request_id=given.request_id or asked, channel=given.channel or CHANNEL)
            # Handed in twice it is the same one, which the flow knows by its time.
            answered_at = self._answered_at.get(asked, time.time())
            _put(self._answered_at, asked, answered_at)
        return OptionAnswer(given, CHANNEL, answered_at, asked)

    @staticmethod
    def call(name: str, arguments: Mapping[str, Any], tool_use_id: str | None) -> str:
        """One text for the same call, however its arguments are ordered."""
        return json.dumps([name, arguments, tool_use_id], sort_keys=True, default=repr)


def _put(kept: dict[str, Any], key: str, value: Any) -> None:  # noqa: ANN401 - whatever is kept
    """As the newest; the oldest of too many is forgotten."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > REMEMBERED:
        del kept[next(iter(kept))]
