"""Where interpreters live, as version managers and virtual environments lay them out."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from skillkit.core.run.sandbox.machine import interpreter_paths


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    return path


@pytest.mark.parametrize(
    "path", ["/usr/bin/perl", "/usr/local/bin/node", "/bin/bash", "/nix/store/x-python/bin/python"]
)
def test_an_interpreter_of_the_system_needs_nothing(path: str) -> None:
    assert interpreter_paths(path, home="/home/me") == ()


@pytest.mark.parametrize(
    "place",
    [
        ".pyenv/versions/3.11.7/bin/python3.11",
        ".nvm/versions/node/v20.1.0/bin/node",
        ".rbenv/versions/3.2.2/bin/ruby",
        "miniconda3/envs/science/bin/python",
        ".local/share/uv/python/cpython-3.12/bin/python3.12",
    ],
)
def test_a_version_managers_interpreter_needs_its_prefix(tmp_path: Path, place: str) -> None:
    path = program(tmp_path / place)
    assert interpreter_paths(str(path), home=str(tmp_path)) == (str(path.parent.parent),)


def test_every_link_on_the_way_is_needed(tmp_path: Path) -> None:
    real = program(tmp_path / "pythons/3.12.1/bin/python3.12")
    (tmp_path / ".local/bin").mkdir(parents=True)
    (tmp_path / "current").mkdir()
    (tmp_path / "current/python3").symlink_to(real)
    link = tmp_path / ".local/bin/python3"
    link.symlink_to(tmp_path / "current/python3")
    expected = (str(link), str(tmp_path / "current"), str(real.parent.parent))
    assert interpreter_paths(str(link), home=str(tmp_path)) == expected


def test_a_virtual_environment_needs_itself_and_its_base(tmp_path: Path) -> None:
    base = program(tmp_path / "base/bin/python3")
    (tmp_path / "copied").mkdir()
    copy = program(tmp_path / "project/.venv/bin/python3")
    (tmp_path / "project/.venv/pyvenv.cfg").write_text(f"version = 3.12\nhome = {base.parent}\n")
    assert interpreter_paths(str(copy), home=str(tmp_path)) == (str(tmp_path / "base"), str(tmp_path / "project/.venv"))


def test_a_virtual_environment_of_the_systems_python_needs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/python").symlink_to("/usr/bin/python3")
    (tmp_path / "venv/pyvenv.cfg").write_text("home = /usr/bin\n")
    assert interpreter_paths(str(tmp_path / "venv/bin/python"), home=str(tmp_path)) == (str(tmp_path / "venv"),)


@pytest.mark.parametrize("place", ["bin/node", ".local/bin/node", "node"])
def test_a_program_among_a_persons_files_is_needed_alone(tmp_path: Path, place: str) -> None:
    path = program(tmp_path / place)
    assert interpreter_paths(str(path), home=str(tmp_path)) == (str(path),)


def test_a_python_installed_for_one_user_brings_its_library(tmp_path: Path) -> None:
    path = program(tmp_path / ".local/bin/python3.12")
    (tmp_path / ".local/lib/python3.12").mkdir(parents=True)
    expected = (str(path), str(tmp_path / ".local/lib/python3.12"))
    assert interpreter_paths(str(path), home=str(tmp_path)) == expected


@pytest.mark.parametrize("path", ["/node", "/opt/node", "/home/node", "/root/bin/node", "/home/me/bin/node"])
def test_never_a_folder_that_holds_more(path: str) -> None:
    assert interpreter_paths(path, home="/home/me" if path.startswith("/home") else "/root") == (path,)


def test_homebrew_is_needed_as_a_whole() -> None:
    path = "/home/linuxbrew/.linuxbrew/Cellar/python@3.12/3.12.1/bin/python3.12"
    assert interpreter_paths(path, home="/home/me") == ("/home/linuxbrew/.linuxbrew",)


def test_a_circle_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a/b/x").symlink_to("y")
    (tmp_path / "a/b/y").symlink_to("x")
    assert interpreter_paths(str(tmp_path / "a/b/x"), home="/home/me") == (str(tmp_path / "a/b"),)


def test_a_list_of_folders_that_came_or_changed_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which lists there are is kept while their folder stays as it is; what is in them is looked at each time."""
    from skillkit.core.run.sandbox import machine

    masked_files = machine.masked_files
    monkeypatch.setattr(machine, "SETTLED_NANOSECONDS", -(10**18))
    site = tmp_path / "lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (site / "own.pth").write_text("inside\n")
    assert masked_files((str(tmp_path),)) == masked_files((str(tmp_path),)) == ()
    time.sleep(0.05)
    (site / "new.pth").write_text("/elsewhere\n")
    assert masked_files((str(tmp_path),)) == (str(site / "new.pth"),)
    (site / "own.pth").write_text("/elsewhere/too\n")
    assert set(masked_files((str(tmp_path),))) == {str(site / "new.pth"), str(site / "own.pth")}
