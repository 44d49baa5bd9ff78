"""`skillkit secret` as a person and as a program see it: no value is ever an argument or shown."""

from __future__ import annotations

import json
from pathlib import Path

import pexpect
import pytest
from click.testing import CliRunner, Result

from skillkit import ConfigurationError
from skillkit.cli.people.kept import secret


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SKILLKIT_SECRETS_DIR", str(tmp_path / "secrets"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    return tmp_path / "secrets"


def run(*words: str, stdin: str = "") -> Result:
    return CliRunner().invoke(secret, [*words], input=stdin)


def test_a_value_is_piped_kept_listed_by_name_and_removed(folder: Path) -> None:
    result = run("set", "weather", "API_KEY", stdin="the-value-of-it\n")
    assert result.stdout == "Kept API_KEY for weather in the folder.\n"
    assert "skillkit grant weather --secret API_KEY" in result.stderr
    assert (folder / "weather/API_KEY").read_text() == "the-value-of-it"
    listed = run("list")
    assert listed.stdout.split() == ["SKILL", "NAME", "KEPT", "IN", "weather", "API_KEY", "folder"]
    assert json.loads(run("list", "--json").stdout)["secrets"] == [
        {"skill": "weather", "name": "API_KEY", "place": "folder"}
    ]
    assert run("remove", "weather", "API_KEY").stdout == "Removed API_KEY of weather from the folder.\n"
    assert run("remove", "weather", "API_KEY").exit_code == 127
    assert "No key is kept" in run("list").stderr


def test_a_value_is_never_an_argument(folder: Path) -> None:
    assert run("set", "weather", "API_KEY", "value").exit_code == 2
    assert not folder.exists()


@pytest.mark.parametrize("words", [("set", "weather", "PATH"), ("set", "weather", "A-B"), ("set", "..", "API_KEY")])
def test_what_is_no_key_of_a_skill_is_refused(folder: Path, words: tuple[str, ...]) -> None:
    assert isinstance(run(*words, stdin="value").exception, ConfigurationError)
    assert not folder.exists()


def test_nothing_piped_keeps_nothing(folder: Path) -> None:
    assert isinstance(run("set", "weather", "API_KEY").exception, ConfigurationError)
    assert not folder.exists()


def test_a_typed_value_is_not_echoed(folder: Path) -> None:
    import sys

    typed = pexpect.spawn(
        sys.executable, ["-m", "skillkit", "secret", "set", "weather", "API_KEY"], encoding="utf-8", timeout=30
    )
    typed.expect("Value of API_KEY: ")
    typed.sendline("typed-value")
    typed.expect("Kept API_KEY")
    typed.expect(pexpect.EOF)
    assert "typed-value" not in (typed.before or "") + str(typed.after)
    assert (folder / "weather/API_KEY").read_text() == "typed-value"
