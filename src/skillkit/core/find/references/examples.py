"""The arguments of a command in instructions -> whether they are only examples, which nobody should run.

92 of 100 commands in real instructions take arguments, and most of those are examples: ids, addresses, files and
texts that exist for the author alone. What may be one counts as one: a script that is not run costs a call, a script
that runs on made-up arguments costs trust, money or somebody's mail.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from skillkit.core.models.shell import Word

__all__ = ["has_examples", "varied"]

PLACEHOLDER = re.compile(
    r"<[^<>]*>|\{\{?[A-Za-z_][\w .|/-]*\}?\}|\.\.\.|…|\[[A-Za-z-][^\[\]]*\]|(?:^|/)path/(?:to|of)(?:/|$)|/absolute/path"
    r"|\byour|(?:^|[\s/])my[-_]\w|^my |\bx{3,}\b|\bchange-?me\b|\bplaceholder\b"
    r"|\babc-?123|\b(?:owner|user|username|org)/(?:repo|repository|project)\b|\b(?:key|name)=value\b",
    re.IGNORECASE,
)
# Names that the standard keeps for examples, and those that authors take as if it did.
ADDRESS_OF_NOBODY = re.compile(
    r"\bexample\.(?:com|org|net|edu)\b|\.(?:example|invalid|test)\b"
    r"|\b(?:my|your|some)?(?:site|domain|company|website|app|server|host|store|acme)\.(?:com|org|net|io)\b"
    r"|^[\w.+-]+@[\w-]+\.[\w.-]+$",
    re.IGNORECASE,
)
CAPITALS = re.compile(r"[A-Z][A-Z0-9]*(?:[-_ ][A-Z0-9]+)*")
STANDS_FOR_A_TEXT = re.compile(
    r"(?:(?:some|the|a|an|my|search|user|short|long) )?"
    r"(?:query|text|prompt|message|keyword|keywords|topic|title|name|description|question|input|value|content|string"
    r"|search terms?|terms?|filename|file|url|command)(?: here)?",
    re.IGNORECASE,
)
# What names one thing among many exists where the author is.
LONG_NUMBER = re.compile(r"[+#]?\d{5,}|\+?\d[\d ()-]{6,}\d")
SEQUENCE = re.compile(r"#?0?12345\d*")
HEXADECIMAL = re.compile(r"0x\w*|(?=[0-9a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}", re.IGNORECASE)
UNIQUE_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
LETTERS_AND_NUMBER = re.compile(r"(?=[\w-]*[A-Za-z])[\w-]*\d{3}[\w-]*", re.ASCII)
MEASURE_OR_STANDARD = re.compile(
    r"\d+(?:px|p|k|kb|mb|gb|ms|s|m|h|d|hz|khz|bit)|\d+x\d+|(?:sha|md|h|x|utf|iso|rfc|cp|aes|rsa|hs|rs|es)-?\d+",
    re.IGNORECASE,
)
DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].*)?")
NAMES_AN_ID = re.compile(
    r"(?:.*[-_])?(?i:ids?|uuid|uid|guid|key|token|secret|password|address|account|wallet|e?-?mail|phone|hash|sha|commit"
    r"|pr|issue|ticket|username|recipient)|.*[a-z](?:Ids?|Uuid|Key|Token|Secret|Address|Hash)"
)
FILE_NAME = re.compile(r".*\.(?:[A-Za-z][A-Za-z0-9]{0,5}|[a-z][a-z0-9]{6,11})")
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
ASSIGNED = re.compile(r"[A-Za-z]\w*=")
WORD = re.compile(r"\b[^\W\d_]{2,}\b")
SENTENCE_WORDS = 3
ID_CHARACTERS = 200  # no id is longer, and none is looked for in more
JSON_VALUES = 1_000  # of one argument; what has more is nobody's example to run


def has_examples(words: Sequence[Word], texts: Sequence[str], folders: Sequence[Path]) -> bool:
    """`texts` are the words with the skill's folder filled in; a file that is in none of `folders` is an example."""
    option = ""
    for word, text in zip(words, texts, strict=True):
        has_name = text.startswith("-") or ASSIGNED.match(text)
        named, equals, value = text.partition("=") if has_name else ("", "", text)
        if (
            not word.is_literal
            or _is_optional(text)
            or _is_example(value, named or option, folders, is_quoted=word.is_quoted)
        ):
            return True
        option = named if named and not equals else ""
    return False


def _is_optional(text: str) -> bool:
    """`[--limit 20]` is two words, and both say that they may be left out."""
    is_opened, is_closed = text.startswith("["), text.endswith("]")
    return (is_opened and _json_value(text) is None) or (is_closed and "[" not in text)


def _is_example(value: str, option: str, folders: Sequence[Path], *, is_quoted: bool) -> bool:
    if not value:
        return False
    found = _json_value(value)
    if found is not None:
        return any(_is_made_up(*each, folders, is_quoted=True) for each in _leaves(found, option.lstrip("-")))
    return _is_made_up(option.lstrip("-"), value, folders, is_quoted=is_quoted)


def _is_made_up(name: str, value: str, folders: Sequence[Path], *, is_quoted: bool) -> bool:
    """`name` is what the value is called: an option's name or a key's."""
    if name and NAMES_AN_ID.fullmatch(name[-ID_CHARACTERS:]):
        return True
    if PLACEHOLDER.search(value) or ADDRESS_OF_NOBODY.search(value) or CAPITALS.fullmatch(value):
        return True
    if is_quoted and (STANDS_FOR_A_TEXT.fullmatch(value) or _is_sentence(value)):
        return True
    return _is_id(value, is_named=bool(name)) or (_names_a_file(value) and not _exists(value, folders))


def _is_sentence(text: str) -> bool:
    """What the author would say; two words may be one name."""
    return sum(WORD.search(each) is not None for each in text.split()) >= SENTENCE_WORDS


def varied(calls: Sequence[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Of all calls, each a script with its words, those that stand there with other names in the same place as well.

    `volume "Living Room"` and `volume "Kitchen"` show what can be said; nobody wants both to happen.
    """
    said: dict[tuple[str, ...], set[str]] = {}
    for call in calls:
        for place, value in _named_values(call):
            said.setdefault(place, set()).add(value)
    return {call for call in calls if any(len(said[place]) > 1 for place, _ in _named_values(call))}


def _named_values(call: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Names and texts, each with its place: behind an option, or behind the same words."""
    script, *words = call
    for at, word in enumerate(words):
        if word.startswith("-") or not any(char.isupper() or char.isspace() for char in word):
            continue
        before = words[at - 1] if at else ""
        yield (script, before) if before.startswith("-") else call[: at + 1], word


def _is_id(value: str, *, is_named: bool) -> bool:
    """A number by itself may be an id; behind an option's name it is as likely an amount."""
    if len(value) > ID_CHARACTERS or MEASURE_OR_STANDARD.fullmatch(value):
        return False
    if SEQUENCE.fullmatch(value) or (not is_named and LONG_NUMBER.fullmatch(value)):
        return True
    if value.isdecimal():
        return False
    return any(shape.fullmatch(value) for shape in (HEXADECIMAL, UNIQUE_ID, LETTERS_AND_NUMBER, DAY))


def _names_a_file(text: str) -> bool:
    """An address is not a file, and neither is a sentence with a full stop."""
    if text.startswith("-") or ADDRESS.match(text) or any(char.isspace() for char in text) or "\0" in text:
        return False
    return "/" in text or "\\" in text or FILE_NAME.fullmatch(text) is not None


def _exists(path: str, folders: Sequence[Path]) -> bool:
    return any(os.path.exists(folder / path) for folder in folders)


def _json_value(text: str) -> Any:  # noqa: ANN401 - as different as JSON is
    """Of the kinds that look like examples, objects and lists; None for what is neither."""
    try:
        return json.loads(text) if text[0] in "{[" else None
    except (ValueError, RecursionError):
        return None


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401
    """Every text and number with the key it stands under; a key that is a placeholder by itself."""
    waiting, left = [(name, value)], JSON_VALUES
    while waiting:
        left -= 1
        if left < 0:
            yield "", "..."
            return
        key, found = waiting.pop()
        if isinstance(found, dict):
            waiting += found.items()
            yield from (("", each) for each in found if PLACEHOLDER.search(each))
        elif isinstance(found, list):
            waiting += [(key, each) for each in found]
        elif isinstance(found, str) or (isinstance(found, int) and not isinstance(found, bool)):
            yield key, str(found)
