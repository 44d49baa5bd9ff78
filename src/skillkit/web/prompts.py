"""A stored request -> what of it can be shown; a prompt that is not as we write it is named, never guessed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.questions import Option, OptionRequest, Prompt

__all__ = ["NO", "Shown", "fingerprint", "options_of", "shown_request"]

NO = "no"
"""The option that approves nothing."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The prompt of a request about scripts; or neither, for a request about something else."""

    prompt: Prompt | None = None
    problem: str = ""


def shown_request(request: OptionRequest) -> Shown:
    try:
        prompt = Prompt.from_context(request.context)
        if prompt is not None:
            require_texts(prompt)
    except (ConfigurationError, AttributeError, TypeError, ValueError) as error:
        return Shown(problem=str(error) or "Its prompt cannot be read.")
    return Shown(prompt)


def options_of(request: OptionRequest, shown: Shown) -> tuple[Option, ...]:
    """Nobody says yes to what cannot be shown."""
    return tuple(option for option in request.options if not shown.problem or option.id == NO)


def require_texts(prompt: Prompt) -> None:
    """Whoever writes to the store may write anything; a view shows text."""
    flags = [text for risk in prompt.risks for text in (risk.kind, risk.message, risk.path)]
    changes = [text for change in prompt.changes or () for text in (change.kind, change.path, change.diff)]
    commands = [text for each in prompt.commands for text in (each.script, *each.argv, each.stdin, each.source)]
    known = [prompt.skill, prompt.origin, *prompt.reasons, *prompt.walls, prompt.digest, prompt.approved]
    numbers = [*(risk.line for risk in prompt.risks), *(change.unseen for change in prompt.changes or ())]
    if not prompt.commands:
        raise ConfigurationError("A request's prompt names nothing that would run. Ask again with this version.")
    is_text = all(isinstance(text, str) for text in (*flags, *changes, *commands, *known))
    if not is_text or not all(isinstance(number, int) for number in numbers):
        raise ConfigurationError("A request's prompt holds something that is no text. Ask again with this version.")


def fingerprint(request: OptionRequest) -> str:
    """Of one question, so that an answer is for that and for nothing asked later under the same id.

    What a request carries does not change while it waits, so the moment of asking stands for it.
    """
    options = [[option.id, option.label] for option in request.options]
    shown = [request.id, request.title, request.message, options, request.session_id, request.created_at]
    return sha256(json.dumps(shown).encode()).hexdigest()
