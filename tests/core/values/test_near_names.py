"""What a mistyped name was meant to be; a text of megabytes is not compared with anything."""

from __future__ import annotations

import difflib

import pytest

from skillkit.core.values.text import LONGEST_NAME, near_names

KNOWN = ["csv-report", "log-digest", "text-stats"]


@pytest.mark.parametrize(
    ("typed", "meant"), [("csv-reprt", ["csv-report"]), ("logdigest", ["log-digest"]), ("", []), ("qqq", [])]
)
def test_the_nearest_one_is_told(typed: str, meant: list[str]) -> None:
    assert near_names(typed, KNOWN) == meant


def test_as_many_as_asked_for_and_as_alike() -> None:
    assert near_names("stat", ["stats", "state", "start"], most=2) == ["stats", "state"]
    assert near_names("stat", ["stats-of-all"], alike=0.9) == []


def test_a_text_longer_than_any_name_is_near_to_none() -> None:
    longest = "n" * LONGEST_NAME
    assert near_names(longest, [longest[:-1]]) == [longest[:-1]]
    assert near_names(longest + "n", [longest]) == []
    assert difflib.get_close_matches(longest + "n", [longest]) == [longest]  # noqa: TID251 - the control
