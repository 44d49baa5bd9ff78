from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillkit import ConfigurationError
from skillkit.core.find.roots import Root, agent_roots, existing_folder, path_roots, project_roots


def test_none_means_the_usual_folders_that_exist(
    tmp_path: Path, private_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for relative in (".agents/skills", "skills"):
        (tmp_path / relative).mkdir(parents=True)
    (private_home / ".claude/skills").mkdir(parents=True)
    assert project_roots(None) == [Root(tmp_path / "skills", "project"), Root(tmp_path / ".agents/skills", "project")]
    assert agent_roots(None) == [Root(private_home / ".claude/skills", "agent", host="claude")]
    assert path_roots(None) == []


def test_an_empty_text_or_list_means_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "skills").mkdir()
    assert (project_roots(""), agent_roots(""), path_roots([])) == ([], [], [])


def test_a_given_folder_is_used_alone_and_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "skills").mkdir()
    (tmp_path / "mine").mkdir()
    assert project_roots("mine") == [Root(tmp_path / "mine", "project")]
    assert path_roots(["mine", tmp_path]) == [Root(tmp_path / "mine", "path"), Root(tmp_path, "path")]


def test_the_home_folder_may_be_written_as_a_tilde(private_home: Path) -> None:
    (private_home / "mine").mkdir()
    assert agent_roots("~/mine") == [Root(private_home / "mine", "agent")]


@pytest.mark.parametrize("path", ["missing", "file", "a\0b", "~no-such-user-here/skills"])
def test_a_path_that_is_no_folder_is_a_configuration_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"^project_skill_dir: "):
        project_roots(path)


def test_a_folder_reached_through_dots_has_its_real_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    assert existing_folder("..", "x") == Path(os.path.realpath(tmp_path / "a"))


@pytest.mark.skipif(os.name == "nt", reason="a current folder cannot be removed there")
def test_a_current_folder_that_was_deleted_has_no_skills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert project_roots(None) == []
    with pytest.raises(ConfigurationError, match=r"'mine' cannot be found: .* Give an absolute path"):
        project_roots("mine")
