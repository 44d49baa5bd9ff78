"""Which questions fit into the store: every limit at its edge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skillkit import ConfigurationError, Option, OptionRequest
from skillkit.core.store.requests import (
    CONTEXT_CHARACTERS,
    LONGEST_LIFE_SECONDS,
    _context_text,
    _require_lifetime,
    _require_storable,
    options_from,
    require_channel,
)

REQUEST = OptionRequest("id", "T?", "", (Option("a", "A"),))


def options(count: int) -> tuple[Option, ...]:
    return tuple(Option(str(number), "label") for number in range(count))


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "x" * 256},
        {"title": "x" * 1_000},
        {"title": "two\nlines"},
        {"message": "x" * 20_000},
        {"session_id": "x" * 256},
        {"session_id": ""},
        {"options": options(1)},
        {"options": options(50)},
        {"options": (Option("a", "x" * 256), Option("b", "two\nlines"))},
    ],
)
def test_what_just_fits_is_taken(changes: dict[str, object]) -> None:
    _require_storable(replace(REQUEST, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"id": ""}, "A request's id must not be empty"),
        ({"id": "x" * 257}, "A request's id has at most 256 characters, not 257"),
        ({"id": "a\x1b"}, "A request's id has only characters that can be seen"),
        ({"id": 3}, "A request's id is a text; 3 is none"),
        ({"title": ""}, "A request's title must not be empty"),
        ({"title": "x" * 1_001}, "title has at most 1,000 characters, not 1,001"),
        ({"message": "x" * 20_001}, "message has at most 20,000"),
        ({"message": None}, "message is a text; None is none"),
        ({"session_id": "x" * 257}, "session's id has at most 256"),
        ({"session_id": 7}, "session's id is a text"),
        ({"options": ()}, "1 to 50 options, not 0"),
        ({"options": options(51)}, "1 to 50 options, not 51"),
        ({"options": (Option("", "A"),)}, "An option's id must not be empty"),
        ({"options": (Option("a\n", "A"),)}, "An option's id has only characters that can be seen"),
        ({"options": (Option("a", ""),)}, "An option's label must not be empty"),
        ({"options": (Option("a", "x" * 257),)}, "An option's label has at most 256"),
        (
            {"options": (Option("a", "A"), Option("b", "B"), Option("a", "C"))},
            "an id of its own; these do not: a, b, a",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_the_rule(changes: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        _require_storable(replace(REQUEST, **changes))  # type: ignore[arg-type]


def test_options_are_written_as_options_pairs_or_texts() -> None:
    given = [Option("a", "A"), ("b", "B"), "c"]
    assert options_from(given) == (Option("a", "A"), Option("b", "B"), Option("c", "c"))  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [("a", "b", "c"), ("a", 1), (1, "a"), ("a",), 3, None])
def test_anything_else_is_no_option(given: object) -> None:
    with pytest.raises(ConfigurationError, match="An option is an Option, an"):
        options_from([given])  # type: ignore[list-item]


def test_one_text_is_no_list_of_options() -> None:
    with pytest.raises(ConfigurationError, match=r"Options are a list; 'abc' is one text\. Write \['abc'\]"):
        options_from("abc")


@pytest.mark.parametrize("seconds", [0.001, 1, 300.0, LONGEST_LIFE_SECONDS])
def test_a_request_may_live_for_up_to_thirty_days(seconds: float) -> None:
    _require_lifetime(seconds)
    assert LONGEST_LIFE_SECONDS == 30 * 24 * 60 * 60


@pytest.mark.parametrize(
    "seconds", [0, -1, LONGEST_LIFE_SECONDS + 0.1, float("inf"), float("nan"), True, "10", None], ids=repr
)
def test_no_other_life_is_possible(seconds: object) -> None:
    with pytest.raises(ConfigurationError, match="above 0 and at most 2592000"):
        _require_lifetime(seconds)


@pytest.mark.parametrize("channel", ["", "a\x1b[0m", "\udcff", "x" * 257])
def test_a_channel_has_a_name_that_can_be_shown(channel: str) -> None:
    require_channel("x" * 256)
    with pytest.raises(ConfigurationError, match="A channel's name"):
        require_channel(channel)


def test_a_context_is_kept_as_json_up_to_its_limit() -> None:
    assert _context_text({"a": [1, None]}) == '{"a": [1, null]}'
    frame = len(_context_text({"x": ""}))
    assert len(_context_text({"x": "y" * (CONTEXT_CHARACTERS - frame)})) == CONTEXT_CHARACTERS
    with pytest.raises(ConfigurationError, match="context has at most 4,000,000 characters as JSON, not 4,000,001"):
        _context_text({"x": "y" * (CONTEXT_CHARACTERS - frame + 1)})


def test_what_is_no_json_is_no_context() -> None:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    for value in (float("nan"), object(), nested):
        with pytest.raises(ConfigurationError, match="context must be JSON"):
            _context_text({"x": value})
    with pytest.raises(ConfigurationError, match="context is a mapping; list is none"):
        _context_text([("x", 1)])  # type: ignore[arg-type]
