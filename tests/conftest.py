"""Every test has a home and a state folder of its own, and nothing is left behind."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis.configuration import set_hypothesis_home_dir


def pytest_configure(config: pytest.Config) -> None:
    """Property tests are derandomised; what Hypothesis notes for later runs goes away with the session."""
    folder = tempfile.TemporaryDirectory()
    set_hypothesis_home_dir(folder.name)
    config.add_cleanup(folder.cleanup)


@pytest.fixture(autouse=True)
def private_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own skills, settings and state are never seen or touched."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("SKILLKIT_STATE_DIR", str(home / "state"))
    for name in ("SKILLKIT_CONFIG", "SKILLKIT_SKILLS", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home
