from __future__ import annotations

import re

import pytest

from skillkit.core.decide.risk.findings import PER_SKILL, Finding, flags_of_file, flags_of_skill, numbered, shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("x" * 60, "x" * 60, id="as long as is shown"),
        pytest.param("x" * 61, "x" * 60 + "...", id="one more"),
        pytest.param("a" + " " * 239, "a", id="gaps"),
        pytest.param("a" + " " * 240, "a...", id="gaps that hide the rest"),
        pytest.param("a" + " " * 239 + "b", "a...", id="what stands behind a long gap"),
        pytest.param("a\n b\u202e", "a b\\u202e", id="what cannot be seen"),
    ],
)
def test_what_is_shown_of_a_text(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_so_many_matches_are_looked_at() -> None:
    assert len(list(numbered(re.compile("a"), "a" * 2_001))) == 2_000


def test_what_stands_in_one_line_is_in_the_order_of_kinds_and_messages() -> None:
    findings = [Finding("process", f"{letter}.", 1) for letter in "HGFEDCBA"]
    flags = flags_of_file("x", [*findings, Finding("delete", "Z.", 1)])
    assert [each.flag.message for each in flags] == ["Z.", "A.", "B.", "C."]
    assert [each.more for each in flags] == [0, 0, 0, 5]


def test_only_the_last_of_its_kind_counts_those_in_other_files() -> None:
    flags = flags_of_skill(flags_of_file(str(number), [Finding("delete", "X.", 1)]) for number in range(PER_SKILL + 2))
    counted = "X. (and 2 more in other files)"
    assert [flag.message for flag in flags] == ["X."] * (PER_SKILL - 1) + [counted]
