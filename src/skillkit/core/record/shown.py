"""Fields of a record -> the same masked and cut: the one way into both sinks, whoever made them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

from skillkit.core.record.redaction import MASK, redacted_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.record.chain import JSON

__all__ = ["TEXT_CHARACTERS", "shown_fields", "shown_text"]

TEXT_CHARACTERS = 1_000
NAME_CHARACTERS = 100
ITEMS = 100
LEVELS = 4
RECORD_CHARACTERS = 20_000

# A secret that the window's end cuts short may not be known as one: what is shown ends a margin earlier.
_WINDOW_CHARACTERS = 4_096
_MARGIN_CHARACTERS = 1_024
_CUT = "…"
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
# What identifies content is no secret, whatever it looks like.
_DIGEST = re.compile(r"[0-9a-f]{64}")
_DIGEST_NAMES = frozenset(("digest", "arguments_digest", "stdin_digest"))
# Short texts that are shown as they are: most records hold the same ones again and again.
_SHORT_CHARACTERS = 200
_REMEMBERED = 1_024
_unchanged: set[str] = set()


def shown_fields(fields: dict[str, JSON]) -> dict[str, JSON]:
    """Exact fields as they may be kept: a text of a thousand characters, a hundred items, four levels at most."""
    return _Room(RECORD_CHARACTERS).mapping(fields, LEVELS)


def shown_text(text: str, limit: int = TEXT_CHARACTERS) -> str:
    """Without its secrets, at most `limit` characters, and only characters that every sink can write."""
    if text in _unchanged and len(text) <= limit:
        return text
    window = text[:_WINDOW_CHARACTERS]
    if not window.isascii():
        window = window.encode("utf-8", "backslashreplace").decode("utf-8")
    shown = redacted_text(window)
    if len(text) > _WINDOW_CHARACTERS:
        return _cut(shown, max(1, min(limit, len(shown) - _MARGIN_CHARACTERS)))
    if shown == text and len(text) <= _SHORT_CHARACTERS:
        _remember(text)
    return shown if len(shown) <= limit else _cut(shown, limit)


class _Room:
    """How much of a record is still free."""

    def __init__(self, characters: int) -> None:
        self.characters = characters

    def mapping(self, fields: Mapping[str, JSON], levels: int) -> dict[str, JSON]:
        shown: dict[str, JSON] = {}
        for name, value in islice(fields.items(), ITEMS):
            kept = name if name in _unchanged else shown_text(name, NAME_CHARACTERS)
            if value is None or value is True or value is False or self._holds_known(value):
                shown[kept] = value
                continue
            is_digest = name in _DIGEST_NAMES and isinstance(value, str) and _DIGEST.fullmatch(value)
            shown[kept] = value if is_digest else self.value(value, levels)
        return shown

    def _holds_known(self, value: JSON) -> bool:
        """A short text that was looked at before; it counts as any other."""
        if type(value) is not str or value not in _unchanged or self.characters < _SHORT_CHARACTERS:
            return False
        self.characters -= len(value)
        return True

    def value(self, value: JSON, levels: int) -> JSON:
        if isinstance(value, str):
            shown = shown_text(value, max(1, min(TEXT_CHARACTERS, self.characters)))
            self.characters -= len(shown)
            return shown
        if value is None or isinstance(value, int):
            return value if value is None or _SMALLEST <= value <= _LARGEST else "<int>"
        if levels == 0:
            return _CUT
        if isinstance(value, Mapping):
            return self.mapping(value, levels - 1)
        items = [item if self._holds_known(item) else self.value(item, levels - 1) for item in value[:ITEMS]]
        return items if len(value) <= ITEMS else [*items, _CUT]


def _remember(text: str) -> None:
    if len(_unchanged) >= _REMEMBERED:
        _unchanged.clear()
    _unchanged.add(text)


def _cut(text: str, limit: int) -> str:
    """At most `limit` characters, with a sign of the cut, and no mask cut open."""
    end = limit - 1
    mask = text.rfind(MASK, max(0, end - len(MASK) + 1), end + len(MASK) - 1)
    return text[: mask if 0 <= mask < end else end] + _CUT
