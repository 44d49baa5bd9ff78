"""Programs of the person's own desktop: found where no script can have put them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.desktops import Desktop

from skillkit.core.run.own_programs import find_own_program, is_startable, own_environment, startable_path
from skillkit.core.run.unwalled import read_output


@pytest.fixture
def desktop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desktop:
    return Desktop(tmp_path, monkeypatch)


def test_the_first_name_that_exists_is_found(desktop: Desktop) -> None:
    path = desktop.install("second")
    assert find_own_program("first", "second") == str(path)
    assert not find_own_program("first")


def planted_in(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "xdg-open"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_a_program_in_the_current_folder_is_never_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = planted_in(tmp_path / "here" / "bin")
    monkeypatch.setenv("PATH", str(planted.parent))
    assert find_own_program("xdg-open") == str(planted)
    for place in (planted.parent, planted.parent.parent):
        monkeypatch.chdir(place)
        for path in (planted.parent, place, ".", "", "bin"):
            monkeypatch.setenv("PATH", str(path))
            assert not find_own_program("xdg-open")


@pytest.mark.parametrize(
    "mark", ["pyvenv.cfg", ".git", "package.json", "pyproject.toml", "skillkit.toml", "../package.json"]
)
def test_a_program_in_a_project_is_never_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str) -> None:
    planted = planted_in(tmp_path / "a" / "b" / "bin")
    monkeypatch.setenv("PATH", str(planted.parent))
    assert find_own_program("xdg-open") == str(planted)
    (tmp_path / "a" / "b" / mark).touch()
    assert not find_own_program("xdg-open")


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
    assert find_own_program("xdg-open")
    (tmp_path / "project" / ".git").mkdir()
    assert not find_own_program("xdg-open")
    own = planted_in(tmp_path / "later")
    monkeypatch.setenv("PATH", os.pathsep.join((str(tmp_path / entry), str(own.parent))))
    assert find_own_program("xdg-open") == str(own)


def test_a_folder_that_everybody_can_write_has_no_program_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = planted_in(tmp_path / "bin")
    monkeypatch.setenv("PATH", str(planted.parent))
    planted.parent.chmod(0o1777)
    assert not find_own_program("xdg-open")


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


@pytest.mark.parametrize(
    ("place", "mark", "may"),
    [
        ("bin", "", True),
        ("work/bin", "work/.git", False),
        ("work/node_modules/.bin", "", False),
        ("work/.venv/bin", "work/.venv/pyvenv.cfg", True),
        ("home/.pyenv/shims", "home/.pyenv/.git", True),
        ("home of another/.pyenv/shims", "home of another/.pyenv/.git", True),
        ("home/.nvm/versions/node/v22.0.0/bin", "home/.nvm/.git", True),
        ("home/dotfiles/bin", "home/dotfiles/.git", False),
        ("managers/pyenv/shims", "managers/pyenv/.git", True),
        ("usr/lib/node_modules/npm/bin", "usr/lib/node_modules/npm/package.json", True),
        ("work/lib/node_modules/npm/bin", "work/.git", False),
    ],
)
def test_an_interpreter_is_asked_something_where_no_script_can_have_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, mark: str, may: bool
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "managers/pyenv"))
    program = planted_in(tmp_path / place)
    program.write_text("#!/bin/sh\necho asked\n")
    if mark:
        (tmp_path / mark).touch()
    assert is_startable(str(program)) is may
    assert read_output([str(program)], os.defpath) == ("asked\n" if may else "")
    assert startable_path(f"{program.parent}:bin:/usr/bin") == (f"{program.parent}:/usr/bin" if may else "/usr/bin")
