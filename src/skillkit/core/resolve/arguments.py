"""What a caller passes -> bytes for stdin and words for the command line, within limits."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from skillkit.core.exceptions import ArgumentSerializationError, ArgumentSizeError
from skillkit.core.paths import is_sayable

__all__ = ["ARGUMENTS_LIMIT_BYTES", "received", "require_sayable", "stdin_bytes", "words"]

ARGUMENTS_LIMIT_BYTES = 10_000_000


def stdin_bytes(arguments: object, stdin: str | bytes | None) -> bytes:
    """The arguments as JSON, or the given text as it is; nothing when there is neither."""
    if arguments is not None and stdin is not None:
        raise ArgumentSerializationError("A script gets 'arguments' or 'stdin', not both. Leave one out.")
    if stdin is not None:
        content = text_bytes(stdin) if isinstance(stdin, str) else stdin
        if not isinstance(content, bytes):
            raise ArgumentSerializationError(f"'stdin' is {type(stdin).__name__}; give it as a text or as bytes.")
    elif arguments is None:
        return b""
    else:
        content = json_bytes(arguments)
    if len(content) > ARGUMENTS_LIMIT_BYTES:
        raise ArgumentSizeError(
            f"The arguments have {len(content)} bytes; the limit is {ARGUMENTS_LIMIT_BYTES}. "
            "Put large input into a file and pass its path.",
            size=len(content),
            limit=ARGUMENTS_LIMIT_BYTES,
        )
    return content


def received(arguments: object, stdin: bytes) -> object:
    """The arguments as the script gets them: what the caller does with its own afterwards changes nothing here."""
    try:
        return None if arguments is None else json.loads(stdin, object_pairs_hook=without_doubles)
    except (ValueError, RecursionError) as error:
        raise unwritable(error) from error


def without_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """As 1 and "1" become one name: of two values, a person would be shown one, and the script might take the other."""
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("a name stands twice in one map")
    return content


def json_bytes(arguments: object) -> bytes:
    try:
        return json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(arguments, allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise unwritable(error) from error


def unwritable(error: Exception) -> ArgumentSerializationError:
    return ArgumentSerializationError(
        f"The arguments cannot be written as JSON: {error}. Use text, numbers, lists and maps only."
    )


def text_bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ArgumentSerializationError(
            f"The text holds half a character at {error.start}, which UTF-8 cannot say. Remove it or pass bytes."
        ) from error


def require_sayable(**names: str | os.PathLike[str] | None) -> None:
    """Names that a script is told, or is started with: the system must be able to take them."""
    for what, name in names.items():
        if name is not None and not is_sayable(name):
            raise ArgumentSerializationError(
                f"The {what.replace('_', ' ')} {str(name)!r} is too long, or holds a NUL or half a character, "
                "which no program can receive. Rename it."
            )


def words(argv: Iterable[str]) -> tuple[str, ...]:
    """Command-line arguments: texts without NUL, as they are; no shell sees them."""
    if argv == ():
        return ()
    if isinstance(argv, str | bytes) or not isinstance(argv, Iterable):
        raise ArgumentSerializationError("'argv' must be a list of texts, nothing else. Split a text into words.")
    given = tuple(argv)
    for number, word in enumerate(given, start=1):
        # A word may be a secret and errors are recorded: they say which one it is, not what it says.
        if not isinstance(word, str | Path):
            raise ArgumentSerializationError(
                f"Word {number} of 'argv' is {type(word).__name__} and not a text. Convert it first."
            )
        if b"\0" in text_bytes(str(word)):
            raise ArgumentSerializationError(
                f"Word {number} of 'argv' holds a NUL, which no program can receive. Remove it."
            )
    return tuple(str(word) for word in given)
