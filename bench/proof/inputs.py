"""Real files and pieces of each format -> inputs that nobody wrote: mutated, cut, doubled, spliced."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

__all__ = ["MUTATED_BYTES", "chunks_of", "json_value", "mutated", "real_files"]

MUTATED_BYTES = 3_000
_QUOTED, _BREAKING = re.compile(rb'"([^"\\\n]*)"'), re.compile(rb'["\\\x00-\x1f\x7f-\xff]')
_ROOT = Path(__file__).parents[2]
_FOLDERS = ("examples", "docs", "tests/support", "tools")
_ANYWHERE = (
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\r", b"\n---\n", b"\t", b"\\", b"'", b'"', b"`", b"```\n"),
    *(b"{", b"}", b"[", b"]", b"$(", b"${", b"<<EOF\n", b"%{", b"!{", b"&a ", b"*a", b"<!--", b"]]>", b"\x1b[2J"),
    *(b"\xe2\x80\xae", b"\xed\xa0\x80", b"\xf0\x9f\x92\xa9", b"e\xcc\x81", b"\xc2\x85", b"\xe2\x80\xa8"),
    *(b"../", b"/etc/passwd", b"name: ", b"description: ", b"- ", b": ", b"#!/usr/bin/env ", b"import ", b"http://"),
    *(b"scripts/a.sh ", b"pip install ", b"@", b"9" * 400, b"--", b"=", b"==", b"sha256:", b"null", b"-1", b"1e999"),
)


@cache
def real_files(*suffixes: str) -> tuple[bytes, ...]:
    """Files of the repository by the end of their names, and of FUZZ_CORPUS, cut to what is worth mutating."""
    folders = [_ROOT / folder for folder in _FOLDERS] + [
        Path(os.environ[name]) for name in ("FUZZ_CORPUS",) if os.environ.get(name)
    ]
    found = sorted(path for folder in folders for path in folder.rglob("*") if path.name.endswith(suffixes))
    texts = [path.read_bytes()[: 4 * MUTATED_BYTES] for path in found if path.is_file()]
    if not texts:
        raise FileNotFoundError(f"No file ends with {suffixes}.")
    return tuple(texts)


def mutated(chance: random.Random, seeds: Sequence[bytes], *, most: int = 8, is_inside: bool = False) -> bytes:
    """One of the seeds, or a piece of it, changed in one to `most` places; or only inside one of its quoted texts.

    What is changed outside of them is mostly refused by whoever reads the format, before anybody looks at a value.
    """
    seed = chance.choice(seeds)
    if is_inside and (quoted := [*_QUOTED.finditer(seed)]):
        found = chance.choice(quoted)
        inner = mutated(chance, [found[1]], most=most)
        return seed[: found.start(1)] + _BREAKING.sub(b"", inner) + seed[found.end(1) :]
    raw = bytearray(seed)
    if len(raw) > MUTATED_BYTES:
        start = chance.choice((0, chance.randrange(len(raw) - MUTATED_BYTES)))
        raw = raw[start : start + MUTATED_BYTES]
    for _ in range(chance.randint(1, most)):
        _CHANGES[chance.randrange(len(_CHANGES))](chance, raw, seeds)
    return bytes(raw)


def _flip(chance: random.Random, raw: bytearray, _: Sequence[bytes]) -> None:
    if raw:
        raw[chance.randrange(len(raw))] = chance.randrange(256)


def _cut(chance: random.Random, raw: bytearray, _: Sequence[bytes]) -> None:
    start = chance.randrange(len(raw) + 1)
    del raw[start : start + chance.choice((1, 3, 20, 200, len(raw)))]


def _double(chance: random.Random, raw: bytearray, _: Sequence[bytes]) -> None:
    start = chance.randrange(len(raw) + 1)
    raw[start:start] = bytes(raw[start : start + chance.choice((1, 5, 50))]) * chance.choice((1, 2, 40))


def _insert(chance: random.Random, raw: bytearray, _: Sequence[bytes]) -> None:
    start = chance.randrange(len(raw) + 1)
    raw[start:start] = chance.choice(_ANYWHERE) * chance.choice((1, 1, 1, 2, 30))


def _splice(chance: random.Random, raw: bytearray, seeds: Sequence[bytes]) -> None:
    other = chance.choice(seeds)
    start, taken = chance.randrange(len(raw) + 1), chance.randrange(len(other) + 1)
    raw[start:start] = other[taken : taken + chance.choice((5, 50, 400))]


def _noise(chance: random.Random, raw: bytearray, _: Sequence[bytes]) -> None:
    start = chance.randrange(len(raw) + 1)
    raw[start:start] = chance.randbytes(chance.choice((1, 4, 40)))


_CHANGES = (_flip, _cut, _double, _insert, _splice, _noise)


def chunks_of(chance: random.Random, text: str) -> Iterator[str]:
    """The text in pieces, some of them empty."""
    places = sorted(chance.randrange(len(text) + 1) for _ in range(chance.randrange(12)))
    for start, end in zip([0, *places], [*places, len(text)], strict=True):
        yield text[start:end]


def json_value(chance: random.Random, words: Sequence[str], depth: int = 3) -> object:
    """Anything that JSON can say, often about these words."""
    kind = chance.randrange(8 if depth else 6)
    if kind == 6:
        return [json_value(chance, words, depth - 1) for _ in range(chance.randrange(5))]
    if kind == 7:
        return {_word(chance, words): json_value(chance, words, depth - 1) for _ in range(chance.randrange(5))}
    numbers = (0, -1, 1e308, 2**70, float("nan"), float("inf"))
    return (None, chance.random() < 0.5, chance.choice(numbers), _word(chance, words), _word(chance, words), "")[kind]


def _word(chance: random.Random, words: Sequence[str]) -> str:
    """One of the words, mutated now and then; never half a character, except on purpose."""
    word = chance.choice(words)
    if chance.random() < 0.6:
        return word
    return mutated(chance, [word.encode("utf-8", "surrogatepass")]).decode(
        "utf-8", chance.choice(("replace", "surrogateescape"))
    )
