from __future__ import annotations

import shlex

import pytest

from skillkit.integrations.inline.words import words_of


@pytest.mark.parametrize(
    "body",
    [
        "a b  c",
        "a 'b c' d",
        r'a "b \" c" \d',
        r'"a\nb" \  x',
        "''",
        "a'b'\"c\"d",
        "$HOME `id` $(id) *.py ~ ; | & >x",
        "",
    ],
)
def test_words_are_split_as_posix_quotes_them_and_nothing_is_expanded(body: str) -> None:
    assert words_of(body) == tuple(shlex.split(body))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param('x {"a": "b c"}', ("x", '{"a": "b c"}'), id="json"),
        pytest.param('x --d={"a": [1, {"b": "}"}]} y', ("x", '--d={"a": [1, {"b": "}"}]}', "y"), id="inside-a-word"),
        pytest.param("x '{' \"{\" \\{", ("x", "{", "{", "{"), id="quoted"),
        pytest.param("x }", ("x", "}"), id="closing-only"),
    ],
)
def test_braces_keep_json_as_it_is_written(body: str, words: tuple[str, ...]) -> None:
    assert words_of(body) == words


@pytest.mark.parametrize("body", ["'a", '"a', "a\\", "{a", '{"a}'])
def test_what_is_left_open_gives_no_words(body: str) -> None:
    assert words_of(body) is None
