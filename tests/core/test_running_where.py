"""Which folder a script starts in when its content decides, through the whole flow."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.running import made_manager, only_record

from skillkit import GUARDED, STANDARD, TRUSTED

AUTO = replace(STANDARD, sandbox="required", working_directory="auto")
WRITER = "import json\nwith open('out.json', 'w') as file:\n    json.dump([1], file)\nprint('written')"
READER = "print(open('config.json').read())"
FILES = {"scripts/write.py": WRITER, "scripts/read.py": READER, "config.json": "of the skill"}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "config.json").write_text("of the workspace")
    return folder


@pytest.mark.usefixtures("tier")
def test_what_a_script_writes_by_a_plain_name_lands_in_the_workspace(tmp_path: Path, workspace: Path) -> None:
    with made_manager(tmp_path, FILES, policy=AUTO, workspace=workspace) as manager:
        result = manager.execute_skill_script("demo", "write")
    assert result.success, result.stderr
    assert json.loads((workspace / "out.json").read_text()) == [1]
    assert only_record(tmp_path, "started")["working_directory"] == "workspace"


@pytest.mark.usefixtures("tier")
def test_a_script_that_reads_its_own_file_gets_it_whatever_the_workspace_holds(tmp_path: Path, workspace: Path) -> None:
    with made_manager(tmp_path, FILES, policy=AUTO, workspace=workspace) as manager:
        assert manager.execute_skill_script("demo", "read").stdout == "of the skill\n"
    assert only_record(tmp_path, "started")["working_directory"] == "skill"


@pytest.mark.usefixtures("tier")
def test_git_finds_the_repository_of_the_workspace(tmp_path: Path, workspace: Path) -> None:
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    script = {"scripts/top.sh": "git rev-parse --show-toplevel"}
    with made_manager(tmp_path, script, policy=AUTO, workspace=workspace) as manager:
        result = manager.execute_skill_script("demo", "top")
    assert result.stdout.strip() == str(workspace), result.stderr


def test_without_a_workspace_it_is_the_skill(tmp_path: Path) -> None:
    policy = replace(TRUSTED, working_directory="auto")
    with made_manager(tmp_path, {"scripts/where.sh": "pwd"}, policy=policy) as manager:
        assert manager.execute_skill_script("demo", "where").stdout.strip() == str(tmp_path / "skills/demo")


@pytest.mark.parametrize(
    ("script", "said"), [("write", "It starts in the workspace."), ("read", "the skill's folder.")]
)
def test_the_question_says_where_it_starts(script: str, said: str, tmp_path: Path, workspace: Path) -> None:
    policy = replace(GUARDED, working_directory="auto")
    with made_manager(tmp_path, FILES, policy=policy, workspace=workspace) as manager:
        request = manager.prepare_skill_script("demo", script).request
    assert request is not None
    assert said in str(request.context)


def skillkit(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "skillkit", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.slow
def test_the_command_line_lets_content_decide(tmp_path: Path, workspace: Path) -> None:
    made_manager(tmp_path, FILES).close()
    skills = str(tmp_path / "skills")
    assert skillkit("run", "demo", "write", "--yes", "--skills", skills, folder=workspace).returncode == 0
    assert (workspace / "out.json").exists()
    assert skillkit("run", "demo", "read", "--yes", "--skills", skills, folder=workspace).stdout == "of the skill\n"
    shown = json.loads(skillkit("config", "show", "--json", folder=workspace).stdout)
    assert shown["settings"]["policy.working_directory"]["value"] == "auto"


def test_a_setting_is_stronger_than_the_command_lines_own(tmp_path: Path, workspace: Path) -> None:
    made_manager(tmp_path, FILES).close()
    (workspace / "skillkit.toml").write_text('[policy]\nworking_directory = "skill"\n')
    ended = skillkit("run", "demo", "write", "--yes", "--skills", str(tmp_path / "skills"), folder=workspace)
    assert ended.returncode != 0
    assert not (workspace / "out.json").exists()
