"""What a package brings beside its code: it chooses no Python, starts nothing outside, and hides behind no other file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.package_index import PackageIndex, only_index
from support.warm_runs import WARM, needs_spares, wait_for_spare

from skillkit import GUARDED, ScriptPolicy
from skillkit.core.exceptions import SkillKitError
from skillkit.core.manager import SkillManager
from skillkit.core.run.reach import own_interpreters
from skillkit.core.run.sandbox.machine import interpreter_paths
from skillkit.core.store import environments as store
from skillkit.core.store.environments import Environments
from skillkit.core.values.runs import Prepared
from skillkit.packages.tools import uv_program
from skillkit.testing import ScriptedApprover, skill_folder

WALLED = replace(GUARDED, sandbox="preferred")
BLOCK = '# /// script\n# dependencies = ["zebra"]\n# ///\n'


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    with only_index(monkeypatch) as served:
        yield served


def manager_of(folder: Path, policy: ScriptPolicy = WALLED) -> SkillManager:
    skill_folder(folder / "skills", "animals", {"scripts/run.py": f"{BLOCK}import zebra\nprint(zebra.VERSION)\n"})
    return SkillManager("", "", [], [folder / "skills"], policy=policy, state_dir=folder / "state")


def tree_of(folder: Path) -> Path:
    (found,) = Environments(folder / "state").all_built()
    return found.tree


def install_plainly(folder: Path, *more: str) -> Path:
    """With uv, as anybody would."""
    words: tuple[str, ...] = ("venv", "--no-config", "--quiet", "--python", sys.executable, str(folder / "plain"))
    subprocess.run((uv_program(), *words), check=True)
    words = ("pip", "install", "--no-config", "--quiet", "--cache-dir", str(folder / "cache"), *more, "zebra")
    subprocess.run((uv_program(), *words, "--python", str(folder / "plain/bin/python")), check=True)
    return folder / "plain"


def test_a_package_that_says_where_python_lies_is_not_installed(index: PackageIndex, tmp_path: Path) -> None:
    """Walls show the folder of the Python that an environment was made from."""
    (tmp_path / "keys").mkdir()
    settings = f"home = {tmp_path}/keys\nversion = 3.11.7\n"
    index.add("zebra", "1.0", files={"zebra-1.0.data/data/pyvenv.cfg": settings})
    with manager_of(tmp_path) as manager:
        with pytest.raises(SkillKitError, match=r"zebra brings pyvenv.cfg.*Nothing was installed"):
            manager.prepare_packages("animals", approver=ScriptedApprover("yes_once"))
        assert not Environments(tmp_path / "state").all_built()
    plain = install_plainly(tmp_path)
    assert (plain / "pyvenv.cfg").read_text() == settings
    assert str(tmp_path / "keys") in "".join(interpreter_paths(str(plain / "bin/python"), home="/nowhere"))


def test_walls_open_what_our_own_mark_names_and_not_what_a_tree_says(index: PackageIndex, tmp_path: Path) -> None:
    index.add("zebra", "1.0")
    with manager_of(tmp_path) as manager:
        manager.prepare_packages("animals", approver=ScriptedApprover("yes_once"))
        command = manager.prepare_skill_script("animals", "run").command
        tree = tree_of(tmp_path)
        assert command.argv[0] == str(tree / "bin/python")
        for place in (tree, tree / "pyvenv.cfg"):
            place.chmod(0o755)
        (tree / "pyvenv.cfg").write_text(f"home = {tmp_path}/keys\n")
        assert str(tmp_path / "keys") in "".join(interpreter_paths(command.argv[0], home="/nowhere")), "control"
        folders = own_interpreters(command, tmp_path / "state").folders
        assert not [each for each in folders if each.startswith(str(tmp_path))]


def test_an_interpreter_in_a_closed_place_is_not_shown(index: PackageIndex, tmp_path: Path) -> None:
    index.add("zebra", "1.0")
    with manager_of(tmp_path) as manager:
        manager.prepare_packages("animals", approver=ScriptedApprover("yes_once"))
        command = manager.prepare_skill_script("animals", "run").command
        (own,) = command.prepared
        (tmp_path / "state/bin").mkdir()
        closed = replace(command, prepared=(Prepared(own.kind, own.tree, str(tmp_path / "state/bin/python")),))
        found = own_interpreters(closed, tmp_path / "state")
        assert found.is_closed
        assert not [each for each in found.folders if each.startswith(str(tmp_path))]
        assert not own_interpreters(command, tmp_path / "state").is_closed


MARKED = "import sys; open(sys.prefix + '/ran', 'w').close()\n"


def test_a_line_that_python_obeys_at_its_start_does_not_run_while_a_package_is_installed(
    index: PackageIndex, tmp_path: Path
) -> None:
    index.add("zebra", "1.0", files={"zebra.pth": MARKED})
    with manager_of(tmp_path) as manager:
        manager.prepare_packages("animals", approver=ScriptedApprover("yes_once"))
        tree = tree_of(tmp_path)
        assert not (tree / "ran").exists()
        assert list(tree.glob("lib/python3*/site-packages/__pycache__/zebra.*.pyc")), "compiled all the same"
    assert (install_plainly(tmp_path, "--compile-bytecode") / "ran").exists()


@needs_spares
@pytest.mark.parametrize("lines", ["import sys\n", "/nowhere\n"], ids=["that run", "control: that name a folder"])
def test_where_a_key_or_a_host_was_given_no_line_of_a_package_runs_before_the_record(
    index: PackageIndex, tmp_path: Path, lines: str
) -> None:
    index.add("zebra", "1.0", files={"zebra.pth": lines})
    policy = ScriptPolicy(**WARM, grantable=("host",))
    with manager_of(tmp_path, policy) as manager:
        manager.prepare_packages("animals", approver=ScriptedApprover("yes_once"))
        manager.grant("animals", hosts=["example.com"])
        assert manager.execute_skill_script("animals", "run").stdout == "1.0\n"
        assert wait_for_spare(3 if "import" in lines else 20) == ("import" not in lines)


def test_no_file_of_a_package_is_asked_for_its_version_outside_the_walls(index: PackageIndex, tmp_path: Path) -> None:
    """As if a package had got its own program into the environment's place for Python."""
    index.add("zebra", "1.0")
    with manager_of(tmp_path) as manager:
        manager.prepare_packages("animals", approver=ScriptedApprover("yes_once"))
        mark, python = tmp_path / "ran", tree_of(tmp_path) / "bin/python"
        python.parent.chmod(0o755)
        python.unlink()
        python.write_text(f"#!/bin/sh\necho x > {mark}\n")
        python.chmod(0o755)
        subprocess.run((str(python), "--version"), check=True)
        assert mark.exists(), "control"
        mark.unlink()
        (found,) = (tmp_path / "state/packages/environments").iterdir()
        store._intact[str(found)] = (store._looks(found), store._intact[str(found)][1])
        prepared = manager.prepare_skill_script("animals", "run")
        assert prepared.command.argv[0] == str(python)
        assert prepared.request is not None
        assert not mark.exists()


def test_what_is_asked_outside_the_walls_finds_no_program_of_a_package(tmp_path: Path) -> None:
    """An interpreter that is a script itself asks PATH for the one that runs it."""
    with manager_of(tmp_path) as manager:
        before = manager.prepare_skill_script("animals", "run").command
        own, tree = before.environment["PATH"], tmp_path / "tree"
        path = os.pathsep.join((str(tree / "node_modules/.bin"), own))
        prepared = (Prepared("node", tree, "/usr/bin/node"),)
        command = replace(before, prepared=prepared, environment={**before.environment, "PATH": path})
        assert (command.own_path, command.own_interpreter) == (own, before.argv[0])


@pytest.mark.parametrize("added_first", [True, False])
def test_a_new_file_of_an_old_release_is_told_by_its_age_and_is_not_taken_for_the_other(
    index: PackageIndex, tmp_path: Path, added_first: bool
) -> None:
    old = {"name": "zebra", "version": "1.0", "code": "VERSION = 'old'\n"}
    new = {"name": "zebra", "version": "1.0", "code": "VERSION = 'new'\n", "build": "1"}
    files = [index.add(**each) for each in ((new, old) if added_first else (old, new))]
    index.ages[next(each for each in files if "-1-py3" in each)] = 0.1
    with manager_of(tmp_path) as manager:
        asked = ScriptedApprover("yes_once")
        with pytest.raises(SkillKitError, match="younger than 7 days"):
            manager.prepare_packages("animals", approver=asked)
        index.ages.clear()
        asked = ScriptedApprover("yes_once")
        manager.prepare_packages("animals", approver=asked)
        (module,) = tree_of(tmp_path).glob("lib/python3*/site-packages/zebra.py")
        shown = next(iter(index.packages["zebra"]))
        assert ("new" in module.read_text()) == ("-1-py3" in shown), "the file whose size was shown"
    plain = next(install_plainly(tmp_path).glob("lib/python3*/site-packages/zebra.py"))
    assert "new" in plain.read_text(), "control: the tool takes it whatever comes first"
