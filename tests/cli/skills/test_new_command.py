"""`skillkit new`: what it makes is valid, runs and passes its own test, in every language."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.running import needs

from skillkit.cli.main import exit_code_of
from skillkit.cli.skills.authoring import LANGUAGES
from skillkit.core.values.policy import GUARDED


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capfd: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert exit_code_of(list(words)) == code
    told = capfd.readouterr()
    return told.out + told.err


def test_every_language_that_policy_allows_has_a_scaffold() -> None:
    assert {language.program for language in LANGUAGES.values()} == set(GUARDED.allowed_interpreters)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_skill_is_valid_and_runs_and_passes_its_own_test(
    here: Path, capfd: pytest.CaptureFixture[str], language: str
) -> None:
    program = LANGUAGES[language].program
    needs(program)
    made = json.loads(said(capfd, "new", "tea-list", "--language", language, "--json"))
    assert said(capfd, "validate", made["folder"]) == "1 checked, 0 errors, 0 warnings\n"
    assert (
        said(capfd, "run", "tea-list", "checklist", "--yes", "--", "buy tea", "grüßen")
        == "- [ ] buy tea\n- [ ] grüßen\n"
    )
    by_json = ["--input", '{"items": ["buy tea"]}']
    assert said(capfd, "run", "tea-list", "checklist", "--yes", *by_json) == "- [ ] buy tea\n"
    assert "no item" in said(capfd, "run", "tea-list", "checklist", "--yes", "--input", '{"items": []}', code=1)
    tested = subprocess.run(made["next"]["test"].split(), capture_output=True, text=True, check=False, cwd=here)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    script = here / "skills/tea-list/scripts" / LANGUAGES[language].script
    script.write_text(script.read_text().replace("- [", "* ["))
    broken = subprocess.run(made["next"]["test"].split(), capture_output=True, text=True, check=False, cwd=here)
    assert broken.returncode != 0, "the test of the scaffold notices no fault"


def test_what_was_made_and_what_to_do_next_is_said(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert said(capfd, "new", "tea-list") == (
        "Made skills/tea-list\n"
        "  SKILL.md\n  scripts/checklist.py\n  tests/test_checklist.py\n"
        "\nNext\n"
        "  edit      skills/tea-list/SKILL.md and skills/tea-list/scripts/checklist.py\n"
        "  test      python3 skills/tea-list/tests/test_checklist.py\n"
        "  validate  skillkit validate skills/tea-list\n"
        "  run       skillkit run tea-list checklist -- 'buy tea' 'boil water'\n"
    )
    assert "checklist" in said(capfd, "show", "tea-list")
    assert [path.name for path in (here / "skills").iterdir()] == ["tea-list"]


@pytest.mark.parametrize("there", ["folder", "file", "broken link"])
def test_nothing_that_exists_is_overwritten(here: Path, capfd: pytest.CaptureFixture[str], there: str) -> None:
    place = here / "skills" / "tea-list"
    place.parent.mkdir()
    if there == "folder":
        place.mkdir()
    elif there == "file":
        place.write_text("mine")
    else:
        os.symlink("nowhere", place)
    before = place.lstat()
    assert "already exists and is left as it is" in said(capfd, "new", "tea-list", code=125)
    assert place.lstat() == before
    assert list(place.parent.iterdir()) == [place]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("Tea List", " Try 'tea-list'."),
        ("../tea", " Try 'tea'."),
        ("tea/list", " Try 'tea-list'."),
        ("", ""),
        ("ü", ""),
        ("tea\n", " Try 'tea'."),
        ("t" * 65, f" Try '{'t' * 64}'."),
    ],
)
def test_a_bad_name_is_wrong_usage_and_a_good_one_is_suggested(
    here: Path, capfd: pytest.CaptureFixture[str], name: str, advice: str
) -> None:
    assert f"at most 64 characters.{advice}\n" in said(capfd, "new", name, code=2)
    assert list(here.iterdir()) == []


def test_a_description_says_exactly_what_was_given(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    description = 'Plans "tea": @title@, ünd \\ more. Use when: it\'s cold. # no comment'
    said(capfd, "new", "tea-list", "--dir", "other place", "--description", description)
    listed = json.loads(said(capfd, "list", "--skills", str(here / "other place"), "--json"))
    assert [skill["description"] for skill in listed["skills"]] == [description]


@pytest.mark.parametrize("description", ["", "d" * 1025, "Writes <b>."])
def test_a_description_against_the_standard_makes_nothing(
    here: Path, capfd: pytest.CaptureFixture[str], description: str
) -> None:
    assert "Invalid value for '--description'" in said(capfd, "new", "tea-list", "--description", description, code=2)
    assert list(here.rglob("SKILL.md")) == []


def test_a_folder_that_cannot_be_used_is_named(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "taken").write_text("")
    told = said(capfd, "new", "tea-list", "--dir", "taken/skills", code=125)
    assert told == "skillkit: taken/skills/tea-list cannot be made: Not a directory. Choose another --dir.\n"


def test_completion_offers_the_languages() -> None:
    words = {"COMP_WORDS": "skillkit new x --language ", "COMP_CWORD": "4", "_SKILLKIT_COMPLETE": "bash_complete"}
    ended = subprocess.run(
        [sys.executable, "-c", "from skillkit.cli.main import cli; cli(prog_name='skillkit')"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **words},
    )
    assert ended.stdout.split() == [f"plain,{language}" for language in LANGUAGES]
