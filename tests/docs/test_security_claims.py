"""The page about security: each claim names the tests that show it, and these exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "explanation" / "security.md").read_text()
SECTIONS = {part.partition("\n")[0]: part for part in PAGE.split("\n## ")[1:]}
CLAIMING = (
    "Inside the workspace",
    "Network by host",
    "Prepared packages",
    "The home that stays",
    "Names are opened once",
    "Grants and keys",
    "The state and the record",
    "Where skills come from",
)
README = (TESTS.parent / "README.md").read_text()


def test_every_test_that_is_named_exists() -> None:
    files = {path.name for path in TESTS.rglob("test_*.py")}
    functions = {name for path in TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())}
    named = set(re.findall(r"`(test_\w+(?:\.py)?)`", PAGE))
    assert named - files - functions == set()
    assert len(named) > 40


def test_every_claim_names_a_test() -> None:
    for title in CLAIMING:
        rows = re.findall(r"^\| (?!what|-)(.*)", SECTIONS[title], re.MULTILINE)
        points = re.findall(r"^- ((?:.*\n)(?:  .*\n)*)", SECTIONS[title], re.MULTILINE)
        assert rows or points
        assert [each for each in (*rows, *points) if "`test_" not in each] == []


def test_every_difference_to_others_names_the_tests_that_prove_it() -> None:
    table = README.partition("## What it does that others do not")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (?!\||-)(.+)\|$", table, re.MULTILINE)
    assert len(rows) > 10
    assert [row for row in rows if not re.search(r"`tests/[\w/]+\.py` $", row)] == []
