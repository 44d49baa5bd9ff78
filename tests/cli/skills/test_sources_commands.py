"""`skillkit add` and its relatives as a person sees them: progress that goes away, and words that say what is next."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from support.repositories import Repository

from skillkit.cli.main import exit_code_of

SLOW_LOOK = "import skillkit.sources.programs as p; p.LOOK_SECONDS = 0.001; from skillkit.cli.main import main; main()"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    made = Repository(tmp_path / "repository")
    made.add_skill("alpha", {"scripts/run.sh": "echo ran\n"})
    return made


@pytest.mark.parametrize("no_color", ["", "1"])
def test_progress_is_shown_on_a_terminal_and_cleared_before_the_rest(
    repository: Repository, no_color: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    ours, theirs = pty.openpty()
    try:
        started = subprocess.Popen(
            [sys.executable, "-c", SLOW_LOOK, "add", repository.url], stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        told = b""
        try:
            while chunk := os.read(ours, 65536):
                told += chunk
        except OSError:  # the other end is closed
            pass
        assert started.wait() == 0
    finally:
        os.close(ours)
    lines = told.decode().split("\r\n")
    assert " kB fetched" in lines[0]
    # What stands behind the last clearing of the line is all that a person sees in it.
    assert "alpha" in lines[0].rpartition("\x1b[K")[2]
    assert "fetched" not in lines[0].rpartition("\x1b[K")[2]


def test_in_a_pipe_there_is_no_progress(repository: Repository, capfd: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["add", repository.url]) == 0
    told = capfd.readouterr()
    assert told.err == "Nothing was approved: the first run of each asks.\n"
    assert told.out.startswith("alpha  added\n")
    assert "  scripts    scripts/run.sh\n" in told.out
    assert exit_code_of(["run", "alpha", "run"]) == 126


def test_frozen_and_check_are_two_wishes(repository: Repository, capfd: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(["add", repository.url]) == 0
    assert exit_code_of(["sync", "--frozen", "--check"]) == 2
    assert "Use one of them" in capfd.readouterr().err


def test_trust_takes_one_skill_or_the_lock(repository: Repository) -> None:
    assert exit_code_of(["add", repository.url]) == 0
    assert exit_code_of(["trust", "add"]) == 2
    assert exit_code_of(["trust", "add", "alpha", "--locked"]) == 2
    assert exit_code_of(["trust", "add", "--locked", "--yes"]) == 0
    assert exit_code_of(["run", "alpha", "run"]) == 0
