"""Where the values of keys come from, and what is not believed."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import keyring as system
import pytest
from keyring.backend import KeyringBackend
from keyring.core import load_keyring

from skillkit import ConfigurationError
from skillkit.core.store.secrets import Secrets, has_keyring


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "secrets"
    made.mkdir(mode=0o700)
    monkeypatch.setenv("SKILLKIT_SECRETS_DIR", str(made))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    return made


class FileKeyring(KeyringBackend):
    """A keyring in a file, as machines without a desktop have one."""

    priority = 1

    def __init__(self, file: Path) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the library says no more
        self.file = file

    def _all(self) -> dict[str, str]:
        return dict(json.loads(self.file.read_text())) if self.file.exists() else {}

    def get_password(self, service: str, username: str) -> str | None:
        return self._all().get(f"{service}/{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self.file.write_text(json.dumps({**self._all(), f"{service}/{username}": password}))

    def delete_password(self, service: str, username: str) -> None:
        kept = self._all()
        del kept[f"{service}/{username}"]
        self.file.write_text(json.dumps(kept))


@pytest.fixture
def keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.delenv("SKILLKIT_SECRETS_DIR", raising=False)
    before = system.get_keyring()
    system.set_keyring(FileKeyring(tmp_path / "keyring.json"))
    yield tmp_path / "keyring.json"
    system.set_keyring(before)


def kept(folder: Path, name: str = "API_KEY", value: str = "of-the-folder\n", mode: int = 0o600) -> Path:
    (folder / "demo").mkdir(mode=0o700, exist_ok=True)
    file = folder / "demo" / name
    file.write_text(value)
    file.chmod(mode)
    return file


def test_the_environment_comes_first_then_the_folder(folder: Path) -> None:
    kept(folder)
    assert Secrets({"API_KEY": "of-the-environment", "SKILLKIT_SECRETS_DIR": str(folder)}).value("demo", "API_KEY") == (
        "of-the-environment"
    )
    assert Secrets().value("demo", "API_KEY") == "of-the-folder"
    assert Secrets().has("demo", "API_KEY")
    assert Secrets().value("other", "API_KEY") is None, "another skill's"
    assert Secrets().value("demo", "OTHER_KEY") is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o660])
def test_a_file_that_others_can_read_or_write_is_refused_by_name(folder: Path, mode: int) -> None:
    kept(folder, mode=mode)
    with pytest.raises(ConfigurationError, match=r"API_KEY is open to others.*chmod 600"):
        Secrets().value("demo", "API_KEY")


def test_a_folder_that_others_can_write_is_refused(folder: Path) -> None:
    kept(folder)
    (folder / "demo").chmod(0o777)
    with pytest.raises(ConfigurationError, match="chmod 700"):
        Secrets().value("demo", "API_KEY")


@pytest.mark.parametrize("mode", [0o400, 0o600])
def test_files_as_containers_give_them_are_read(folder: Path, mode: int) -> None:
    kept(folder, mode=mode)
    assert Secrets().value("demo", "API_KEY") == "of-the-folder"


def test_what_is_no_file_of_a_key_is_refused(folder: Path) -> None:
    (folder / "demo").mkdir(mode=0o700)
    os.mkfifo(folder / "demo/PIPE_KEY", 0o600)
    kept(folder, "BIG_KEY", "x" * 20_000)
    kept(folder, "NUL_KEY", "a\0b")
    for name in ("PIPE_KEY", "BIG_KEY", "NUL_KEY"):
        with pytest.raises(ConfigurationError, match=name):
            Secrets().value("demo", name)


def test_a_key_that_a_run_refuses_is_not_there_until_the_remedy_is_typed(folder: Path) -> None:
    path = kept(folder, mode=0o644)
    for opened in (path, folder):
        opened.chmod(0o777)
        assert not Secrets().has("demo", "API_KEY")
        remedy = Secrets().problem("demo", "API_KEY")
        assert remedy == f"chmod {'600' if opened == path else '700'} {opened}"
        subprocess.run(["/bin/sh", "-c", remedy], check=True)
        assert (Secrets().has("demo", "API_KEY"), Secrets().problem("demo", "API_KEY")) == (True, "")
    assert Secrets().value("demo", "API_KEY") == "of-the-folder"
    assert Secrets().problem("demo", "OTHER_KEY") == ""


@pytest.mark.parametrize("skill", ["..", ".", "", "a/b", "../demo", "a\0b"])
def test_a_skills_name_leads_nowhere_else(folder: Path, skill: str) -> None:
    kept(folder)
    assert Secrets().value(skill, "API_KEY") is None
    with pytest.raises(ConfigurationError, match="No key is kept"):
        Secrets().keep(skill, "API_KEY", "value")
    assert Secrets().remove(skill, "API_KEY") == []


def test_a_key_is_kept_in_the_folder_for_its_owner_alone_and_removed(folder: Path) -> None:
    assert Secrets().keep("demo", "API_KEY", "first-value") == "folder"
    assert Secrets().keep("demo", "API_KEY", "second-value") == "folder"
    assert stat.S_IMODE((folder / "demo/API_KEY").stat().st_mode) == 0o600
    assert Secrets().value("demo", "API_KEY") == "second-value"
    assert Secrets().names() == [("demo", "API_KEY", "folder")]
    assert Secrets().remove("demo", "API_KEY") == ["folder"]
    assert Secrets().value("demo", "API_KEY") is None


@pytest.mark.parametrize("value", ["", "a\0b", "x" * 20_000])
def test_what_no_variable_can_hold_is_not_kept(folder: Path, value: str) -> None:
    with pytest.raises(ConfigurationError, match="A key has 1 to"):
        Secrets().keep("demo", "API_KEY", value)
    assert Secrets().names() == []
    assert folder.is_dir()


def test_the_keyring_keeps_and_lists_and_forgets(keyring: Path) -> None:
    secrets = Secrets({})
    assert secrets.keep("demo", "API_KEY", "of-the-keyring") == "keyring"
    assert secrets.keep("other", "API_KEY", "of-another") == "keyring"
    assert (secrets.value("demo", "API_KEY"), secrets.value("other", "API_KEY")) == ("of-the-keyring", "of-another")
    assert secrets.names() == [("demo", "API_KEY", "keyring"), ("other", "API_KEY", "keyring")]
    assert secrets.remove("demo", "API_KEY") == ["keyring"]
    assert secrets.value("demo", "API_KEY") is None
    assert secrets.names() == [("other", "API_KEY", "keyring")]
    assert "of-the-keyring" not in keyring.read_text()


def test_without_a_keyring_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from skillkit.core.store import secrets as module

    monkeypatch.setattr(module, "find_spec", lambda _: None)
    monkeypatch.delenv("SKILLKIT_SECRETS_DIR", raising=False)
    assert Secrets({}).value("demo", "API_KEY") is None
    with pytest.raises(ConfigurationError, match=r"skillkit-runtime\[keyring\]"):
        Secrets({}).keep("demo", "API_KEY", "value")


def test_a_machine_without_a_keyring_is_told_what_works_there(keyring: Path) -> None:
    """The library is installed, so to install it is no remedy."""
    assert has_keyring(), "control"
    for backend in ("fail", "null"):
        system.set_keyring(load_keyring(f"keyring.backends.{backend}.Keyring"))
        assert not has_keyring()
        with pytest.raises(ConfigurationError, match="no keyring") as told:
            Secrets({}).keep("demo", "API_KEY", "value")
        assert "SKILLKIT_SECRETS_DIR" in str(told.value)
        assert "pip install" not in str(told.value)
    assert not keyring.exists()


@pytest.mark.parametrize("name", ["PATH", "LD_PRELOAD", "SKILL_NAME", "NO-NAME", "../API_KEY"])
def test_what_can_never_be_granted_is_never_a_key(folder: Path, name: str) -> None:
    assert folder.is_dir()
    assert Secrets({name: "x"}).value("demo", name) is None
    with pytest.raises(ConfigurationError):
        Secrets().keep("demo", name, "value")
