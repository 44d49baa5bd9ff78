"""Programs of the person's own desktop: started, and left to themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.desktops import Desktop
from support.running import anybody_runs, wait_for

from skillkit.core.run.unwalled import spawn_detached


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desktop:
    return Desktop(tmp_path, monkeypatch)


def test_it_goes_on_when_its_starter_ends(desktop: Desktop) -> None:
    program = desktop.install("stayer", "time.sleep(60)")
    mark = f"stays-{os.getpid()}"
    code = "import sys; from skillkit.core.run.unwalled import spawn_detached; print(spawn_detached(sys.argv[1:]))"
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
    assert not spawn_detached(("/nonexistent/program",))


def test_one_that_ended_is_waited_for(desktop: Desktop) -> None:
    program = desktop.install("brief")
    mark = f"brief-{os.getpid()}"
    assert spawn_detached((str(program), mark))
    desktop.wait_for("brief")

    def zombies() -> list[str]:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        return [child for child in children if "Z (zombie)" in Path(f"/proc/{child}/status").read_text()]

    assert wait_for(lambda: not zombies())
