"""Programs of the person's own desktop: found, started, and left to themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from desktops import Desktop
from running import anybody_runs, wait_for

from skillkit.core.run.apart import start_apart
from skillkit.core.run.own_programs import own_environment, own_program


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desktop:
    return Desktop(tmp_path, monkeypatch)


def test_the_first_name_that_exists_is_found(desktop: Desktop) -> None:
    path = desktop.install("second")
    assert own_program("first", "second") == str(path)
    assert not own_program("first")


def planted_in(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "xdg-open"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_a_program_in_the_current_folder_is_never_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = planted_in(tmp_path / "here" / "bin")
    monkeypatch.setenv("PATH", str(planted.parent))
    assert own_program("xdg-open") == str(planted)
    for place in (planted.parent, planted.parent.parent):
        monkeypatch.chdir(place)
        for path in (planted.parent, place, ".", "", "bin"):
            monkeypatch.setenv("PATH", str(path))
            assert not own_program("xdg-open")


@pytest.mark.parametrize(
    "mark", ["pyvenv.cfg", ".git", "package.json", "pyproject.toml", "skillkit.toml", "../package.json"]
)
def test_a_program_in_a_project_is_never_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str) -> None:
    planted = planted_in(tmp_path / "a" / "b" / "bin")
    monkeypatch.setenv("PATH", str(planted.parent))
    assert own_program("xdg-open") == str(planted)
    (tmp_path / "a" / "b" / mark).touch()
    assert not own_program("xdg-open")


@pytest.mark.parametrize("linked", ["program", "folder", "above"])
def test_a_link_into_a_project_is_not_followed_to_a_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: str
) -> None:
    planted = planted_in(tmp_path / "project" / "bin")
    (tmp_path / "own").mkdir()
    link, leads_to, entry = {
        "program": ("own/xdg-open", planted, "own"),
        "folder": ("own/bin", planted.parent, "own/bin"),
        "above": ("own/way", planted.parent.parent, "own/way/bin"),
    }[linked]
    (tmp_path / link).symlink_to(leads_to)
    monkeypatch.setenv("PATH", str(tmp_path / entry))
    assert own_program("xdg-open")
    (tmp_path / "project" / ".git").mkdir()
    assert not own_program("xdg-open")
    own = planted_in(tmp_path / "later")
    monkeypatch.setenv("PATH", os.pathsep.join((str(tmp_path / entry), str(own.parent))))
    assert own_program("xdg-open") == str(own)


def test_a_folder_that_everybody_can_write_has_no_program_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = planted_in(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(planted.parent))
    planted.parent.chmod(0o1777)
    assert not own_program("xdg-open")


def test_what_names_a_place_of_scripts_is_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = tmp_path / "project"
    bad.mkdir()
    monkeypatch.chdir(bad)
    monkeypatch.setenv("PATH", os.pathsep.join((f"{bad}/bin", "/usr/bin", "relative")))
    tainted = {
        "BROWSER": f"firefox:{bad}/browser %s",
        "LD_PRELOAD": f"{bad}/evil.so",
        "PYTHONPATH": f"/usr/share:{bad}",
        "NODE_OPTIONS": f"--require={bad}/evil.js",
    }
    for name, value in {**tainted, "BROWSER_OF_MINE": "firefox"}.items():
        monkeypatch.setenv(name, value)
    environment = own_environment()
    assert not tainted.keys() & environment.keys()
    assert (environment["PATH"], environment["BROWSER_OF_MINE"]) == ("/usr/bin", "firefox")


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
