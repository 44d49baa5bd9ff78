"""Noise for as long as one likes: `SKILLKIT_FUZZ_SECONDS=60 pytest -m fuzz`."""

from __future__ import annotations

import os
import random
import time

import pytest
from support.inline_answers import events_of

from skillkit.core.models.shell import split_words
from skillkit.integrations.inline import Command, Text
from skillkit.integrations.inline.processor import ForeignText, defuse

SECONDS = float(os.environ.get("SKILLKIT_FUZZ_SECONDS", "1"))
PIECES = (
    *("%{", "!{", "!{!", "{", "}", "\\", "\\%{", "%", "!", "'", '"', "`", "``", "```", "````", "~~~", "\n", "\n\n"),
    *("> ", "- ", "    ", " ", "\t", "\r\n", "scripts/a.sh", "word", "é", "\u202e", "\x1b", "\0", "{}", "}}"),
)


def noise(chance: random.Random) -> str:
    return "".join(chance.choices(PIECES, k=chance.randrange(60)))


def cut_up(text: str, chance: random.Random) -> list[str]:
    places = sorted(chance.randrange(len(text) + 1) for _ in range(chance.randrange(12)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


@pytest.mark.fuzz
@pytest.mark.timeout(SECONDS + 60)
def test_noise_in_any_chunks_is_read_the_same_and_defused_noise_runs_nothing() -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    until = time.monotonic() + SECONDS
    commands = 0
    while time.monotonic() < until:
        text = noise(chance)
        whole = events_of(text)
        assert events_of(*cut_up(text, chance)) == whole, (seed, text)
        foreign = ForeignText()
        foreign.add(text)
        for event in whole:
            if isinstance(event, Command):
                commands += 1
                split_words(event.body, keeps_braces=True)
                assert foreign.holds(event.body), (seed, text)
        assert all(isinstance(event, Text) for event in events_of(defuse(text))), (seed, text)
    assert commands > 0
