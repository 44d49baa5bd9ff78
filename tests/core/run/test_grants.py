"""Which paths a call's arguments open, and which never."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillkit.core.run.grants import is_never_granted, named_path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home" / "me"
    for name in (".ssh", ".aws", "data"):
        (folder / name).mkdir(parents=True)
    (folder / ".ssh" / "id_rsa").write_text("key")
    (folder / "data" / "a.csv").write_text("1")
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.mark.parametrize("form", ["{0}", "--file={0}", "file={0}"])
def test_an_existing_absolute_path_is_recognised(home: Path, form: str) -> None:
    path = home / "data" / "a.csv"
    assert named_path(form.format(path)) == str(path)


@pytest.mark.parametrize("text", ["a.csv", "~/data", "", "/nowhere/at/all", "/\0", "http://host/usr", "x" * 100_000])
def test_other_text_names_no_path(text: str) -> None:
    assert named_path(text) == ""


def test_a_link_counts_as_what_it_leads_to(home: Path, tmp_path: Path) -> None:
    (tmp_path / "innocent").symlink_to(home / ".ssh" / "id_rsa")
    path = named_path(str(tmp_path / "innocent"))
    assert path == str(home / ".ssh" / "id_rsa")
    assert is_never_granted(path, tmp_path / "state")


def test_keys_state_home_and_the_machine_are_never_granted(home: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    for path in (
        *("/", "/etc/passwd", "/proc/1", "/dev/sda", "/run", str(home), str(home.parent), str(tmp_path)),
        *(str(home / ".ssh"), str(home / ".ssh/id_rsa"), str(home / ".aws"), str(state), str(state / "state.sqlite3")),
    ):
        assert is_never_granted(path, state), path


def test_data_of_the_user_is_granted(home: Path, tmp_path: Path) -> None:
    assert not is_never_granted(str(home / "data" / "a.csv"), tmp_path / "state")
    assert not is_never_granted("/usr/share/dict", tmp_path / "state")
