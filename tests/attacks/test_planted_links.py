"""What skillkit itself writes into folders that scripts can write to: never through a link, never over a file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.running import runnable
from support.workspaces import content_below

from skillkit.chat.transcript import Transcript
from skillkit.core.exceptions import ConfigurationError


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "file").write_text("mine")
    return tmp_path / "victim"


def skillkit(here: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "skillkit", *words], capture_output=True, text=True, check=False, timeout=60, cwd=here
    )


def checkpoint(here: Path, target: str) -> int:
    with runnable(here, "true\n") as manager:
        manager.execute_skill_script("demo", "run")
    return skillkit(here, "audit", "checkpoint", "-o", target, "--state-dir", str(here / "state")).returncode


def transcript(here: Path, target: str) -> int:
    try:
        Transcript().save_to(here / target)
    except ConfigurationError:
        return 1
    return 0


def skill(here: Path, target: str) -> int:
    return skillkit(here, "new", os.path.basename(target), "--dir", os.path.dirname(target) or ".").returncode


def examples(here: Path, target: str) -> int:
    return skillkit(here, "demo", "--copy", target).returncode


WRITERS = {"checkpoint": checkpoint, "transcript": transcript, "new skill": skill, "examples": examples}


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("target", ["link", "link/new", "chain/new", "real/link/new", "file", "nowhere"])
def test_nothing_is_written_through_a_link(
    tmp_path: Path, victim: Path, target: str, writer: Callable[[Path, str], int]
) -> None:
    here = tmp_path / "here"
    (here / "real").mkdir(parents=True)
    (here / "link").symlink_to(victim)
    (here / "real" / "link").symlink_to(victim)
    (here / "chain").symlink_to("link")
    (here / "file").symlink_to(victim / "file")
    (here / "nowhere").symlink_to(victim / "not-there")
    assert os.path.realpath(here / target).startswith(str(victim)), "the control: by name it is the victim's"
    assert writer(here, target) != 0
    assert content_below(victim) == {"file": "mine"}


@pytest.mark.parametrize("writer", [checkpoint, transcript, skill], ids=["checkpoint", "transcript", "new skill"])
def test_a_file_that_is_there_is_left_as_it_is(tmp_path: Path, writer: Callable[[Path, str], int]) -> None:
    (tmp_path / "there").write_text("mine")
    assert writer(tmp_path, "there") != 0
    assert (tmp_path / "there").read_text() == "mine"


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
def test_where_no_link_is_they_write(tmp_path: Path, writer: Callable[[Path, str], int]) -> None:
    (tmp_path / "real").mkdir()
    assert writer(tmp_path, "real/new") == 0
    assert (tmp_path / "real" / "new").exists()
