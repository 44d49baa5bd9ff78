"""Programs of the person's own desktop: found, started, and left to themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from desktops import Desktop
from running import anybody_runs, wait_for

from skillkit.core.run.apart import own_program, start_apart


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desktop:
    return Desktop(tmp_path, monkeypatch)


def test_the_first_name_that_exists_is_found(desktop: Desktop) -> None:
    path = desktop.install("second")
    assert own_program("first", "second") == str(path)
    assert not own_program("first")


def test_a_program_in_the_current_folder_is_never_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = tmp_path / "xdg-open"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.pathsep.join((".", "", "relative")))
    assert not own_program("xdg-open")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert own_program("xdg-open") == str(planted)


def test_it_goes_on_when_its_starter_ends(desktop: Desktop) -> None:
    program = desktop.install("stayer", "time.sleep(60)")
    mark = f"stays-{os.getpid()}"
    code = "import sys; from skillkit.core.run.apart import start_apart; print(start_apart(sys.argv[1:]))"
    started = subprocess.run(
        [sys.executable, "-c", code, str(program), mark],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert started.stdout == "True\n"
    desktop.wait_for("stayer")
    (pid,) = anybody_runs(mark)
    os.kill(pid, 9)
    assert wait_for(lambda: not anybody_runs(mark))


def test_what_cannot_start_is_told() -> None:
    assert not start_apart(("/nonexistent/program",))


def test_one_that_ended_is_waited_for(desktop: Desktop) -> None:
    program = desktop.install("brief")
    mark = f"brief-{os.getpid()}"
    assert start_apart((str(program), mark))
    desktop.wait_for("brief")

    def zombies() -> list[str]:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        return [child for child in children if "Z (zombie)" in Path(f"/proc/{child}/status").read_text()]

    assert wait_for(lambda: not zombies())
