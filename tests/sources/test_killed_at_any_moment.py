"""`add` and `update` killed from outside at any moment: whoever comes next finds all of it done, or all as it was."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.repositories import Repository
from support.running import anybody_runs, wait_for

from skillkit.core.paths.temporary import remove_abandoned

MOMENTS, FILES = 8, 100
NAMES = ("alpha", "beta", "gamma")


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("command", ["add", "update"])
def test_a_kill_at_any_moment_leaves_all_or_nothing_once_somebody_comes_next(
    repository: Repository, project: Path, skillkit: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    for name in NAMES:
        repository.add_skill(name, {f"{number}.txt": "one" for number in range(FILES)})
    if command == "update":
        skillkit("add", repository.url)
        for name in NAMES:
            repository.add_skill(name, {f"{number}.txt": "two" for number in range(FILES)})
    words = [sys.executable, "-m", "skillkit", command, *([repository.url] if command == "add" else [])]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    before, spent = contents(project), time_of(words, environment)
    done = contents(project)
    assert done != before
    killed = 0
    for number in range(MOMENTS):
        put_back(project, before, repository, skillkit, command)
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment) as process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(spent * random.Random(number).uniform(0.3, 1.05))
                spent *= 0.8  # the machine is less busy than it was
            process.kill()
        killed += process.returncode == -9
        assert wait_for(lambda: not anybody_runs(str(tmp_path)), 20), "git ends with it"
        remove_abandoned.cache_clear()
        skillkit("remove", "nothing-there", code=127)
        found = contents(project)
        assert found in (before, done), sorted(set(found) ^ set(done))[:5]
        assert os.listdir(temporary) == []
    assert killed > 0


def contents(project: Path) -> dict[str, bytes]:
    """Every file and folder, by name."""
    found = {str(path.relative_to(project)): path for path in project.rglob("*")}
    return {name: path.read_bytes() if path.is_file() else b"" for name, path in sorted(found.items())}


def time_of(words: list[str], environment: dict[str, str]) -> float:
    began = time.monotonic()
    subprocess.run(words, check=True, capture_output=True, env=environment)
    return time.monotonic() - began


def put_back(project: Path, before: dict[str, bytes], repository: Repository, skillkit: Any, command: str) -> None:
    """As it was before the command; what the world knows of it is put right by the commands themselves."""
    if contents(project) == before:
        return
    if command == "add":
        for name in NAMES:
            skillkit("remove", name)
        with suppress(FileNotFoundError):
            (project / "skills").rmdir()
    else:
        (project / "skills.lock").write_bytes(before["skills.lock"])
        skillkit("sync", "--discard")
    assert contents(project) == before, repository.url
