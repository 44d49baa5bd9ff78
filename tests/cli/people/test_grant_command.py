"""`skillkit grant` as a person and as a program see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.skill_folders import skill_folder

from skillkit import ConfigurationError, SkillManager
from skillkit.cli.people.grant import grant
from skillkit.core.models.digest import manifest_of
from skillkit.core.values.needs import Grant


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    return skill_folder(tmp_path.resolve() / "skills", "demo", files={"scripts/run.sh": "echo one\n"})


def run(*words: str, folder: Path, stdin: str | None = None) -> Result:
    places = [] if words[0] in ("list", "remove") else ["--skills", str(folder / "skills")]
    return CliRunner().invoke(grant, [*words, *places, "--state-dir", str(folder / "state")], input=stdin)


def granted(folder: Path) -> tuple[Grant, ...]:
    with SkillManager(folder / "skills", "", [], [], state_dir=folder / "state") as manager:
        return manager.grants("demo")


def test_it_shows_what_is_granted_asks_and_keeps_it(tmp_path: Path, skill: Path) -> None:
    result = run("demo", "--secret", "API_KEY", "--variable", "TEAM", folder=tmp_path, stdin="y\n")
    assert result.exit_code == 0
    assert f"digest  {manifest_of(skill).digest}" in result.stderr
    assert "grant   the key API_KEY" in result.stderr
    assert result.stdout.endswith("Granted to demo: the key API_KEY.\nGranted to demo: the variable TEAM.\n")
    assert granted(tmp_path) == (Grant("secret", "API_KEY"), Grant("variable", "TEAM"))


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_a_no_and_silence_grant_nothing(tmp_path: Path, skill: Path, answer: str) -> None:
    assert skill.is_dir()
    result = run("demo", "--secret", "API_KEY", folder=tmp_path, stdin=answer)
    assert (result.exit_code, granted(tmp_path)) == (126, ())
    assert "Nothing is granted" in result.stderr


def test_yes_is_for_unattended_use_and_json_for_programs(tmp_path: Path, skill: Path) -> None:
    (tmp_path / "out").mkdir()
    words = ("demo", "--write", str(tmp_path / "out"), "--host", "API.example.com", "--private", "--yes", "--json")
    result = run(*words, folder=tmp_path)
    assert [each["grant"] for each in json.loads(result.stdout)["granted"]] == [
        "host:api.example.com private",
        f"write:{(tmp_path / 'out').resolve()}",
    ]
    listed = json.loads(run("list", "--json", folder=tmp_path).stdout)["grants"]
    assert [(each["skill"], each["channel"], each["now"]) for each in listed] == [
        ("demo", "cli", "holds"),
        ("demo", "cli", "holds"),
    ]
    (skill / "scripts/run.sh").write_text("echo two\n")
    assert {each["now"] for each in json.loads(run("list", "--json", folder=tmp_path).stdout)["grants"]} == {"changed"}


def test_a_guarded_name_is_granted_with_a_warning(tmp_path: Path, skill: Path) -> None:
    assert skill.is_dir()
    (tmp_path / "work/.git").mkdir(parents=True)
    result = run("demo", "--write", str(tmp_path / "work/.git"), folder=tmp_path, stdin="n\n")
    assert "can act in your name later" in " ".join(result.stderr.split())


def test_what_can_never_be_given_names_the_rule(tmp_path: Path, skill: Path) -> None:
    assert skill.is_dir()
    for words in (("--variable", "LD_PRELOAD"), ("--read", "/etc"), ("--host", "no host"), ("--host", "127.0.0.1")):
        result = run("demo", *words, "--yes", folder=tmp_path)
        assert isinstance(result.exception, ConfigurationError), words
    private = run("demo", "--host", "10.0.0.1", "--yes", folder=tmp_path)
    assert "--private" in str(private.exception)
    assert run("demo", folder=tmp_path).exit_code == 2
    assert run("demo", "--private", "--secret", "A", folder=tmp_path).exit_code == 2
    assert granted(tmp_path) == ()


def test_a_key_is_no_plain_variable(tmp_path: Path, skill: Path) -> None:
    assert skill.is_dir()
    refused = run("demo", "--variable", "AWS_SECRET_ACCESS_KEY", "--yes", folder=tmp_path)
    assert "--secret AWS_SECRET_ACCESS_KEY" in str(refused.exception)
    assert granted(tmp_path) == ()
    assert run("demo", "--secret", "AWS_SECRET_ACCESS_KEY", "--yes", folder=tmp_path).exit_code == 0, "the remedy"


def test_grants_are_listed_and_taken_back(tmp_path: Path, skill: Path) -> None:
    assert "Nothing is granted" in run("list", folder=tmp_path).stderr
    run("demo", "--secret", "A_KEY", "--secret", "B_KEY", "--read", str(skill.parent), "--yes", folder=tmp_path)
    table = run("list", folder=tmp_path).stdout
    assert "secret:A_KEY" in table
    assert "holds" in table
    result = run("remove", "demo", "--secret", "A_KEY", folder=tmp_path)
    assert result.stdout == "No longer granted to demo: the key A_KEY.\n"
    assert run("remove", "demo", "--secret", "A_KEY", folder=tmp_path).exit_code == 127
    result = run("remove", "demo", "--json", folder=tmp_path)
    assert [each["name"] for each in json.loads(result.stdout)["removed"]] == ["B_KEY", str(skill.parent)]
    assert granted(tmp_path) == ()


def test_a_skill_may_be_called_like_a_command(tmp_path: Path) -> None:
    skill_folder(tmp_path / "skills", "list", files={"scripts/run.sh": "echo one\n"})
    result = run("add", "list", "--variable", "TEAM", "--yes", folder=tmp_path)
    assert result.stdout == "Granted to list: the variable TEAM.\n"


def test_the_help_of_remove_tells_what_is_taken_back(tmp_path: Path) -> None:
    told = " ".join(run("remove", "--help", folder=tmp_path).stdout.split())
    assert "Let it reach this host no more." in told
    assert "masked wherever" not in told
