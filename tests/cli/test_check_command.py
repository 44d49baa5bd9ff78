"""`skillkit check`: the decision, its reasons and the walls, with nothing run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.running import kinds
from support.screens import on_screen
from support.skill_folders import skill_folder

from skillkit.cli.main import exit_code_of


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    text = f'touch "{tmp_path}/ran"\n'
    skill_folder(tmp_path / "skills", "demo", files={"scripts/run.sh": text})
    block = "name: closed\ndescription: Closed.\nallowed-tools: Read\n"
    skill_folder(tmp_path / "skills", "closed", frontmatter=block, files={"scripts/run.sh": text})
    return tmp_path / "skills"


def words_for(skills: Path, *words: str) -> list[str]:
    return ["check", *words, "--skills", str(skills), "--state-dir", str(skills.parent / "state")]


@pytest.mark.parametrize(
    ("words", "decision", "code", "reason"),
    [
        pytest.param(("demo", "run"), "ask", 0, "before a skill's first run", id="ask"),
        pytest.param(("demo", "run", "--policy", "standard"), "allow", 0, "Policy allows scripts", id="allow"),
        pytest.param(("demo", "run", "--policy", "locked"), "deny", 126, "set 'allow_scripts'", id="deny"),
        pytest.param(("closed", "run"), "deny", 126, "Tool 'Bash' not allowed", id="tools"),
    ],
)
def test_it_says_what_would_be_decided_and_runs_nothing(
    skills: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], decision: str, code: int, reason: str
) -> None:
    assert exit_code_of(words_for(skills, *words, "--json")) == code
    told = json.loads(capsys.readouterr().out)
    assert (told["schema_version"], told["decision"], told["needs_approval"]) == (1, decision, decision == "ask")
    assert reason in " ".join(told["reasons"])
    assert told["walls"]
    assert exit_code_of(words_for(skills, *words)) == code
    shown = capsys.readouterr().out
    assert f"{decision}: " in shown
    assert reason in shown
    assert not (skills.parent / "ran").exists()
    assert kinds(skills.parent) == []


def test_what_does_not_exist_is_not_found(skills: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("nope", "run"), ("demo", "nope")):
        assert exit_code_of(words_for(skills, *words)) == 127
        assert "nope" in capsys.readouterr().err


def test_on_a_screen_long_sentences_are_folded_between_words(skills: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = words_for(skills, "demo", "run")
    assert exit_code_of(words) == 0
    told = capsys.readouterr().out
    shown = on_screen(*words, width=100)
    assert max(map(len, told.splitlines())) > 100 >= max(map(len, shown))
    assert "".join("".join(shown).split()) == "".join(told.split())
