"""A file's text -> what no person can read in it: encoded blobs, escaped runs, endless lines."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from skillkit.core.decide.risk.findings import Finding, numbered, shown

__all__ = ["decoded_preview", "encoded_findings"]

# The look behind makes each run start once, so that a text of one letter takes one look at each.
BLOB = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{400,}={0,2}")
ESCAPES = re.compile(r"(?<!\\)(?:\\x[0-9a-fA-F]{2}|\\u00[0-9a-fA-F]{2}){24,}")
PICTURE = re.compile(r"(?:data:(?:image|font|audio|video)/[\w.+-]{1,40}|application/(?:x-)?font[\w-]{0,20});base64,\Z")
BEFORE_BLOB = 100  # characters
LONG_LINE = 5_000
FEW_CHARACTERS = 12
PREVIEW_BYTES = 300


def encoded_findings(text: str) -> Iterator[Finding]:
    for number, blob in numbered(BLOB, text):
        if not PICTURE.search(text[max(0, blob.start() - BEFORE_BLOB) : blob.start()]) and not is_plain_run(blob[0]):
            message = f"Holds an encoded text of {len(blob[0]):,} characters{decoded_preview(blob[0])}."
            yield Finding("obfuscation", message, number)
    for number, escapes in numbered(ESCAPES, text):
        count = escapes[0].count("\\")
        yield Finding("obfuscation", f"Writes {count:,} characters as escapes that cannot be read.", number)
    longest = max(text.split("\n"), key=len)
    if len(longest) > LONG_LINE:
        message = f"Has a line of {len(longest):,} characters, which no person can read."
        yield Finding("obfuscation", message, text.count("\n", 0, text.index(longest)) + 1)


def is_plain_run(blob: str) -> bool:
    """A ruler, a path or a row of one letter: nothing is encoded in few different characters."""
    slashes = blob.count("/")
    return len(set(blob[:400])) < FEW_CHARACTERS or slashes > max(len(blob) // 20, blob.count("+") + 40)


def decoded_preview(text: str) -> str:
    """`, which says '...'` where base64 or hexadecimal digits give a text; else empty."""
    start = text[: PREVIEW_BYTES // 3 * 4].strip()
    for decode in (binascii.unhexlify, _from_base64):
        try:
            decoded = decode(start[: len(start) // 4 * 4]).decode("utf-8")
        except (ValueError, binascii.Error):
            continue
        if decoded and all(each.isprintable() or each in "\t\r\n" for each in decoded):
            return f", which says {shown(decoded)!r}"
    return ""


def _from_base64(text: str) -> bytes:
    return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
