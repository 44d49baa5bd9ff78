"""What programs that use skillkit need for their own tests: answers from a list or at once, a skill folder."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from skillkit.core.ask.haste import lowered_to
from skillkit.core.exceptions import ApprovalUnavailableError, ConfigurationError
from skillkit.core.values.questions import Cancel, OptionAnswer, OptionRequest

__all__ = ["ScriptedApprover", "quick_forms", "skill_folder"]


def quick_forms(seconds: float = 0.0) -> AbstractContextManager[None]:
    """Inside, an MCP client's form counts as answered by a person from so many seconds on, and not only after 0.4."""
    return lowered_to(seconds)


class ScriptedApprover:
    """Gives these answers in this order and keeps what it was asked; without answers nobody is there."""

    channel = "scripted"

    def __init__(self, *option_ids: str) -> None:
        self.requests: list[OptionRequest] = []
        self._left = list(option_ids)
        self._lock = threading.Lock()

    def ask(self, request: OptionRequest, cancel: Cancel | None = None) -> OptionAnswer:  # noqa: ARG002
        with self._lock:
            self.requests.append(request)
            if not self._left:
                raise ApprovalUnavailableError.because("the scripted approver has no answer left", "Give it one more.")
            option_id = self._left.pop(0)
        offered = [option.id for option in request.options]
        if option_id not in offered:
            raise ConfigurationError(
                f"{option_id!r} is no option of this request. Script one of: {', '.join(offered)}."
            )
        return OptionAnswer(option_id, self.channel, time.time(), request.id)


def skill_folder(
    parent: str | Path,
    name: str,
    files: Mapping[str, str] | None = None,
    *,
    description: str = "A skill for tests.",
    body: str = "Do it.\n",
) -> Path:
    """Makes `parent/name` with a SKILL.md and these files, by relative path; gives its path."""
    folder = Path(parent) / name
    texts = {"SKILL.md": f"---\nname: {name}\ndescription: {json.dumps(description)}\n---\n{body}", **(files or {})}
    for relative, text in texts.items():
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder
