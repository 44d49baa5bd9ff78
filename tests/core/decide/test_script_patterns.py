"""Which scripts an entry of `allowed_commands` names."""

from __future__ import annotations

import pytest

from skillkit.core.decide.script_patterns import is_script_pattern, names_script


@pytest.mark.parametrize(
    "entry",
    [
        "scripts/tools/run.sh",
        "./scripts/tools/run.sh",
        "././scripts//tools/run.sh",
        "scripts/*/run.sh",
        "scripts/tools/*",
        "scripts/tools/r?n.[s]h",
        "scripts/**",
        "**/run.sh",
        "**/*",
        "scripts/**/run.sh",
        "scripts/tools/**/run.sh",
        "demo:scripts/tools/run.sh",
        "demo:./scripts/**",
        "d*:**/run.sh",
        "*:scripts/tools/*",
    ],
)
def test_these_name_the_script(entry: str) -> None:
    assert is_script_pattern(entry)
    assert names_script(entry, "demo", "scripts/tools/run.sh")


@pytest.mark.parametrize(
    "entry",
    [
        "scripts/*",
        "scripts/run.sh",
        "scripts/tools",
        "scripts/tools/",
        "scripts/tools/run.sh/x",
        "tools/run.sh",
        "*/run.sh",
        "Scripts/tools/run.sh",
        "scripts/tools/RUN.SH",
        "/scripts/tools/run.sh",
        "/**",
        "../demo/scripts/tools/run.sh",
        "other:scripts/tools/run.sh",
        "Demo:scripts/tools/run.sh",
        ":scripts/tools/run.sh",
        "demo:/scripts/tools/run.sh",
        "**/other.sh",
    ],
)
def test_these_do_not(entry: str) -> None:
    assert is_script_pattern(entry)
    assert not names_script(entry, "demo", "scripts/tools/run.sh")


def test_a_folder_that_is_called_like_another_skill_and_its_folder_opens_nothing() -> None:
    assert names_script("good:scripts/run.sh", "good", "scripts/run.sh")
    assert not names_script("good:scripts/run.sh", "evil", "good:scripts/run.sh")


def test_a_skill_may_have_a_colon_in_its_name() -> None:
    assert names_script("team:demo:scripts/run.sh", "team:demo", "scripts/run.sh")


def test_a_script_beside_the_instructions_is_named_with_a_dot() -> None:
    assert names_script("./run.sh", "demo", "run.sh")
    assert not names_script("./run.sh", "demo", "scripts/run.sh")


@pytest.mark.parametrize("entry", ["git", "ls*", "", "demo:run"])
def test_entries_without_a_slash_are_about_programs(entry: str) -> None:
    assert not is_script_pattern(entry)
