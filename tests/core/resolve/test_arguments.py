from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillkit import ArgumentSerializationError, ArgumentSizeError
from skillkit.core.resolve.arguments import parse_arguments, stdin_bytes, words

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(derandomize=True, deadline=None)
@given(VALUES)
def test_every_json_value_arrives_unchanged(value: Any) -> None:
    assert json.loads(stdin_bytes([value], None)) == [value]


def test_nothing_is_nothing_but_an_empty_map_is_something() -> None:
    assert (stdin_bytes(None, None), stdin_bytes({}, None), stdin_bytes("", None)) == (b"", b"{}", b'""')


def test_text_goes_in_as_utf8_and_bytes_as_they_are() -> None:
    assert (stdin_bytes(None, "ä"), stdin_bytes(None, b"\xff"), stdin_bytes(None, "")) == (b"\xc3\xa4", b"\xff", b"")
    assert stdin_bytes(None, "\udcff") == b"\xff"


def test_text_that_json_writes_raw_stays_raw() -> None:
    assert stdin_bytes({"ä": "€"}, None) == '{"ä": "€"}'.encode()


@pytest.mark.parametrize("given", ["x" * 10_000_001, b"x" * 10_000_001])
def test_the_limit_holds_for_plain_input_too(given: Any) -> None:
    with pytest.raises(ArgumentSizeError, match="Put large input into a file") as caught:
        stdin_bytes(None, given)
    assert caught.value.size == 10_000_001
    assert len(stdin_bytes(None, given[1:])) == 10_000_000


def test_the_limit_counts_bytes_and_not_characters() -> None:
    with pytest.raises(ArgumentSizeError, match="10,000,002 bytes"):
        stdin_bytes("ä" * 5_000_000, None)


def test_nesting_without_end_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ArgumentSerializationError, match="cannot be written as JSON"):
        stdin_bytes(deep, None)


def test_words_are_texts_and_paths_in_order() -> None:
    assert words(["a b", "", "-x", "ü", "\udcff"]) == ("a b", "", "-x", "ü", "\udcff")
    paths: Any = [Path("/a/b")]
    assert words(paths) == ("/a/b",)
    once: Any = iter(["a", "b"])
    assert words(once) == ("a", "b")


@pytest.mark.parametrize("secret", ["hunter2\0", "hunter2\ud800"])
def test_a_refused_word_is_not_repeated_in_the_error(secret: str) -> None:
    with pytest.raises(ArgumentSerializationError, match=r"NUL|half a character") as caught:
        words(["--password", secret])
    assert "hunter2" not in str(caught.value)


def test_two_keys_that_become_one_name_are_refused() -> None:
    given = {1: "/etc/shadow", "1": "harmless"}
    with pytest.raises(ArgumentSerializationError, match="stands twice"):
        parse_arguments(given, stdin_bytes(given, None))
    assert parse_arguments({"a": (1, 2)}, stdin_bytes({"a": (1, 2)}, None)) == {"a": [1, 2]}
