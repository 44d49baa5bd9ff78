"""What a caller wants to ask -> a request that fits into the store, or an error that says which limit it breaks."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.questions import Option, OptionRequest

__all__ = ["OptionLike", "options_from", "require_channel", "require_lifetime", "require_storable", "written_context"]

OptionLike = Option | tuple[str, str] | str

TITLE_CHARACTERS = 1_000
MESSAGE_CHARACTERS = 20_000
NAME_CHARACTERS = 256
CONTEXT_CHARACTERS = 4_000_000
MOST_OPTIONS = 50
LONGEST_LIFE_SECONDS = 30 * 86_400


def options_from(given: Iterable[OptionLike]) -> tuple[Option, ...]:
    """A text stands for an option whose label is its id."""
    if isinstance(given, str):
        raise ConfigurationError(f"Options are a list; {given!r} is one text. Write [{given!r}].")
    return tuple(option_from(each) for each in given)


def option_from(given: object) -> Option:
    match given:
        case Option():
            return given
        case str():
            return Option(given, given)
        case (str() as name, str() as label):
            return Option(name, label)
        case _:
            raise ConfigurationError(f"An option is an Option, an (id, label) pair or a text; {given!r} is none.")


def require_storable(request: OptionRequest) -> None:
    """Nothing is cut: a person must see the whole of what they answer."""
    require_name(request.id, "A request's id")
    require_text(request.title, "A request's title", TITLE_CHARACTERS)
    require_text(request.message, "A request's message", MESSAGE_CHARACTERS, may_be_empty=True)
    require_text(request.session_id or "", "A session's id", NAME_CHARACTERS, may_be_empty=True)
    if not 0 < len(request.options) <= MOST_OPTIONS:
        raise ConfigurationError(f"A request has 1 to {MOST_OPTIONS} options, not {len(request.options)}.")
    for option in request.options:
        require_name(option.id, "An option's id")
        require_text(option.label, "An option's label", NAME_CHARACTERS)
    names = [option.id for option in request.options]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"Each option has an id of its own; these do not: {', '.join(names)}.")


def require_text(text: object, what: str, limit: int, *, may_be_empty: bool = False) -> None:
    if not isinstance(text, str):
        raise ConfigurationError(f"{what} is a text; {text!r} is none.")
    if not text and not may_be_empty:
        raise ConfigurationError(f"{what} must not be empty.")
    if len(text) > limit:
        raise ConfigurationError(f"{what} has at most {limit} characters, not {len(text)}. Shorten it.")


def require_name(text: object, what: str) -> None:
    require_text(text, what, NAME_CHARACTERS)
    if not str(text).isprintable():
        raise ConfigurationError(f"{what} has only characters that can be seen; {text!r} has others.")


def require_channel(channel: str) -> None:
    require_name(channel, "A channel's name")


def require_lifetime(seconds: object) -> None:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool) and math.isfinite(seconds)
    if not is_number or not 0 < seconds <= LONGEST_LIFE_SECONDS:  # type: ignore[operator]  # a number by now
        raise ConfigurationError(
            f"A request expires after a number of seconds above 0 and at most {LONGEST_LIFE_SECONDS}; "
            f"{seconds!r} is not."
        )


def written_context(context: Mapping[str, Any]) -> str:
    if not isinstance(context, Mapping):
        raise ConfigurationError(f"A request's context is a mapping; {type(context).__name__} is none.")
    try:
        text = json.dumps(dict(context), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"A request's context must be JSON: {error}.") from error
    if len(text) > CONTEXT_CHARACTERS:
        raise ConfigurationError(
            f"A request's context has at most {CONTEXT_CHARACTERS} characters as JSON, not {len(text)}. Shorten it."
        )
    return text
