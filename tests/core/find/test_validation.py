from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from support.skill_folders import skill_folder

from skillkit import SkillManager
from skillkit.core.find.validation import skill_files_and_problems, validate_skill_file
from skillkit.core.values.skills import Diagnostic

GOOD = "name: s\ndescription: Does it.\n"


def problems(tmp_path: Path, frontmatter: str, body: str = "Do it.\n") -> list[tuple[str, str, int | None]]:
    file = skill_folder(tmp_path, "s", frontmatter=frontmatter, body=body) / "SKILL.md"
    found = validate_skill_file(file)
    assert all(problem.remedy and problem.path == file for problem in found)
    return [(problem.severity, problem.code, problem.line) for problem in found]


def test_a_skill_that_follows_the_standard_has_no_problems(tmp_path: Path) -> None:
    whole = GOOD + "license: MIT\ncompatibility: any\nmetadata:\n  a: b\nallowed-tools: Bash(a, b) Read\n"
    assert problems(tmp_path, whole) == []


@pytest.mark.parametrize(
    ("frontmatter", "expected"),
    [
        pytest.param("description: d", [("error", "missing-name", 1)], id="no name"),
        pytest.param("name: [s]\ndescription: d", [("error", "missing-name", 2)], id="name is a list"),
        pytest.param("name: S\ndescription: d", [("error", "bad-name", 2), ("error", "name-mismatch", 2)], id="upper"),
        pytest.param("name: t\ndescription: d", [("error", "name-mismatch", 2)], id="not the folder's"),
        pytest.param("name: s", [("error", "missing-description", 1)], id="no description"),
        pytest.param("name: s\ndescription: [a]", [("error", "bad-description", 3)], id="description is a list"),
        pytest.param("name: s\ndescription: " + "x" * 1025, [("error", "long-description", 3)], id="too long"),
        pytest.param("name: s\ndescription: <b>", [("warning", "markup", 3)], id="markup"),
        pytest.param(GOOD + "license: [a]", [("error", "bad-license", 4)], id="license is a list"),
        pytest.param(GOOD + "compatibility:", [("error", "bad-compatibility", 4)], id="compatibility is empty"),
        pytest.param(GOOD + "compatibility: " + "x" * 501, [("error", "long-compatibility", 4)], id="too much of it"),
        pytest.param(GOOD + "metadata: {a: {b: c}}", [("error", "bad-metadata", 4)], id="nested metadata"),
        pytest.param(GOOD + "metadata: text", [("error", "bad-metadata", 4)], id="metadata is text"),
        pytest.param(GOOD + "allowed-tools: [Read]", [("error", "bad-allowed-tools", 4)], id="tools in a list"),
        pytest.param(GOOD + "allowed-tools: Read, Write", [("warning", "comma-tools", 4)], id="tools with commas"),
        pytest.param(GOOD + "version: 1.0", [("warning", "vendor-field", 4)], id="vendor field"),
        pytest.param("name: s\ndescription: a: b", [("error", "repaired-value", 3)], id="repaired"),
        pytest.param(GOOD + "name: s", [("error", "duplicate-key", 4)], id="twice"),
        pytest.param(
            "name: A B\nversion: 1",
            [
                ("error", "missing-description", 1),
                ("error", "bad-name", 2),
                ("error", "name-mismatch", 2),
                ("warning", "vendor-field", 3),
            ],
            id="all at once, in the order of their lines",
        ),
    ],
)
def test_every_departure_is_found_with_its_line(
    tmp_path: Path, frontmatter: str, expected: list[tuple[str, str, int]]
) -> None:
    assert problems(tmp_path, frontmatter) == expected


@pytest.mark.parametrize("name", ["-a", "a-", "a--b", "a_b", "a.b", "ä", "a b", "a/b", "a" * 65])
def test_names_outside_the_rule_are_errors(tmp_path: Path, name: str) -> None:
    found = problems(tmp_path, f"name: {name}\ndescription: d")
    assert ("error", "long-name" if len(name) > 64 else "bad-name", 2) in found


def test_the_body_should_be_there_and_be_short(tmp_path: Path) -> None:
    assert problems(tmp_path, GOOD, body="") == [("warning", "empty-body", 5)]
    assert problems(tmp_path, GOOD, body="x\n" * 600) == [("warning", "long-body", 5)]
    assert problems(tmp_path, GOOD, body="x" * 20_001) == [("warning", "long-body", 5)]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_lines_are_right_for_every_line_end(tmp_path: Path, line_end: bytes) -> None:
    file = skill_folder(tmp_path, "s", frontmatter=GOOD, body="x\n" * 600) / "SKILL.md"
    file.write_bytes(file.read_bytes().replace(b"\n", line_end))
    assert [(problem.code, problem.line) for problem in validate_skill_file(file)] == [("long-body", 5)]


def test_a_byte_order_mark_and_another_file_name_are_problems(tmp_path: Path) -> None:
    folder = skill_folder(tmp_path, "s", frontmatter=GOOD)
    file = folder / "skill.md"
    file.write_bytes(b"\xef\xbb\xbf" + (folder / "SKILL.md").read_bytes())
    assert [problem.code for problem in validate_skill_file(file)] == ["file-name", "byte-order-mark"]


def test_a_file_that_cannot_be_used_is_one_error(tmp_path: Path) -> None:
    file = tmp_path / "SKILL.md"
    file.write_text("# no frontmatter")
    assert validate_skill_file(file) == [
        Diagnostic(
            "error",
            "no-frontmatter",
            "There is no frontmatter.",
            file,
            1,
            "Start the file with a line '---', then name and description, then '---'.",
        )
    ]
    (gone,) = validate_skill_file(tmp_path / "gone" / "SKILL.md")
    assert (gone.severity, gone.code) == ("error", "unreadable-file")
    os.truncate(file, 100_000_000)
    (huge,) = validate_skill_file(file)
    assert "is larger than 10,000,000 bytes" in huge.message


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_does_not_make_the_validator_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "SKILL.md")
    results: list[Diagnostic] = []
    thread = threading.Thread(target=lambda: results.extend(validate_skill_file(tmp_path / "SKILL.md")), daemon=True)
    thread.start()
    thread.join(20)
    assert [(problem.severity, problem.code) for problem in results] == [("error", "unreadable-file")]
    assert "is not a regular file" in results[0].message


def test_the_folder_may_be_named_by_dots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skill_folder(tmp_path, "s", frontmatter=GOOD, files={"scripts/x.py": ""})
    monkeypatch.chdir(tmp_path / "s" / "scripts")
    assert validate_skill_file(Path("../SKILL.md")) == []


def test_files_are_found_at_and_below_a_folder(tmp_path: Path) -> None:
    for name in ("b", "a", "group/c"):
        skill_folder(tmp_path, name)
    expected = [tmp_path / name / "SKILL.md" for name in ("a", "b", "group/c")]
    assert skill_files_and_problems(tmp_path) == (expected, [])
    assert skill_files_and_problems(expected[0]) == ([expected[0]], [])
    assert skill_files_and_problems(tmp_path / "gone") == ([tmp_path / "gone"], [])


def test_what_hinders_the_search_is_told(tmp_path: Path) -> None:
    skill_folder(tmp_path, "a")
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    (tmp_path / "b").mkdir()
    (tmp_path / "b/SKILL.md").symlink_to("SKILL.md")
    files, problems = skill_files_and_problems(tmp_path)
    assert files == [tmp_path / "a/SKILL.md"]
    assert {(problem.severity, problem.code) for problem in problems} == {
        ("warning", "broken-link"),
        ("error", "unreadable-file"),
    }


def test_strictness_leaves_loading_alone(tmp_path: Path) -> None:
    from support.skill_folders import discovered, metadata_of

    skill_folder(tmp_path / "root", "s", frontmatter="name: A B\ndescription: a: b\nversion: 1.10\n")
    assert metadata_of(discovered(tmp_path / "root"))["A B"].version == "1.10"


def test_a_comment_before_the_frontmatter_is_an_error_for_the_validator_and_a_warning_for_the_reader(
    tmp_path: Path,
) -> None:
    file = tmp_path / "root/good/SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text("<!-- " + "- \n---\n" * 3_000 + "-->\n---\nname: good\ndescription: d\n---\nDo it.\n")
    (found,) = validate_skill_file(file)
    assert (found.severity, found.code, found.line) == ("error", "leading-comment", 1)
    with SkillManager(tmp_path / "root", "", [], [], state_dir=tmp_path / "state") as manager:
        assert manager.load_skill("good").content == "Do it.\n"
        (said,) = manager.diagnostics
    assert (said.severity, said.code, said.line) == ("warning", "leading-comment", 1)
    assert said.remedy
