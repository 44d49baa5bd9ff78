"""A file's text -> what a reader does not see or takes for something else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from skillkit.core.decide.risk.findings import Finding, numbered, shown

__all__ = ["hidden_findings"]

NOT_ASCII = re.compile(r"[^\t\n\r\f\x20-\x7e]")
DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")
# Joiners and marks belong to many scripts and to emoji; between plain letters they only hide something.
INVISIBLE = re.compile(
    "[\u200b\u2060-\u2064\u180e\u3164\u115f\u1160\uffa0\u2800]|(?<=[\x21-\x7e])[\u200c\u200d\u200e\u200f\u00ad\ufeff](?=[\x21-\x7e])"
)
TAGS = re.compile("(?<!\U0001f3f4)(?<![\U000e0020-\U000e007e])[\U000e0000-\U000e007f]{1,2000}")
SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3,2000}")
CONTROLS = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x84\x86-\x9f]")
FAR_RIGHT = re.compile(r"(?<=[^\s]) {120,}(?=[^\s])")
WORD = re.compile(r"\w+")
LATIN = re.compile("[A-Za-z]")
# Cyrillic, Armenian, Cherokee; of Greek only what looks Latin, for formulas use the rest.
TWIN = re.compile(
    "[\u0400-\u052f\u0531-\u0587\u13a0-\u13ff\u0391\u0392\u0395-\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf]"
)
FOLDED = re.compile("[\uff21-\uff5a\U0001d400-\U0001d7ff]")
ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget) (?:all|any|previous|prior|the|your)\b"
    r"|\bdo not (?:tell|mention|reveal|show|inform)\b|\bdon't (?:tell|mention|reveal|show)\b"
    r"|\bwithout (?:telling|asking|informing)\b|\bsecretly\b|\bsilently\b"
    r"|\b(?:curl|wget) |\bbase64\b|\bsystem prompt\b",
    re.IGNORECASE,
)
LONGEST_WORD = 200


def hidden_findings(text: str, *, is_code: bool) -> Iterator[Finding]:
    """Bidirectional and zero-width characters, tags, controls, look-alike letters, code far to the right."""
    for number, found in numbered(FAR_RIGHT, text):
        yield Finding("hidden_text", f"Text stands far to the right, behind {len(found[0]):,} spaces.", number)
    if not is_code:
        yield from _hidden_orders(text)
    first = NOT_ASCII.search(text)
    if first is None:
        return
    at = text.count("\n", 0, first.start())
    start = text.rfind("\n", 0, first.start()) + 1
    for number, line in enumerate(text[start:].split("\n"), at + 1):
        if NOT_ASCII.search(line):
            yield from (Finding("hidden_text", message, number) for message in _messages(line, is_code=is_code))


def _messages(line: str, *, is_code: bool) -> Iterator[str]:
    for pattern, sentence in (
        (DIRECTION, "Holds {}, which changes the order in which text is shown."),
        (INVISIBLE, "Holds the invisible character {}."),
        (CONTROLS, "Holds the control character {}."),
    ):
        found = pattern.search(line)
        if found:
            yield sentence.format(f"U+{ord(found[0]):04X}")
    tags = TAGS.search(line)
    if tags:
        words = "".join(chr(ord(each) - 0xE0000) for each in tags[0])
        yield f"Holds invisible tag characters that say {shown(words)!r}."
    if SELECTORS.search(line):
        yield "Holds a run of invisible selectors, which can carry a hidden text."
    yield from _look_alikes(line) if is_code else ()


def _look_alikes(line: str) -> Iterator[str]:
    for word in WORD.findall(line):
        if word.isascii() or len(word) > LONGEST_WORD:
            continue
        if LATIN.search(word) and TWIN.search(word):
            yield f"The word {shown(word)!r} mixes Latin letters with others that look the same."
        elif FOLDED.search(word) and unicodedata.normalize("NFKC", word).isidentifier():
            yield f"The word {shown(word)!r} stands for {unicodedata.normalize('NFKC', word)!r}."


def _hidden_orders(text: str) -> Iterator[Finding]:
    """In comments of a page, which who reads it does not see."""
    end = 0
    while (start := text.find("<!--", end)) >= 0 and (end := text.find("-->", start)) >= 0:
        order = ORDERS.search(text, start, end)
        if order:
            message = f"A comment that a reader of the page does not see holds {shown(order[0])!r}."
            yield Finding("hidden_text", message, text.count("\n", 0, start) + 1)
