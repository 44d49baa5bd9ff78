"""`skillkit validate`, run as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples" / "skills"


def validate(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "skillkit", "validate", *map(str, words)], capture_output=True, text=True, check=False
    )


def skill_with(folder: Path, frontmatter: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\n{frontmatter}\n---\n\nDo it.\n")
    return folder


def test_the_example_skills_keep_to_the_standard() -> None:
    ended = validate(EXAMPLES)
    assert (ended.returncode, ended.stdout) == (0, "6 checked, 0 errors, 0 warnings\n")


def test_all_problems_come_at_once_with_file_and_line(tmp_path: Path) -> None:
    folder = skill_with(tmp_path / "my-skill", "name: My Skill\ndescription: Use when: asked\nlicense:\ntriggers: [a]")
    ended = validate(folder)
    file = folder / "SKILL.md"
    assert ended.returncode == 1
    assert [line.partition(". ")[0] for line in ended.stdout.splitlines()[:-1]] == [
        f"{file}:2: error: 'name' is 'My Skill'; only a-z, 0-9 and single hyphens between them are allowed",
        f"{file}:2: error: 'name' is 'My Skill' but the folder is 'my-skill'; they must be equal",
        f"{file}:3: error: The value of 'description' is not valid YAML; read as text",
        f"{file}:4: error: 'license' must be a text",
        f"{file}:5: warning: 'triggers' is not a field of the open standard; other clients may refuse the skill",
    ]


def test_warnings_alone_pass(tmp_path: Path) -> None:
    folder = skill_with(tmp_path / "tidy", "name: tidy\ndescription: Tidies.\nallowed-tools: Read, Bash\nversion: 1.0")
    ended = validate(folder, "--json")
    structure = json.loads(ended.stdout)
    assert ended.returncode == 0
    assert (structure["errors"], structure["warnings"]) == (0, 2)
    assert [problem["code"] for problem in structure["problems"]] == ["comma-tools", "vendor-field"]


def test_a_folder_without_a_skill_is_an_error(tmp_path: Path) -> None:
    ended = validate(tmp_path)
    assert ended.returncode == 1
    assert "There is no SKILL.md here." in ended.stdout


def test_a_skill_that_cannot_be_looked_at_is_an_error(tmp_path: Path) -> None:
    skill_with(tmp_path / "tidy", "name: tidy\ndescription: Tidies.")
    (tmp_path / "lost").mkdir()
    (tmp_path / "lost/SKILL.md").symlink_to("SKILL.md")
    ended = validate(tmp_path, "--json")
    structure = json.loads(ended.stdout)
    assert (ended.returncode, structure["checked"]) == (1, 1)
    assert [(problem["code"], problem["path"]) for problem in structure["problems"]] == [
        ("unreadable-file", str(tmp_path / "lost/SKILL.md"))
    ]


def test_a_path_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    assert validate(tmp_path / "nowhere").returncode == 2


def test_large_numbers_are_written_one_way(tmp_path: Path) -> None:
    for number in range(1_001):
        folder = tmp_path / f"s{number}"
        folder.mkdir()
        (folder / "SKILL.md").write_text("no frontmatter\n")
    assert validate(tmp_path).stdout.splitlines()[-1] == "1,001 checked, 1,001 errors, 0 warnings"
