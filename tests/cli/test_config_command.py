"""`skillkit config`, run as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.config_files import Machine

from skillkit.config.keys import KEYS

# The command as `skillkit` knows it, also where the list of commands does not name it.
PROGRAM = "from skillkit.cli import main; main.COMMANDS['config'] = 'config:config'; main.main()"


def config(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, "config", *words], capture_output=True, text=True, check=False, cwd=folder
    )


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    machine.user("[policy]\ntimeout_seconds = 60\n")
    machine.repository("profile = 'locked'\n[policy]\nlimits.processes = 5\n")
    monkeypatch.setenv("SKILLKIT_CONFIG", str(machine.user_file))
    return machine


def test_every_setting_is_shown_with_its_origin(machine: Machine) -> None:
    ended = config(machine.project, "show")
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = {line.split()[0]: line for line in ended.stdout.splitlines()}
    assert list(lines) == list(KEYS)
    assert lines["profile"].endswith(f'= "locked"{" " * 34}# {machine.project_file}:1')
    assert lines["policy.timeout_seconds"].endswith(f"# {machine.user_file}:2")
    assert lines["policy.limits.processes"].endswith(f"# {machine.project_file}:3")
    assert lines["policy.sandbox"].endswith("# profile locked")
    assert lines["skills.paths"].endswith("# default")


def test_the_columns_are_aligned(machine: Machine) -> None:
    lines = config(machine.project, "show").stdout.splitlines()
    assert {line.index(" = ") for line in lines} == {max(map(len, KEYS))}
    assert len({line.index("  # ") for line in lines if "allowed_interpreters" not in line}) == 1


def test_what_is_shown_is_toml_that_says_the_same(machine: Machine) -> None:
    shown = tomllib.loads(config(machine.project, "show").stdout)
    assert shown["policy"]["limits"]["processes"] == 5
    assert shown["policy"]["approval"] == "always"
    machine.user(config(machine.project, "show").stdout)
    assert machine.settings().policy.limits.processes == 5


def test_json_has_value_file_and_line(machine: Machine) -> None:
    ended = config(machine.project, "show", "--json")
    structure = json.loads(ended.stdout)
    assert next(iter(structure)) == "schema_version"
    assert list(structure["settings"]) == list(KEYS)
    assert structure["settings"]["policy.timeout_seconds"] == {
        "value": 60,
        "from": [{"kind": "user", "file": str(machine.user_file), "line": 2}],
    }
    assert structure["settings"]["policy.sandbox"] == {
        "value": "required",
        "from": [{"kind": "profile locked", "file": None, "line": None}],
    }
    assert (structure["profile"], structure["is_trusted_project"]) == ("locked", False)


def test_a_wrong_file_is_an_error_with_its_line(machine: Machine) -> None:
    machine.repository("\npolicy.aproval = 1\n")
    ended = config(machine.project, "show")
    assert (ended.returncode, ended.stdout) == (125, "")
    assert ended.stderr == (
        f"skillkit: {machine.project_file}:2: 'policy.aproval' is no setting. Did you mean 'policy.approval'?\n"
    )
    as_json = config(machine.project, "show", "--json")
    assert json.loads(as_json.stdout)["error"]["type"] == "ConfigurationError"


def test_control_characters_in_a_file_never_reach_the_terminal(machine: Machine) -> None:
    machine.user('policy.allowed_commands = ["\\u001b[31m", "\\u202e", "\\u007f"]\n')
    shown = config(machine.project, "show").stdout
    assert '["\\u001b[31m", "\\u202e", "\\u007f"]' in shown
    machine.repository('"\\u001b[31m" = 1')
    assert "\x1b" not in config(machine.project, "show").stderr


def test_a_folder_with_a_line_break_in_its_name_stays_in_its_comment(machine: Machine) -> None:
    machine.repository("")
    folder = machine.project / "a\nprofile = 1 #"
    folder.mkdir()
    (folder / "skillkit.toml").write_text("profile = 'locked'")
    (folder / "skillkit.toml").chmod(0o644)
    shown = config(folder, "show").stdout
    assert tomllib.loads(shown)["profile"] == "locked"


def test_the_files_are_named_also_when_they_cannot_be_understood(machine: Machine) -> None:
    machine.repository("][")
    ended = config(machine.project, "path")
    assert (ended.returncode, ended.stdout) == (0, f"user     {machine.user_file}\nproject  {machine.project_file}\n")


def test_where_no_file_is_the_searched_folders_are_named(machine: Machine) -> None:
    machine.project_file.unlink()
    (machine.project / ".git").mkdir()
    machine.user_file.unlink()
    ended = config(machine.project, "path")
    assert ended.stdout == f"user     {machine.user_file} (not there)\nproject  none; looked in {machine.project}\n"
    structure = json.loads(config(machine.project, "path", "--json").stdout)
    assert structure["user"] == {"file": str(machine.user_file), "exists": False}
    assert structure["project"] == {"file": None, "searched": [str(machine.project)]}


def test_in_the_home_folder_nothing_is_searched(machine: Machine, private_home: Path) -> None:
    assert (
        "project  none; looked in nowhere: the search leaves out the home folder" in config(private_home, "path").stdout
    )
    assert machine.project_file.exists()
