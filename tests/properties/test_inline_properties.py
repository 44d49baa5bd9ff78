"""Any text in any chunks: the same events, and nothing lost, doubled or leaked."""

from __future__ import annotations

import re
from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.inline_answers import events_of

from skillkit.core.models.shell import split_words
from skillkit.integrations.inline.processor import ForeignText, defuse
from skillkit.integrations.inline.syntax import Command, Event, Text

PIECES = ["%", "!", "{", "}", "%{", "!{", "!{! ", "\\", "`", "``", "```", "~", "~~~", "\n", "\n\n", " ", "\t", '"', "'"]
PIECES += ["a", "scripts/x.py", "> ", "- ", "1. ", "\r\n", "{}", '{"a": "}"}', "\x00", "é", "\U0001f600"]
texts = st.lists(
    st.one_of(st.sampled_from(PIECES), st.text("ab{}\"'\\`%!\u00e9\u2028\x1b", max_size=5)), max_size=40
).map("".join)


def chunks_of(text: str, cuts: list[int]) -> list[str]:
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


@settings(max_examples=300, derandomize=True, deadline=None)
@given(texts, st.lists(st.integers(0, 100), max_size=8))
@example("%{a}", [1])
@example("\\%{a}", [1, 2])
@example("```\n%{a}\n```\n%{b}", [1, 2, 5, 9, 10, 11])
def test_any_chunking_gives_the_same_events(text: str, cuts: list[int]) -> None:
    whole = events_of(text)
    assert events_of(*chunks_of(text, cuts)) == whole
    assert events_of(*text) == whole


def given_back(events: list[Event]) -> str:
    return "".join(event.text if isinstance(event, Text) else event.source for event in events)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(texts)
def test_text_and_commands_together_are_the_input(text: str) -> None:
    """But for the backslash of an escape, which is the only thing that ever goes away."""
    came = given_back(events_of(text))
    if re.search(r"\\[%!]\{", text):
        assert came.replace("\\", "") == text.replace("\\", "")
    else:
        assert came == text


@settings(max_examples=300, derandomize=True, deadline=None)
@given(texts)
def test_a_command_can_be_split_and_names_something(text: str) -> None:
    for event in events_of(text):
        if isinstance(event, Command):
            assert event.source[:2] in ("%{", "!{")
            assert event.source[-1] == "}"
            assert event.body
            assert split_words(event.body, keeps_braces=True)


@settings(max_examples=300, derandomize=True, deadline=None)
@given(texts)
def test_defused_text_holds_no_command(text: str) -> None:
    assert [event for event in events_of(defuse(text)) if isinstance(event, Command)] == []


@settings(max_examples=300, derandomize=True, deadline=None)
@given(texts)
def test_every_command_of_a_foreign_text_is_known_as_foreign(text: str) -> None:
    foreign = ForeignText()
    foreign.add(text)
    for event in events_of(text):
        if isinstance(event, Command):
            assert foreign.holds(event.body)
