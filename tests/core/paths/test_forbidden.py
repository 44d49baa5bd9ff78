"""What no call opens to a script."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from skillkit.core.paths.forbidden import forbidden_paths


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home" / "me"
    for name in (".ssh", ".config", "data"):
        (folder / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    return folder


def is_closed(path: Path | str, state: Path | None = None) -> bool:
    return forbidden_paths(state).covers(str(path))


def test_keys_state_home_and_the_machine_are_never_granted(home: Path, tmp_path: Path) -> None:
    state = tmp_path / "elsewhere/state"
    state.mkdir(parents=True)
    for path in (
        *("/", "/etc/passwd", "/proc/1", "/dev/sda", "/run", "/var", str(home), str(home.parent), str(tmp_path)),
        *(home / ".ssh", home / ".ssh/id_rsa", home / ".aws", home / ".config", home / ".config/gh/hosts.yml"),
        *(home / ".netrc", state, state / "state.sqlite3", state.parent),
    ):
        assert is_closed(path, state), path


def test_data_of_the_user_is_granted(home: Path, tmp_path: Path) -> None:
    assert not is_closed(home / "data" / "a.csv", tmp_path / "state")
    assert not is_closed("/usr/share/dict", tmp_path / "state")
    assert not is_closed(home / "data-of-.ssh")


def test_without_a_state_folder_the_rest_stays_closed(home: Path) -> None:
    assert is_closed(home / ".ssh")
    assert not is_closed(home / "data")


def test_links_of_the_user_are_seen_through(home: Path, tmp_path: Path) -> None:
    (tmp_path / "vault/gh").mkdir(parents=True)
    (home / ".config/gh").symlink_to(tmp_path / "vault/gh")
    for path in (tmp_path / "vault/gh/hosts.yml", tmp_path / "vault/gh", tmp_path / "vault"):
        assert is_closed(path), path


def test_a_home_folder_that_is_a_link_counts_as_what_it_leads_to(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(home)
    monkeypatch.setenv("HOME", str(tmp_path / "link"))
    assert is_closed(home)
    assert is_closed(home / ".netrc")


def test_the_accounts_own_home_stays_closed_whatever_home_says(home: Path) -> None:
    account = os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
    assert str(home) != account
    assert is_closed(account)
    assert is_closed(os.path.join(account, ".netrc"))


def test_keys_and_homes_of_others_stay_closed(tmp_path: Path) -> None:
    assert is_closed("/mnt/copy/bob/.ssh/id_rsa")
    assert is_closed("/srv/.aws")
    (tmp_path / "bob/.gnupg").mkdir(parents=True)
    assert is_closed(tmp_path / "bob")
    assert not is_closed(tmp_path / "bobs-data")
