"""Where configuration files are looked for, and which of them are believed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import platformdirs
import pytest
from support.config_files import Machine

from skillkit import ConfigurationError
from skillkit.config import load_settings, project_file, searched_folders, user_file_place
from skillkit.config.files import SIZE_LIMIT_BYTES, may_be_written_by_others


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_users_file_is_where_the_platform_keeps_such_files(private_home: Path) -> None:
    expected = Path(platformdirs.user_config_dir("skillkit", appauthor=False), "config.toml")
    assert user_file_place(os.environ) == (expected, False)
    assert expected.is_relative_to(private_home)


@pytest.mark.parametrize("value", ["/elsewhere", "relative", ""])
def test_a_folder_for_all_settings_counts_as_the_platform_says(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", value)
    expected = Path(platformdirs.user_config_dir("skillkit", appauthor=False), "config.toml")
    assert user_file_place(os.environ)[0] == expected


def test_without_a_home_there_is_no_users_file_and_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "relative")
    assert user_file_place({}) == (None, False)
    assert load_settings(tmp_path, environ={}).profile == "guarded"


def test_the_variable_names_the_users_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("profile = 'locked'")
    file.chmod(0o600)
    assert load_settings(None, environ={"SKILLKIT_CONFIG": str(file)}).profile == "locked"


def test_a_users_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.toml cannot be read: it is not there"):
        load_settings(None, environ={"SKILLKIT_CONFIG": str(tmp_path / "none.toml")})


def test_the_usual_users_file_is_read(private_home: Path) -> None:
    file = private_home / ".config" / "skillkit" / "config.toml"
    assert load_settings(None).profile == "guarded"
    file.parent.mkdir(parents=True, mode=0o700)
    file.write_text("profile = 'locked'")
    file.chmod(0o600)
    assert load_settings(None).profile == "locked"


def test_the_nearest_project_file_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert project_file(inner) is None
    (tmp_path / "skillkit.toml").touch()
    assert project_file(inner) == tmp_path / "skillkit.toml"
    (tmp_path / "a" / "skillkit.toml").touch()
    assert project_file(inner) == tmp_path / "a" / "skillkit.toml"


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_the_search_ends_at_the_top_of_a_repository(tmp_path: Path, kind: str) -> None:
    inner = tmp_path / "repository" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "skillkit.toml").touch()
    assert project_file(inner) is not None
    mark = tmp_path / "repository" / ".git"
    mark.mkdir() if kind == "folder" else mark.touch()
    assert project_file(inner) is None
    assert searched_folders(inner) == [inner, inner.parent]
    (tmp_path / "repository" / "skillkit.toml").touch()
    assert project_file(inner) == tmp_path / "repository" / "skillkit.toml"


def test_the_home_folder_and_what_holds_it_are_never_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "users" / "ann"
    work = home / "work"
    work.mkdir(parents=True)
    for folder in (home, home.parent):
        (folder / "skillkit.toml").touch()
    assert project_file(work) == home / "skillkit.toml"
    monkeypatch.setenv("HOME", str(home))
    assert searched_folders(work) == [work]
    assert searched_folders(home) == []
    assert searched_folders(home.parent) == []
    assert project_file(work) is None


def test_the_root_is_never_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    assert searched_folders(Path("/")) == []
    monkeypatch.setenv("HOME", "/")
    assert Path("/") not in searched_folders(Path("/usr/bin"))


def test_the_search_ends_below_a_folder_in_which_everybody_may_put_a_file(tmp_path: Path) -> None:
    inner = tmp_path / "shared" / "mine"
    inner.mkdir(parents=True)
    assert inner.parent in searched_folders(inner)
    inner.parent.chmod(0o1777)
    assert searched_folders(inner) == [inner]
    assert searched_folders(inner.parent)[0] == inner.parent


def test_the_search_ends_at_another_filesystem() -> None:
    mounted = [Path(path) for path in ("/dev/pts", "/dev/mqueue", "/sys/fs/cgroup") if os.path.ismount(path)]
    if not mounted:
        pytest.skip("no other filesystem is mounted here")
    for folder in mounted:
        assert searched_folders(folder) == [folder]


def test_without_a_start_nothing_is_searched() -> None:
    assert searched_folders(None) == []
    assert project_file(None) is None


def test_a_start_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match=r"cannot be searched for skillkit\.toml: Not a directory"):
        project_file(tmp_path / "file")


def test_a_byte_order_mark_and_windows_line_ends_are_fine(machine: Machine) -> None:
    machine.repository("\ufeff# first\r\n[policy]\r\nallow_scripts = false\r\n")
    origin = machine.settings().origins["policy.allow_scripts"]
    assert (origin.value, origin.places[0].line) == (False, 3)


def test_what_is_not_utf8_is_refused_with_its_line(machine: Machine) -> None:
    machine.repository("")
    machine.project_file.write_bytes(b"# fine\n# caf\xe9\n")
    assert machine.refusal() == f"{machine.project_file}:2: byte 12 is not UTF-8. Save the file as UTF-8."


def test_a_file_over_the_limit_is_refused_and_one_at_the_limit_is_not(machine: Machine) -> None:
    machine.repository("#" * SIZE_LIMIT_BYTES)
    assert machine.settings().profile == "guarded"
    machine.repository("#" * (SIZE_LIMIT_BYTES + 1))
    assert "is larger than 64,000 bytes" in machine.refusal()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_no_regular_file_is_refused_at_once(machine: Machine, make: object) -> None:
    machine.repository("")
    machine.project_file.unlink()
    make(machine.project_file)  # type: ignore[operator]
    assert any(said in machine.refusal() for said in ("is not a regular file", "it is a folder"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
def test_an_unreadable_file_is_refused(machine: Machine) -> None:
    machine.repository("").chmod(0)
    assert "cannot be read: Permission denied. Make it readable for this user." in machine.refusal()


@pytest.mark.parametrize("target", ["/etc/passwd", "other.toml", "nowhere"])
def test_a_projects_link_is_refused_and_nothing_behind_it_is_shown(machine: Machine, target: str) -> None:
    machine.repository("")
    (machine.project / "other.toml").write_text("secret = 1")
    machine.project_file.unlink()
    machine.project_file.symlink_to(target)
    message = machine.refusal()
    assert message.endswith("cannot be read: a project's file may not be a link. Replace the link by a copy.")


def test_the_users_file_may_be_a_link(machine: Machine) -> None:
    machine.user("profile = 'locked'").rename(machine.folder / "own" / "dotfiles.toml")
    machine.user_file.symlink_to("dotfiles.toml")
    assert machine.settings().profile == "locked"


@pytest.mark.parametrize("who", ["user", "project"])
def test_a_file_that_everybody_can_write_is_refused(machine: Machine, who: str) -> None:
    file = machine.user("") if who == "user" else machine.repository("")
    assert machine.settings().profile == "guarded"
    file.chmod(0o646)
    assert machine.refusal() == f"{file} can be written by everybody. Take that away: chmod o-w {file}"


def test_a_folder_that_others_can_write_makes_the_users_file_worthless(machine: Machine) -> None:
    folder = machine.user("").parent
    folder.chmod(0o757)
    assert machine.refusal() == f"{folder} can be written by others. Take that away: chmod go-w {folder}"
    folder.chmod(0o1757)
    assert machine.settings().profile == "guarded"


def test_the_folder_behind_a_users_link_counts_too(machine: Machine, tmp_path: Path) -> None:
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    machine.user("").rename(dotfiles / "skillkit.toml")
    machine.user_file.symlink_to(dotfiles / "skillkit.toml")
    assert machine.settings().profile == "guarded"
    dotfiles.chmod(0o777)
    assert f"{dotfiles} can be written by others" in machine.refusal()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_somebody_elses_file_may_tighten_but_never_loosen(machine: Machine) -> None:
    machine.repository("profile = 'locked'")
    os.chown(machine.project_file, 12345, 12345)
    assert machine.settings().profile == "locked"
    machine.trusting()
    assert f"{machine.project_file} belongs to user 12345" in machine.refusal()
    os.chown(machine.project_file, 0, 0)
    os.chown(machine.user_file, 12345, 12345)
    assert f"{machine.user_file} belongs to user 12345" in machine.refusal()


@pytest.mark.parametrize(
    ("mode", "group", "expected"),
    [
        (0o100644, 7, False),
        (0o100664, 1000, False),
        (0o100664, 7, True),
        (0o100646, 1000, True),
        (0o040775, 7, True),
        (0o041777, 7, False),
    ],
)
def test_a_private_group_and_a_sticky_folder_are_as_good_as_ones_own(mode: int, group: int, expected: bool) -> None:
    status = os.stat_result((mode, 0, 0, 1, 1000, group, 0, 0, 0, 0))
    assert stat.S_IMODE(status.st_mode) == mode & 0o7777
    assert may_be_written_by_others(status) is expected
