"""Where settings are looked for when the place itself is odd."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillkit import ConfigurationError
from skillkit.config.files import current_folder, project_file, user_file_place, user_folder


def test_a_named_file_of_nobody_is_an_error_that_names_the_variable() -> None:
    with pytest.raises(ConfigurationError, match=r"SKILLKIT_CONFIG: '~nobody-here/c\.toml' cannot be found"):
        user_file_place({"SKILLKIT_CONFIG": "~nobody-here/c.toml"})


def test_a_named_file_must_be_there_and_the_usual_one_need_not(tmp_path: Path) -> None:
    assert user_file_place({"SKILLKIT_CONFIG": str(tmp_path / "c.toml")}) == (tmp_path / "c.toml", True)
    assert user_file_place({"XDG_CONFIG_HOME": str(tmp_path)}) == (tmp_path / "skillkit" / "config.toml", False)


def test_a_relative_folder_for_settings_is_none_because_a_project_could_fill_it(private_home: Path) -> None:
    assert user_folder({"XDG_CONFIG_HOME": "here"}) == str(private_home / ".config" / "skillkit")


def test_a_user_whose_home_is_no_absolute_folder_has_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "here")
    assert user_file_place({}) == (None, False)


def test_a_current_folder_that_was_deleted_holds_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert current_folder() is None
    assert project_file(None) is None


def test_a_folder_that_cannot_be_searched_is_named() -> None:
    with pytest.raises(ConfigurationError, match="is no folder that can be searched"):
        project_file(Path("/tmp/a\0b"))
