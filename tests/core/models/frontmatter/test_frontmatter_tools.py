from __future__ import annotations

import pytest

from skillkit.core.models.frontmatter import Value, read_frontmatter, split_tools


def tools(line: str) -> tuple[str, ...]:
    frontmatter = read_frontmatter(f"---\ndescription: d\n{line}\n---\n".encode())
    return split_tools(frontmatter.fields.get("allowed-tools"))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("allowed-tools: Bash(git:*) Bash(jq:*) Read", ("Bash(git:*)", "Bash(jq:*)", "Read"), id="spaces"),
        pytest.param("allowed-tools: Read, Write, Bash", ("Read", "Write", "Bash"), id="commas"),
        pytest.param("allowed-tools: Read,Write", ("Read", "Write"), id="commas without spaces"),
        pytest.param("allowed-tools: Bash(git a *, git c *), Read", ("Bash(git a *, git c *)", "Read"), id="scope"),
        pytest.param("allowed-tools: [Read, 'Bash(git log:*)']", ("Read", "Bash(git log:*)"), id="flow list"),
        pytest.param("allowed-tools:\n  - Read\n  - Bash(git:*)", ("Read", "Bash(git:*)"), id="block list"),
        pytest.param("allowed-tools:\n  - Agent(a:x, a:y)", ("Agent(a:x, a:y)",), id="commas in a list item's scope"),
        pytest.param("allowed-tools:\n  - Bash(a && b)", ("Bash(a && b)",), id="list item with spaces"),
        pytest.param("allowed-tools: Bash({baseDir}/scan.sh:*)", ("Bash({baseDir}/scan.sh:*)",), id="placeholder"),
        pytest.param("allowed-tools: Bash(echo (a b) c) Read", ("Bash(echo (a b) c)", "Read"), id="nested scope"),
        pytest.param("allowed-tools: mcp__srv__tool, prefix*:*", ("mcp__srv__tool", "prefix*:*"), id="tool names"),
        pytest.param("allowed-tools: - Read", ("Read",), id="a dash on the same line"),
        pytest.param("allowed-tools: |\n  Read\n  Write", ("Read", "Write"), id="block text"),
        pytest.param('allowed-tools: "*"', ("*",), id="everything"),
        pytest.param("allowed-tools: Read", ("Read",), id="single"),
        pytest.param("allowed-tools: Bash(git", ("Bash(git",), id="never closed"),
        pytest.param("allowed-tools: Read) Write", ("Read)", "Write"), id="closed too often"),
        pytest.param("allowed-tools:", (), id="nothing"),
        pytest.param('allowed-tools: ""', (), id="empty text"),
        pytest.param("allowed-tools: []", (), id="empty list"),
        pytest.param("allowed-tools: [null, '']", (), id="list of nothing"),
        pytest.param("license: MIT", (), id="absent"),
    ],
)  # fmt: skip
def test_allowed_tools_are_read_in_every_form(line: str, expected: tuple[str, ...]) -> None:
    assert tools(line) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"Bash": "git"}, ("Bash:", "git"), id="a map is read as text"),
        pytest.param([["Read", "Write"]], ("Read, Write",), id="a nested list is one item"),
        pytest.param("  ,, Read  ,\n", ("Read",), id="stray separators"),
    ],
)
def test_odd_values_do_not_raise(value: Value, expected: tuple[str, ...]) -> None:
    assert split_tools(value) == expected


def test_a_quarter_megabyte_of_parentheses_is_split_in_linear_time() -> None:
    """The suite's timeout is the limit."""
    assert split_tools("(" * 250_000) == ("(" * 250_000,)
    assert len(split_tools("a " * 125_000)) == 125_000
