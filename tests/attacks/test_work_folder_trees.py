"""What a script piles up in its work folder: the run ends, is on record, and nothing of it stays."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from support.running import kinds, only_record, runnable
from support.workspaces import WALLS

from skillkit import TRUSTED, ScriptExecutionResult, ScriptPolicy
from skillkit.core.paths.trees import remove_tree

DEEP = """
import os
place = os.open(os.environ["SKILL_WORK_DIR"], os.O_RDONLY)
for level in range(1_500):
    os.mkdir("d" * {length}, dir_fd=place)
    below = os.open("d" * {length}, os.O_RDONLY, dir_fd=place)
    os.close(place)
    place = below
os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=place))
"""
MANY = """
import os
os.chdir(os.environ["SKILL_WORK_DIR"])
for number in range(20_000):
    os.close(os.open(f"{number:0200}", os.O_CREAT | os.O_WRONLY))
"""
CLOSED = """
import os
os.chdir(os.environ["SKILL_WORK_DIR"])
os.makedirs("a/b/c")
open("a/b/c/file", "w").close()
for name in ("a/b/c", "a/b", "a"):
    os.chmod(name, 0)
os.chmod(".", 0)
"""


@pytest.fixture(params=[WALLS, TRUSTED], ids=["walls", "none"])
def policy(request: pytest.FixtureRequest, tier: str) -> ScriptPolicy:
    """In both kinds of walls, and without any."""
    assert tier
    chosen: ScriptPolicy = request.param
    return chosen


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def ended(folder: Path, script: str, policy: ScriptPolicy) -> ScriptExecutionResult:
    with runnable(folder, script, name="scripts/run.py", policy=policy) as manager:
        return manager.execute_skill_script("demo", "run", timeout=60)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the library does not recurse any more")
def test_control_the_usual_way_cannot_remove_such_a_tree(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    exec(DEEP.format(length=1).replace('os.environ["SKILL_WORK_DIR"]', repr(str(tmp_path / "work"))))
    try:
        with pytest.raises((RecursionError, OSError)):
            shutil.rmtree(tmp_path / "work")
    finally:
        remove_tree(tmp_path / "work")


@pytest.mark.parametrize("length", [1, 200])
def test_a_tree_too_deep_for_paths_and_stacks_is_removed_and_its_run_recorded(
    tmp_path: Path, temporary: Path, policy: ScriptPolicy, length: int
) -> None:
    result = ended(tmp_path, DEEP.format(length=length), policy)
    assert (result.exit_code, result.artifacts) == (0, ())
    assert kinds(tmp_path) == ["started", "finished"]
    assert only_record(tmp_path, "finished")["exit_code"] == 0
    assert os.listdir(temporary) == []


def test_of_very_many_files_the_first_are_listed_and_all_are_removed(
    tmp_path: Path, temporary: Path, policy: ScriptPolicy
) -> None:
    result = ended(tmp_path, MANY, policy)
    assert result.exit_code == 0
    assert [each.relative_path.name for each in result.artifacts] == [f"{number:0200}" for number in range(1_000)]
    assert os.listdir(temporary) == []


def test_what_a_script_closed_to_its_own_user_is_removed(tmp_path: Path, temporary: Path, policy: ScriptPolicy) -> None:
    assert ended(tmp_path, CLOSED, policy).exit_code == 0
    assert kinds(tmp_path) == ["started", "finished"]
    assert os.listdir(temporary) == []


def test_a_link_in_the_place_of_the_work_folder_takes_nothing_of_yours_with_it(tmp_path: Path, temporary: Path) -> None:
    for name in (".home", ".tmp"):  # what is tidied away in a work folder
        (tmp_path / "mine" / name).mkdir(parents=True)
        (tmp_path / "mine" / name / "file").write_text("mine")
    script = f'rm -r "$SKILL_WORK_DIR" && ln -s {tmp_path}/mine "$SKILL_WORK_DIR"'
    with runnable(tmp_path, script) as manager:
        assert manager.execute_skill_script("demo", "run").success
    assert sorted(path.name for path in (tmp_path / "mine").rglob("file")) == ["file", "file"]
    assert os.listdir(temporary) == []
