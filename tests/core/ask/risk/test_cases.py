"""Every case of every language: what is flagged, at which line, in which words, and what raises no flag."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.flagged import flags_of_text

CASES: dict[str, list[tuple[str, list[list[object]]]]] = json.loads(
    (Path(__file__).parent / "cases.json").read_text("ascii")
)
"""By the name of the file: its text, and kind, line and message of each flag."""


@pytest.mark.parametrize("name", CASES)
def test_each_text_gets_these_flags_and_no_others(tmp_path: Path, name: str) -> None:
    found = {}
    for number, (text, _) in enumerate(CASES[name]):
        flags = flags_of_text(tmp_path / str(number), name, text)
        found[text] = [[flag.kind, flag.line, flag.message] for flag in flags]
    expected = {text: flags for text, flags in CASES[name]}  # noqa: C416 - a list gives pairs of any length
    assert {text: flags for text, flags in found.items() if flags != expected[text]} == {}


def test_the_cases_hold_what_is_flagged_and_what_is_not() -> None:
    """Of each language that has rules, so that no mistake in the file empties the test."""
    for name in ("run.py", "run.sh", "run.js", "run.rb", "run.pl", "run.ps1", "SKILL.md"):
        assert {bool(flags) for _, flags in CASES[name]} == {True, False}
    assert sum(map(len, CASES.values())) > 1_200
