"""Values of keys -> the same bytes or text without them: plain, and in the forms that programs print them in.

Theory of operation. For each value of eight characters or more, every form is worked out once: plain, base64 in both
alphabets at each of the three places in a group of bytes where a value can begin, percent-encoded as any of the usual
programs does it, hexadecimal, and as JSON writes it. Each form is looked for by itself (`bytes.find` takes linear
time), and what was found is merged: forms that overlap leave nothing between them. A stream holds back only an end that
a form may begin with: what a script writes in pieces is found, and a line that holds no key is passed on at once.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

__all__ = ["LEAST_CHARACTERS", "MASK", "NOTHING_MASKED", "MaskStream", "Masker"]

LEAST_CHARACTERS = 8
MASK = "[masked]"
_MASK = MASK.encode()
_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
# What programs leave as it is beside letters and digits when they percent-encode, and what a space becomes.
_PERCENT_ENCODINGS = (
    ("-._~", "%20"),  # RFC 3986: Python, Go, curl, PHP, .NET
    ("-._~/", "%20"),  # a path in Python
    ("-._~", "+"),  # a form in Python, Go and Ruby
    ("-._~!'()*", "%20"),  # JavaScript's encodeURIComponent
    ("-._*", "+"),  # URLSearchParams, and forms in Java
    ("-._", "+"),  # a form in PHP
    ("-._!()*", "+"),  # a form in .NET
    ("-._~$&+:=@", "%20"),  # a segment of a path in Go
    ("-._~!'()*;,/?:@&=+$#", "%20"),  # encodeURI
    ("-._~!'()*;,/?:@&=+$#[]%", "%20"),  # an address in Python's requests
    ("-._~!'()*,&+$%", "%20"),  # name and password in an address of WHATWG
    ("-._~!'()*;,/:@&=+$%[]|\\^", "%20"),  # its path
    ("-._~!()*;,/?:@&=+$%[]|\\^`{}", "%20"),  # its query
    ("", "%20"),  # all that can be encoded
)
# A piece at the end that was cut off tells something from this length on.
_LEAST_PIECE = 4


class Masker:
    """Knows the values of one run; without any it changes nothing."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        long_enough = dict.fromkeys(value for value in values if len(value) >= LEAST_CHARACTERS)
        forms = dict.fromkeys(form for value in long_enough for form in _forms_of(value))
        self._forms = tuple(sorted(forms, key=len, reverse=True))
        self._longest = len(self._forms[0]) if self._forms else 0

    def __bool__(self) -> bool:
        return bool(self._forms)

    def mask(self, data: bytes, *, is_cut: bool = False) -> bytes:
        """`is_cut` says that there was more: the beginning of a form at its end is masked too."""
        if not self._forms:
            return data
        end = len(data)
        places = self.places(data)
        if is_cut and end - (start := self.open_end(data)) >= _LEAST_PIECE:
            places.append((start, end))
        return _without(data, places)

    def mask_text(self, text: str) -> str:
        if not self._forms:
            return text
        data = text.encode("utf-8", "surrogatepass")
        masked = self.mask(data)
        return text if masked == data else masked.decode("utf-8", "replace")

    def mask_all(self, value: Any) -> Any:  # noqa: ANN401 - JSON in, JSON out
        """Every text in a structure."""
        if isinstance(value, str):
            return self.mask_text(value)
        if isinstance(value, dict):
            return {self.mask_text(name): self.mask_all(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.mask_all(each) for each in value]
        return value

    def stream(self, write: Callable[[bytes], None]) -> MaskStream:
        return MaskStream(self, write)

    def places(self, data: bytes) -> list[tuple[int, int]]:
        found = []
        for form in self._forms:
            start = data.find(form)
            while start >= 0:
                found.append((start, start + len(form)))
                start = data.find(form, start + len(form))
        return found

    def open_end(self, data: bytes) -> int:
        """Where the longest end begins that more bytes could make a form of; the end itself where there is none."""
        first = len(data)
        tail = max(0, first - self._longest + 1)
        for form in self._forms:
            start = data.find(form[:1], max(tail, len(data) - len(form) + 1))
            while 0 <= start < first:
                if form.startswith(data[start:]):
                    first = start
                start = data.find(form[:1], start + 1)
        return first


NOTHING_MASKED = Masker()


class MaskStream:
    """Passes bytes on without keys, as they come."""

    def __init__(self, masker: Masker, write: Callable[[bytes], None]) -> None:
        self._masker = masker
        self._write = write
        self._held = b""

    def feed(self, data: bytes) -> None:
        data = self._held + data
        end = self._masker.open_end(data)
        # A whole form may reach into the open end: nothing of it may be passed on before.
        for start, stop in sorted(self._masker.places(data), reverse=True):
            end = min(end, start) if start < end < stop else end
        self._held = data[end:]
        if end:
            self._write(self._masker.mask(data[:end]))

    def close(self) -> None:
        held, self._held = self._held, b""
        if held:
            self._write(self._masker.mask(held))


def _without(data: bytes, places: list[tuple[int, int]]) -> bytes:
    if not places:
        return data
    pieces, done = list[bytes](), 0
    for start, stop in sorted(places):
        if start > done or not pieces:
            pieces += [data[done:start], _MASK]
        done = max(done, stop)
    return b"".join([*pieces, data[done:]])


def _forms_of(value: str) -> Iterator[bytes]:
    raw = os.fsencode(value)
    yield raw
    yield raw.lower()  # as names of hosts are told
    yield from _percent_encoded(raw)
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    plain = raw.decode("utf-8", "replace")
    for ascii_only in (True, False):
        said = json.dumps(plain, ensure_ascii=ascii_only)[1:-1]
        yield from (said.encode(), said.replace("/", "\\/").encode())
    for encode in (base64.standard_b64encode, base64.urlsafe_b64encode):
        for offset in range(3):
            # Of the first and the last group only what the value alone decides.
            start = (0, 2, 3)[offset]
            yield encode(bytes(offset) + raw)[start : (offset + len(raw)) * 8 // 6]


def _percent_encoded(raw: bytes) -> Iterator[bytes]:
    """As each of the usual programs does it, with digits in either case; and every byte of it."""
    for case in ("%%%02X", "%%%02x"):
        escapes = [case % number for number in range(256)]
        yield "".join(escapes[byte] for byte in raw).encode()
        for left, space in _PERCENT_ENCODINGS:
            table = escapes.copy()
            for character in _PLAIN + left:
                table[ord(character)] = character
            table[ord(" ")] = space
            yield "".join(table[byte] for byte in raw).encode()
