"""Text from a model, in any chunks, is shown as it would be shown whole."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from skillkit.chat.screen import SafeText
from skillkit.core.values.text import visible

TEXTS = st.text(st.sampled_from("ae \n\r\t\x1b[\u0301\u0308\u202e\u200bé漢\ufe0f😀")) | st.text()


def shown_in(chunks: list[str]) -> str:
    safe = SafeText()
    return "".join(safe.make_visible(chunk) for chunk in chunks)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(text=TEXTS, cuts=st.lists(st.integers(0, 40), max_size=8))
def test_any_chunking_shows_the_same(text: str, cuts: list[int]) -> None:
    text = text.rstrip("\r")
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    chunks = [text[start:end] for start, end in itertools.pairwise(places)]
    assert shown_in(chunks) == visible(text.replace("\r\n", "\n"))


def test_a_terminal_is_told_nothing_by_a_model() -> None:
    assert shown_in(["red\x1b", "[31m", "\x07 \u202e", "e", "\u0301"]) == "red\\x1b[31m\\x07 \\u202eé".replace(
        "é", "e\u0301"
    )
