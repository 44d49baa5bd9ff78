"""The caller's own interpreters inside walls: what a script calls by its name is what the caller would get."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.running import made_manager

from skillkit import GUARDED, STANDARD, ScriptExecutionResult
from skillkit.core.resolve.environment import forget_interpreters

WALLS = replace(STANDARD, sandbox="required")
WHICH = 'perl -e \'print "$^X\\n"\'; perl -e \'open(F, ">>", $^X) or print "closed\\n"\''


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    forget_interpreters()


def own_perl(prefix: Path) -> Path:
    program = prefix / "bin/perl"
    program.parent.mkdir(parents=True)
    shutil.copy("/usr/bin/perl", program)
    return program


def shim(folder: Path, name: str, program: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f'#!/bin/sh\nexec "{program}" "$@"\n')
    (folder / name).chmod(0o755)
    return folder


def environment_of(folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder


def put_first(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join((*map(str, folders), "/usr/local/bin", "/usr/bin", "/bin")))


def run(folder: Path, text: str, *words: str, name: str = "scripts/run.sh", **settings: Any) -> ScriptExecutionResult:
    with made_manager(folder, {name: text}, policy=WALLS, **settings) as manager:
        return manager.execute_skill_script("demo", "run", argv=words)


@pytest.mark.usefixtures("tier")
def test_behind_a_version_manager_the_same_program_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = own_perl(tmp_path / "manager/versions/5")
    put_first(monkeypatch, shim(tmp_path / "manager/shims", "perl", program))
    result = run(tmp_path, WHICH)
    assert result.stdout.split() == [str(program), "closed"], result.stderr
    assert result.isolation.files.endswith(f"; programs of {tmp_path}/manager/versions/5")


@pytest.mark.usefixtures("tier")
def test_a_folder_of_the_callers_path_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = own_perl(tmp_path / "own")
    put_first(monkeypatch, program.parent)
    assert run(tmp_path, WHICH).stdout.split() == [str(program), "closed"]


@pytest.mark.usefixtures("tier")
def test_a_script_that_calls_no_perl_gets_none_of_the_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = own_perl(tmp_path / "own")
    put_first(monkeypatch, program.parent)
    result = run(tmp_path, f"ls {program.parent}")
    assert not result.success
    assert "programs of" not in result.isolation.files


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize("is_shim", [False, True], ids=["activated", "behind a shim"])
def test_a_virtual_environment_keeps_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_shim: bool
) -> None:
    environment = environment_of(tmp_path / "environment")
    (site,) = environment.glob("lib/python3*/site-packages")
    (site / "zebra.py").write_text("print('striped')")
    program = environment / "bin/python3"
    put_first(monkeypatch, shim(tmp_path / "shims", "python3", program) if is_shim else program.parent)
    result = run(tmp_path, "python3 -c 'import sys, zebra; print(sys.prefix)'")
    assert result.stdout.split() == ["striped", str(environment)], result.stderr


@pytest.mark.usefixtures("tier")
def test_programs_in_a_closed_place_stay_outside(
    tmp_path: Path, private_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_first(monkeypatch, own_perl(private_home / ".aws").parent)
    result = run(tmp_path, WHICH)
    assert result.stdout.splitlines()[0] == "/usr/bin/perl"
    assert ".aws" not in result.isolation.files


LEAKING = """
import sys
for path in sys.argv[1:]:
    try:
        print(open(path).read())
    except OSError as error:
        print("closed")
try:
    import outside_module
except ImportError:
    print("not imported")
"""


@pytest.mark.usefixtures("tier")
@pytest.mark.parametrize("name", ["elsewhere.pth", "__editable__.project.pth"])
def test_keys_and_lines_that_lead_out_of_an_environment_are_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    environment, workspace = environment_of(tmp_path / "environment"), tmp_path / "project"
    workspace.mkdir()
    (workspace / "outside_module.py").write_text("print('code from the workspace')")
    (site,) = environment.glob("lib/python3*/site-packages")
    keys = environment / "pip.conf"
    keys.write_text("[global]\nindex-url = https://user:token@example.com\n")
    (site / name).write_text(
        f"{workspace}\n" if name == "elsewhere.pth" else f"import sys; sys.path.append({str(workspace)!r})\n"
    )
    (site / "inside.pth").write_text("inside\n")
    (site / "inside").mkdir()
    (site / "inside/zebra.py").write_text("")
    put_first(monkeypatch, environment / "bin")
    text = LEAKING + "import zebra\nprint('zebra')\n"
    control = subprocess.run(
        [environment / "bin/python3", "-c", text, keys], capture_output=True, text=True, check=True, cwd="/"
    )
    assert "token" in control.stdout
    assert "code from the workspace" in control.stdout
    result = run(tmp_path, text, str(keys), name="scripts/run.py", workspace=workspace)
    assert result.stdout.split("\n") == ["closed", "not imported", "zebra", ""], result.stderr


def test_the_question_names_what_counts_as_the_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = own_perl(tmp_path / "own")
    put_first(monkeypatch, program.parent)
    with made_manager(tmp_path, {"scripts/run.sh": WHICH}, policy=GUARDED) as manager:
        request = manager.prepare_skill_script("demo", "run").request
    assert request is not None
    assert f"Programs of yours count as the system's: {tmp_path}/own." in str(request.context)
