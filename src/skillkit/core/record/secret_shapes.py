"""A text -> the same without what is a secret by its shape, whatever stands around it.

There are hundreds of shapes, and most texts hold none. So only the beginnings are looked for; what has to follow one
is compiled when the first such beginning is met.
"""

from __future__ import annotations

import re
from functools import cache

from skillkit.core.record.secret_tables import PREFIXED, STRUCTURED, UNNAMED, Prefixed

__all__ = ["masked_shapes"]

_DIGIT_WITHIN = 60
_APART = r"(?<![A-Za-z0-9])"
_BY_FIRST: dict[str, list[tuple[str, Prefixed]]] = {}
for _row in PREFIXED:
    for _prefix in _row.prefixes.split():
        _BY_FIRST.setdefault(_prefix[0], []).append((_prefix, _row))
# The first two characters decide almost everywhere; the rest is compared as text.
_BEGINNING = re.compile(
    _APART
    + "(?:"
    + "|".join(
        f"{re.escape(first)}[{''.join(sorted({re.escape(prefix[1]) for prefix, _ in rows}))}]"
        for first, rows in sorted(_BY_FIRST.items())
    )
    + ")"
)
# Every key has a run of such characters; most arguments have none.
_RUN = re.compile(r"[A-Za-z0-9_%-]{10}")
_LONG = re.compile(r"[A-Za-z0-9_-]{20}")


def masked_shapes(text: str, mask: str) -> str:
    if _RUN.search(text) is None:
        return text
    text = _masked_prefixed(text, mask)
    for hint, pattern in STRUCTURED:
        if hint in text:
            text = re.compile(_APART + pattern).sub(mask, text)
    if _LONG.search(text) is not None:
        text = re.compile(f"{_APART}(?:{'|'.join(UNNAMED)})").sub(mask, text)
    return text


def _masked_prefixed(text: str, mask: str) -> str:
    kept: list[str] = []
    done = position = 0
    while (found := _BEGINNING.search(text, position)) is not None:
        position = found.start()
        end = _end_of_key(text, position)
        if end:
            kept += text[done:position], mask
            done = position = end
        else:
            position += 1
    return "".join((*kept, text[done:])) if kept else text


def _end_of_key(text: str, start: int) -> int:
    """Where the key ends that begins here; 0 when none does."""
    for prefix, row in _BY_FIRST[text[start]]:
        if text.startswith(prefix, start):
            rest = _rest_of(row).match(text, start + len(prefix))
            if rest is not None:
                return rest.end()
    return 0


@cache
def _rest_of(row: Prefixed) -> re.Pattern[str]:
    digit = rf"(?=[{row.characters}]{{0,{_DIGIT_WITHIN}}}\d)" if row.has_digit else ""
    # What follows a dot belongs to a key that has parts.
    return re.compile(rf"{digit}[{row.characters}]{{{row.least},}}+(?:\.[A-Za-z0-9_=-]{{6,}}+)*+")
