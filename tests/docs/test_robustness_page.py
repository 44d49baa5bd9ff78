"""Every case on the page of bad input is kept by tests that exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PAGE = PROJECT / "docs" / "reference" / "robustness.md"
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
CASES = {
    *("Malformed YAML", "Missing name or description", "BOM", "CRLF", "NUL", "100 MB SKILL.md"),
    *("YAML bombs and aliases", "Unreadable files", "Symlink cycles", "Broken links", "Names with `/` or `..`"),
    *("10,000 files in a skill", "Read-only skill folder", "Unwritable workspace"),
    *("Script deleted between detection and run", "Script replaced between detection and run"),
    *("Environment too large for the system", "Arguments too large", "Arguments unserialisable"),
    *("Script that never reads stdin", "Script that closes stdout", "Non-UTF-8 output", "Endless output"),
    *("Fork bomb", "Memory hog", "Disk filler", "Setsid daemon", "SIGTERM ignored"),
    *("Full disk for the audit", "Locked database for the audit", "Two processes answering one request"),
    *("Killed approver", "Clock jumps"),
}


def rows() -> dict[str, tuple[str, str]]:
    """What is seen and what keeps it, by case."""
    lines = [line.strip("|\n").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return {case.strip(): (seen, kept) for case, seen, kept in lines if case.strip() != "case"}


@cache
def names_in(file: str) -> frozenset[str]:
    nodes = ast.walk(ast.parse((PROJECT / file).read_text()))
    return frozenset(node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_the_page_has_every_case() -> None:
    assert set(rows()) == CASES


@pytest.mark.parametrize("case", sorted(CASES))
def test_a_case_says_what_is_seen_and_names_tests_that_exist(case: str) -> None:
    seen, kept = rows()[case]
    named = NAMED_TEST.findall(kept)
    assert seen.strip()
    assert named
    assert NAMED_TEST.sub("", kept).strip() == "", "nothing but tests stands in the last column"
    assert [f"{file}::{name}" for file, name in named if name not in names_in(file)] == []


def test_tests_named_in_the_text_exist_too() -> None:
    for file, name in NAMED_TEST.findall(PAGE.read_text()):
        assert name in names_in(file)
