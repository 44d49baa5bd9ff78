"""An argument in an example -> whether it stands for something that only the user can name."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from skillkit.core.find.references.shell_words import Word

__all__ = ["is_example"]

# 92 of 100 commands in real instructions take arguments, and most of those are examples. What may be one counts as
# one: a script that is not run costs a call, a script that runs on made-up arguments costs trust.
EXAMPLE = re.compile(
    r"<[^<>]*>|\{\{?[A-Za-z_][\w .|/-]*\}?\}|\.\.\.|…"
    r"|(?:^|/)path/(?:to|of)(?:/|$)|/absolute/path|\byour(?:[-_ ]|$)|\bx{3,}\b|\bexample\.(?:com|org|net)\b"
    r"|\[[A-Za-z-][^\[\]]*\]",
    re.IGNORECASE,
)
CAPITALS = re.compile(r"[A-Z][A-Z0-9]*(?:[-_ ][A-Z0-9]+)*")
STANDS_FOR_A_TEXT = re.compile(
    r"(?:(?:some|the|a|an|my|search|user|short|long) )?"
    r"(?:query|text|prompt|message|keyword|keywords|topic|title|name|description|question|input|value|content|string"
    r"|search terms?|terms?|filename|file|url|command)(?: here)?",
    re.IGNORECASE,
)
FILE_NAME = re.compile(r".*\.[A-Za-z][A-Za-z0-9]{0,5}")
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
FEWEST_CAPITALS = 2


def is_example(word: Word, text: str, base: Path) -> bool:
    """`text` is the word with the skill's folder filled in; a file that the skill does not have is an example."""
    if not word.is_literal:
        return True
    value = text.partition("=")[2] if text.startswith("-") and "=" in text else text
    if not value or is_json(value):
        return False
    if EXAMPLE.search(value) or is_in_capitals(value):
        return True
    if word.is_quoted and STANDS_FOR_A_TEXT.fullmatch(value):
        return True
    return names_a_file(value) and not os.path.exists(base / value)


def is_in_capitals(text: str) -> bool:
    return len(text) >= FEWEST_CAPITALS and CAPITALS.fullmatch(text) is not None


def names_a_file(text: str) -> bool:
    """An address is no file, and neither is a sentence with a full stop."""
    if text.startswith("-") or ADDRESS.match(text) or any(char.isspace() for char in text) or "\0" in text:
        return False
    return "/" in text or "\\" in text or FILE_NAME.fullmatch(text) is not None


def is_json(text: str) -> bool:
    """Of the kinds that look like examples: objects and lists."""
    if text[0] not in "{[":
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
