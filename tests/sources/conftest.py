"""A project folder to add skills to, and a repository to add them from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from support.repositories import Repository, https_site

from skillkit.cli.main import exit_code_of

Command = Callable[..., Any]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "served/repository")


@pytest.fixture
def skillkit(project: Path, capfd: pytest.CaptureFixture[str]) -> Command:  # noqa: ARG001 - it is where we stand
    """Runs a command with --json and gives what it says; `code` is what it must end with."""

    def run(*words: str, code: int = 0) -> Any:
        capfd.readouterr()
        ended = exit_code_of([*words, "--json"])
        told = capfd.readouterr()
        assert ended == code, told.out + told.err
        return json.loads(told.out)

    return run


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """Who vouches for names in these tests."""
    return trustme.CA()


@pytest.fixture
def site(tmp_path: Path, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """https on loopback, for what lies in `served`."""
    file = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(file))
    monkeypatch.setenv("GIT_SSL_CAINFO", str(file))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "served").mkdir(exist_ok=True)
    with https_site(tmp_path / "served", authority) as address:
        yield address
