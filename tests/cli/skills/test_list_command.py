"""`skillkit list`, run as a user runs it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from support.skill_folders import skill_folder

from skillkit import ConfigurationError
from skillkit.cli.main import COMMANDS, cli

COMMAND = [sys.executable, "-m", "skillkit"]


def skillkit(*words: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}
    )


def write_skill(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    return folder


@pytest.fixture
def two_skills(tmp_path: Path) -> Path:
    write_skill(tmp_path / "alpha", "---\nname: alpha\ndescription: First thing.\n---\nDo it.\n")
    write_skill(tmp_path / "beta", "---\nname: beta\ndescription: Second thing.\n---\nDo it.\n")
    return tmp_path


def test_the_table_names_each_skill_and_counts_them(two_skills: Path) -> None:
    ended = skillkit("list", "--skills", two_skills)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == [
        "  SKILL  FROM  DESCRIPTION",
        "  alpha  path  First thing.",
        "  beta   path  Second thing.",
        "",
        "2 skills",
    ]


def test_json_is_one_object_with_its_schema_version_first(two_skills: Path) -> None:
    ended = skillkit("list", "--skills", two_skills, "--json")
    structure = json.loads(ended.stdout)
    assert next(iter(structure)) == "schema_version"
    assert [skill["name"] for skill in structure["skills"]] == ["alpha", "beta"]
    assert structure["diagnostics"] == []


def test_a_skipped_skill_is_counted_and_explained_on_request(two_skills: Path) -> None:
    bad = write_skill(two_skills / "bad", "no frontmatter here\n")
    ended = skillkit("list", "--skills", two_skills)
    assert ended.returncode == 0
    assert "2 skills" in ended.stdout
    assert ended.stderr == "1 skipped; '--problems' says why.\n"
    explained = skillkit("list", "--skills", two_skills, "--problems")
    assert explained.stderr.startswith(f"{bad / 'SKILL.md'}:1: error: There is no frontmatter.")


def test_without_skills_it_says_where_it_looked_and_how_to_get_some(tmp_path: Path) -> None:
    ended = skillkit("list", "--skills", tmp_path)
    assert (ended.returncode, ended.stdout) == (0, f"No skills found. Looked in: {tmp_path}\n")
    named = re.findall(r"skillkit (\w+)", ended.stderr)
    assert named == ["add", "new", "demo"]
    assert set(named) <= set(COMMANDS)


def test_a_folder_that_does_not_exist_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    ended = skillkit("list", "--skills", tmp_path / "nowhere")
    assert ended.returncode == 125
    assert "is not a folder. Create it, correct the path, or leave the setting out." in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("list",),
        ("show", "demo"),
        ("check", "demo", "run"),
        ("run", "demo", "run"),
        ("trust", "add", "demo"),
        ("trust", "diff", "demo"),
        ("mcp",),
        ("web",),
        ("chat", "--model", "a-model"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("option", ["--skills", "--plugin"])
def test_a_folder_that_does_not_exist_is_told_by_the_option_that_named_it(words: tuple[str, ...], option: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{option}: /nowhere/at/all is not a folder"):
        cli.main([*words, option, "/nowhere/at/all"], standalone_mode=False)


def test_a_folder_that_a_variable_named_is_told_by_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLKIT_SKILLS", "/nowhere/at/all")
    with pytest.raises(ConfigurationError, match=r"^\$SKILLKIT_SKILLS: /nowhere/at/all is not a folder"):
        cli.main(["list"], standalone_mode=False)


def test_an_error_is_json_when_json_was_asked_for(tmp_path: Path) -> None:
    ended = skillkit("list", "--skills", tmp_path / "nowhere", "--json")
    assert json.loads(ended.stdout)["error"]["type"] == "ConfigurationError"


def test_control_characters_in_a_description_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    write_skill(tmp_path / "evil", '---\nname: evil\ndescription: "red \\e[31m and \\u202ehidden"\n---\n')
    ended = skillkit("list", "--skills", tmp_path)
    assert "\x1b" not in ended.stdout
    assert "\u202e" not in ended.stdout
    assert "red \ufffd[31m and \\u202ehidden" in ended.stdout


def test_a_mistyped_command_is_answered_with_the_nearest() -> None:
    ended = skillkit("lst")
    assert ended.returncode == 2
    assert "Did you mean 'list'?" in ended.stderr


def test_a_reader_that_stops_early_is_no_error(two_skills: Path) -> None:
    """As in `skillkit list | head -1`."""
    process = subprocess.Popen(
        [*COMMAND, "list", "--skills", two_skills], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0


@pytest.mark.parametrize(("no_color", "is_bold"), [("", True), ("1", False)])
def test_a_terminal_gets_colours_unless_its_user_wants_none(two_skills: Path, no_color: str, is_bold: bool) -> None:
    ours, theirs = os.openpty()
    with open(ours, "rb", buffering=0) as screen:
        subprocess.run(
            [*COMMAND, "list", "--skills", two_skills],
            stdout=theirs,
            stderr=subprocess.DEVNULL,
            check=True,
            env={**os.environ, "NO_COLOR": no_color},
        )
        os.close(theirs)
        shown = screen.read(10_000)
    assert b"SKILL" in shown
    assert (b"\x1b[1m" in shown) is is_bold


@pytest.mark.parametrize("words", [(), ("list",), ("show",), ("validate",), ("demo",)])
def test_every_command_explains_itself(words: tuple[str, ...]) -> None:
    ended = skillkit(*words, "--help")
    assert ended.returncode == 0
    assert "Usage: skillkit" in ended.stdout


def test_completion_offers_the_names_of_skills(two_skills: Path) -> None:
    words = f"skillkit show --skills {two_skills} "
    ended = subprocess.run(
        COMMAND,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "_SKILLKIT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "4"},
    )
    assert ended.stdout.splitlines() == ["plain,alpha", "plain,beta"]


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(
    ("begun", "offered"),
    [
        ("", ["scripts/a/same.sh", "scripts/b/same.sh", "start", "stop"]),
        ("st", ["start", "stop"]),
        ("scripts/", ["scripts/a/same.sh", "scripts/b/same.sh", "scripts/start.py", "scripts/stop.sh"]),
        ("x", []),
    ],
)
def test_completion_offers_the_scripts_of_the_skill_that_was_named(
    tmp_path: Path, command: str, begun: str, offered: list[str]
) -> None:
    files = dict.fromkeys(("scripts/start.py", "scripts/stop.sh", "scripts/a/same.sh", "scripts/b/same.sh"), "\n")
    skill_folder(tmp_path / "skills", "demo", files={**files, "scripts/evil\nplain,injected.sh": ""})

    def offers(skill: str) -> list[str]:
        words = f"skillkit {command} --skills {tmp_path}/skills {skill} {begun}"
        bash = {"_SKILLKIT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": "5"}
        ended = subprocess.run(COMMAND, capture_output=True, text=True, check=True, env={**os.environ, **bash})
        return sorted(line.removeprefix("plain,") for line in ended.stdout.split())

    assert offers("demo") == offered
    assert offers("nowhere") == []


@pytest.mark.parametrize("no_color", ["", "1"])
def test_a_long_walk_shows_a_bar_on_a_terminal_and_removes_it(
    tmp_path: Path, no_color: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    for number in range(2_600):
        (tmp_path / f"folder{number}").mkdir()
    write_skill(tmp_path / "only", "---\nname: only\ndescription: The one.\n---\n")
    child = pexpect.spawn(
        sys.executable, ["-m", "skillkit", "list", "--skills", str(tmp_path)], encoding="utf-8", timeout=60
    )
    seen = child.read()
    child.close()
    assert "Looking for skills" in seen
    assert "Looking for skills" not in seen.rpartition("\r\x1b[K")[2]
    assert "1 skill" in seen.rpartition("\r\x1b[K")[2]


def test_every_name_that_the_list_prints_opens_what_it_names(tmp_path: Path) -> None:
    """Also where several folders of one source have a skill of the same name."""
    for folder in ("a", "b", "c/deeper"):
        write_skill(tmp_path / folder / "same", f"---\nname: same\ndescription: From {folder}.\n---\n")
    ended = skillkit("list", "--all", "--skills", tmp_path, "--json")
    listed = json.loads(ended.stdout)["skills"]
    assert len(listed) == 3
    for skill in listed:
        shown = json.loads(skillkit("show", skill["opens_as"], "--skills", tmp_path, "--json").stdout)
        assert shown["description"] == skill["description"]
    table = skillkit("list", "--all", "--skills", tmp_path).stdout
    assert all(skill["opens_as"] in table for skill in listed)


def test_the_list_says_for_which_host_a_skill_is(tmp_path: Path) -> None:
    for folder in (".claude/skills", ".codex/skills"):
        write_skill(tmp_path / folder / "deploy", "---\nname: deploy\ndescription: Ships it.\n---\n")
    write_skill(tmp_path / ".gemini/skills/other", "---\nname: other\ndescription: Another.\n---\n")
    write_skill(tmp_path / "skills/plain", "---\nname: plain\ndescription: For all.\n---\n")
    ended = subprocess.run([*COMMAND, "list"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == [
        "  SKILL   FROM     HOST           DESCRIPTION",
        "  plain   project                 For all.",
        "  deploy  project  claude, codex  Ships it.",
        "  other   project  gemini         Another.",
        "",
        "3 skills",
    ]
    ended = subprocess.run([*COMMAND, "list", "--json"], cwd=tmp_path, capture_output=True, text=True, check=True)
    plain, deploy, _ = json.loads(ended.stdout)["skills"]
    assert (plain["host"], plain["opens_as"], deploy["host"]) == (None, "plain", "claude")
    assert [(place["host"], place["source"]) for place in deploy["places"]] == [
        ("claude", "project"),
        ("codex", "project"),
    ]


def test_a_long_name_is_not_cut_on_a_terminal(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write_skill(tmp_path / folder / "same", f"---\nname: same\ndescription: From {folder}.\n---\n")
    child = pexpect.spawn(
        sys.executable,
        ["-m", "skillkit", "list", "--all", "--skills", str(tmp_path)],
        encoding="utf-8",
        timeout=60,
        dimensions=(24, 60),
    )
    seen = child.read()
    child.close()
    assert f"  {tmp_path}/b/same\r\n" in seen
