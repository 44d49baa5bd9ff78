"""Programs of the person's own desktop: found where no script can have put them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.desktops import Desktop

from skillkit.core.run.own_programs import find_own_program, own_environment, startable_path, startable_program
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
    other = tmp_path / "an other" / "project"
    (other / ".git").mkdir(parents=True)
    tainted = {
        "BROWSER": f"firefox:{bad}/browser %s",
        "LD_PRELOAD": f"{bad}/evil.so",
        "PYTHONPATH": f"/usr/share:{bad}",
        "NODE_OPTIONS": f"--require={bad}/evil.js",
        "RUBYOPT": f"-W0 -I{bad} -revil",
        "PERL5OPT": f"-I{other}",
        "GIT_CONFIG_PARAMETERS": f"'core.fsmonitor'='{bad}/evil'",
        "LESSOPEN": f"|'{other}/evil' %s",
        "JAVA_TOOL_OPTIONS": f"-javaagent:{bad}/evil.jar,x=1",
        "NODE_IMPORT": f"--import file://{other}/evil.mjs",
        "MIXED": f"https://example.com/x {bad}/evil",
        "PYTHONUSERBASE": str(other / "deep" / "er"),
    }
    harmless = {
        "BROWSER_OF_MINE": "firefox",
        "HOMEPAGE": f"https://example.com{bad}/index.html",
        "TERMINFO": "/usr/share/terminfo",
        "PLAIN_FOLDER": str(tmp_path / "plain folder"),
    }
    for name, value in {**tainted, **harmless}.items():
        monkeypatch.setenv(name, value)
    environment = own_environment()
    assert not tainted.keys() & environment.keys()
    assert environment["PATH"] == "/usr/bin"
    assert {name: environment.get(name) for name in harmless} == harmless


@pytest.mark.parametrize(
    ("place", "mark", "may"),
    [
        ("bin", "", True),
        ("work/bin", "work/.git", False),
        ("work/node_modules/.bin", "", False),
        ("work/.venv/bin", "work/.venv/pyvenv.cfg", False),
        ("home/.pyenv/shims", "home/.pyenv/.git", True),
        ("home of another/.pyenv/shims", "home of another/.pyenv/.git", True),
        ("home/.nvm/versions/node/v22.0.0/bin", "home/.nvm/.git", True),
        ("home/dotfiles/bin", "home/dotfiles/.git", False),
        ("managers/pyenv/shims", "managers/pyenv/.git", True),
        ("managers/.git-work/pyenv/shims", "managers/.git-work/pyenv/.git", False),
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
    assert startable_program(str(program)) == (str(program) if may else "")
    assert read_output([str(program)], os.defpath) == ("asked\n" if may else "")
    assert startable_path(f"{program.parent}:bin:/usr/bin") == (f"{program.parent}:/usr/bin" if may else "/usr/bin")


def be_an_ordinary_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose folder that is."""
    if os.geteuid() == 0:
        os.chown(folder, 1000, 1000)
        monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.mark.parametrize("link", ["work/tool", "work/bin"])
def test_a_link_in_a_project_is_started_by_nobody_whatever_it_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    """Also where only root can change what it leads to, and we are somebody else."""
    (tmp_path / "work/.git").mkdir(parents=True)
    be_an_ordinary_user(tmp_path / "work", monkeypatch)
    (tmp_path / link).symlink_to("/bin/sh" if link == "work/tool" else "/bin")
    program = str(tmp_path / link) if link == "work/tool" else str(tmp_path / link / "sh")
    assert startable_program(program) == ""
    assert startable_path(f"{tmp_path}/work:{tmp_path / link}:/usr/bin") == "/usr/bin"
    assert startable_program("/bin/sh") == "/bin/sh", "the control"


def test_of_an_environment_the_python_of_the_system_is_asked_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = tmp_path / "work" / ".venv"
    (environment / "bin").mkdir(parents=True)
    be_an_ordinary_user(environment / "bin", monkeypatch)
    (environment / "pyvenv.cfg").touch()
    (environment / "bin/python").symlink_to("/bin/sh")  # any program that is root's own
    assert startable_program(str(environment / "bin/python")) == os.path.realpath("/bin/sh")


def test_of_an_environment_the_python_that_it_leads_to_is_asked(tmp_path: Path) -> None:
    """Its own settings and start-up lines are not read, and what is no link to one elsewhere is asked nothing."""
    environment, ran = tmp_path / "work" / ".venv", tmp_path / "ran"
    base = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    packages = environment / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
    for folder in (environment / "bin", packages):
        folder.mkdir(parents=True)
    (environment / "bin" / "python").symlink_to(base)
    (environment / "pyvenv.cfg").write_text(f"home = {base.parent}\n")
    (packages / "evil.pth").write_text(f"import sys; open({str(ran)!r}, 'a').write('ran')\n")
    question = (str(environment / "bin" / "python"), "-c", "import sys; print(sys.prefix)")
    assert subprocess.run(question, check=True, capture_output=True, text=True).stdout == f"{environment}\n"
    assert ran.exists(), "the control: started as itself it runs the line"
    ran.unlink()
    assert read_output(question, os.defpath) not in ("", f"{environment}\n")
    assert not ran.exists()
    program = planted_in(environment / "bin")
    program.write_text("#!/bin/sh\necho asked\n")
    assert read_output([str(program)], os.defpath) == ""
