from __future__ import annotations

from pathlib import Path

import pytest

from skillkit.core.exceptions import ScriptNotFoundError, ScriptPermissionError, StateUnavailableError
from skillkit.core.models.digest import manifest_of
from skillkit.core.resolve import CallArguments, resolve_program
from skillkit.core.values.policy import TRUSTED
from skillkit.core.values.runs import ScriptCommand


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "greet"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\necho hi\n")
    path.chmod(0o755)
    return path


def resolved(folder: Path, name: str, *, path: str | None = None, workspace: Path | None = None) -> ScriptCommand:
    call = CallArguments(name, argv=("a b",), workspace=workspace)
    own = {"PATH": path or str(folder / "bin"), "LANG": "C", "SECRET": "x"}
    return resolve_program(call, TRUSTED, own, state_folder=folder / "state")


def test_a_program_is_found_on_path_and_gets_its_words(tmp_path: Path, program: Path) -> None:
    command = resolved(tmp_path, "greet")
    assert command.argv == (str(program), "a b")
    assert (command.is_program, command.skill_name, command.script_path) == (True, "(program)", program)
    assert set(command.environment) & {"SECRET", "SKILL_NAME", "SKILL_BASE_DIR"} == set()
    assert command.environment["LANG"] == "C"


def test_its_card_says_what_it_is_and_the_digest_is_of_the_card(tmp_path: Path, program: Path) -> None:
    before = resolved(tmp_path, "greet")
    assert resolved(tmp_path, "greet") == before
    assert before.manifest == manifest_of(before.base_directory)
    assert f"Path: {program}\n" in (before.base_directory / "greet").read_text()
    program.write_text("#!/bin/sh\necho other\n")
    after = resolved(tmp_path, "greet")
    assert after.base_directory == before.base_directory
    assert after.digest != before.digest


@pytest.mark.usefixtures("program")
def test_what_was_left_beside_a_card_goes_away(tmp_path: Path) -> None:
    before = resolved(tmp_path, "greet")
    (before.base_directory / "left").write_text("x")
    (before.base_directory / "folder" / "deep").mkdir(parents=True)
    (before.base_directory / "greet").write_text("forged")
    assert resolved(tmp_path, "greet").manifest == before.manifest


def test_it_stands_in_the_workspace_if_there_is_one(tmp_path: Path, program: Path) -> None:
    assert program.exists()
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    assert resolved(tmp_path, "greet", workspace=workspace).cwd == str(workspace)
    command = resolved(tmp_path, "greet")
    assert command.cwd == str(command.base_directory)


def test_a_link_is_followed_for_its_content(tmp_path: Path, program: Path) -> None:
    (tmp_path / "bin" / "hello").symlink_to(program)
    before = resolved(tmp_path, "hello")
    assert before.argv[0] == str(tmp_path / "bin" / "hello")
    program.write_text("#!/bin/sh\necho other\n")
    assert resolved(tmp_path, "hello").digest != before.digest


@pytest.mark.parametrize("name", ["none", "", ".", "..", "/bin/sh", "../bin/greet", "a\nb", ".git"])
def test_what_is_no_name_of_a_program_is_not_found(tmp_path: Path, program: Path, name: str) -> None:
    assert program.exists()
    with pytest.raises(ScriptNotFoundError, match="There is no program"):
        resolved(tmp_path, name, path=f"{program.parent}:/bin")


def test_a_program_below_the_workspace_is_passed_over(tmp_path: Path, program: Path) -> None:
    planted = tmp_path / "workspace" / "bin" / "greet"
    planted.parent.mkdir(parents=True)
    planted.symlink_to(program)
    path = f"{planted.parent}:{program.parent}"
    assert resolved(tmp_path, "greet", path=path, workspace=tmp_path / "workspace").script_path == program
    with pytest.raises(ScriptNotFoundError):
        resolved(tmp_path, "greet", path=str(planted.parent), workspace=tmp_path / "workspace")


def test_a_setuid_program_is_refused(tmp_path: Path, program: Path) -> None:
    program.chmod(0o4755)
    with pytest.raises(ScriptPermissionError, match="setuid"):
        resolved(tmp_path, "greet")


@pytest.mark.usefixtures("program")
def test_a_state_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(StateUnavailableError, match="No card of the program 'greet'"):
        resolved(tmp_path, "greet")
