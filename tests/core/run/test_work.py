from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.running import ordinary_user, said_by_user

from skillkit.core.paths import temporary as temporary_folders
from skillkit.core.run import work
from skillkit.core.run.work import WorkFolders
from skillkit.core.values.runs import Artifact


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def folders(temporary: Path) -> Iterator[WorkFolders]:
    assert temporary.is_dir()
    made = WorkFolders()
    yield made
    made.close()


def test_nothing_is_made_before_it_is_needed(folders: WorkFolders, temporary: Path) -> None:
    assert list(temporary.iterdir()) == []
    folders.close()


def test_each_run_has_a_private_folder(folders: WorkFolders) -> None:
    first, second = folders.new(), folders.new()
    assert first != second
    assert {oct(folder.stat().st_mode & 0o777) for folder in (first, second, first.parent)} == {"0o700"}


def test_a_folder_that_is_given_back_twice_is_not_taken_from_who_has_it_then(folders: WorkFolders) -> None:
    first = folders.new()
    folders.tidy(first)
    mine = folders.new()
    folders.tidy(first)
    assert folders.new() != folders.new()
    (mine / "deep").mkdir()
    others = WorkFolders()
    others.tidy(mine)
    assert (mine / "deep").is_dir(), "nor does anybody else tidy it"
    others.close()


def test_files_are_listed_by_path_and_nothing_else_is(folders: WorkFolders) -> None:
    folder = folders.new()
    (folder / "b").write_text("12")
    (folder / "sub").mkdir()
    (folder / "sub" / "a").write_text("1")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "away").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    assert folders.artifacts(folder) == (
        Artifact(folder / "b", 2, Path("b")),
        Artifact(folder / "sub" / "a", 1, Path("sub/a")),
    )
    assert folder.exists()


@pytest.mark.parametrize("left", [[], ["sub"], ["sub/deeper"]])
def test_a_folder_without_files_leaves_nothing_for_the_next_run(folders: WorkFolders, left: list[str]) -> None:
    folder = folders.new()
    for relative in left:
        (folder / relative).mkdir(parents=True)
    assert folders.artifacts(folder) == ()
    folders.tidy(folder)
    assert list(folders.new().iterdir()) == []


@pytest.mark.parametrize("change", ["removed", "file", "link", "open"])
def test_a_folder_that_a_script_tampered_with_is_not_used_again(
    folders: WorkFolders, change: str, tmp_path: Path
) -> None:
    folder = folders.new()
    outside = tmp_path / "outside"
    outside.mkdir()
    if change == "open":
        folder.chmod(0o777)
    else:
        folder.rmdir()
    if change == "file":
        folder.write_text("x")
    if change == "link":
        folder.symlink_to(outside)
    assert folders.artifacts(folder) == ()
    folders.tidy(folder)
    for _ in range(2):
        fresh = folders.new()
        assert not fresh.is_symlink()
        assert oct(fresh.stat().st_mode & 0o777) == "0o700"
        assert fresh.parent == folder.parent
    assert list(outside.iterdir()) == []


def test_a_settled_folder_is_known_to_be_empty_without_a_look_and_full_when_it_is(
    folders: WorkFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "SETTLED_NANOSECONDS", 20_000_000)
    first = folders.new()
    assert folders.artifacts(first) == ()
    folders.tidy(first)
    time.sleep(0.05)
    assert folders.new() == first
    with monkeypatch.context() as blind:
        blind.setattr(os, "listdir", None)  # whoever looks inside now fails
        assert folders.artifacts(first) == ()
        folders.tidy(first)
    assert folders.new() == first
    (first / "left.txt").write_text("x")
    assert [artifact.path for artifact in folders.artifacts(first)] == [first / "left.txt"]
    folders.tidy(first)
    assert folders.new() != first


def test_a_folder_spoiled_while_it_waits_is_not_used_again(folders: WorkFolders, tmp_path: Path) -> None:
    folder = folders.new()
    folders.tidy(folder)
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert not folders.new().is_symlink()


def test_closing_removes_everything_and_a_new_start_is_possible(folders: WorkFolders, temporary: Path) -> None:
    folder = folders.new()
    (folder / "x").write_text("x")
    folders.close()
    assert list(temporary.iterdir()) == []
    folders.close()
    assert folders.new().is_dir()


def test_a_forgotten_set_of_folders_is_removed_with_it(temporary: Path) -> None:
    folders = WorkFolders()
    (folders.new() / "x").write_text("x")
    del folders
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_the_end_of_the_program_removes_them(tmp_path: Path) -> None:
    code = "from skillkit.core.run.work import WorkFolders\nfolders = WorkFolders()\n(folders.new() / 'x').write_text('x')\n"
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_leaves_its_parents_folders_alone(tmp_path: Path) -> None:
    code = textwrap.dedent(
        """
        import os, sys
        from skillkit.core.run.work import WorkFolders
        folders = WorkFolders()
        file = folders.new() / "x"
        file.write_text("x")
        if os.fork() == 0:
            sys.exit()
        os.wait()
        print(file.exists())
        """
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
    ).stdout
    assert said == "True\n"
    assert list(tmp_path.iterdir()) == []


def test_what_a_script_closed_to_its_own_user_is_removed_too() -> None:
    with ordinary_user() as folder:
        said = said_by_user(
            """
            import os
            from skillkit.core.run.work import WorkFolders
            folders = WorkFolders()
            work = folders.new()
            root = work.parent
            for depth, mode in (("a/b", 0), ("a", 0o555), ("c", 0o300), ("d", 0)):
                (work / depth).mkdir(parents=True, exist_ok=True)
                (work / depth / "file").write_text("x")
            for depth, mode in (("a/b", 0), ("a", 0o555), ("c", 0o300), ("d", 0)):
                os.chmod(work / depth, mode)
            os.chmod(work, 0)
            folders.artifacts(work)
            folders.tidy(work)
            folders.close()
            print(root.exists())
            """,
            folder,
        )
        assert said == "False\n"


KILLED = """
import os, signal, sys
from skillkit.core.run.work import WorkFolders
folders = WorkFolders()
folder = folders.new()
(folder / "left.txt").write_text("left")
print(folder.parent, flush=True)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there nothing tells who holds a folder")
def test_what_a_killed_process_left_goes_at_the_next_start_and_nothing_else_does(
    temporary: Path, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    ) as process:
        assert process.stdout is not None
        root = Path(process.stdout.readline().strip())
        link = temporary / "skillkit-work-link"
        link.symlink_to(tmp_path)
        open_to_all = temporary / "skillkit-work-open"
        open_to_all.mkdir(mode=0o755)
        assert after_sweeping(root).is_dir(), "somebody uses it"
        process.communicate("")
    assert not after_sweeping(root).exists()
    assert link.is_symlink()
    assert open_to_all.is_dir()


def after_sweeping(root: Path) -> Path:
    temporary_folders.remove_abandoned.cache_clear()
    temporary_folders.remove_abandoned()
    return root


MAKERS = """
import os, sys
from skillkit.core.run.work import WorkFolders
from skillkit.core.paths import temporary
for _ in range(200):
    folders = WorkFolders()
    folder = folders.new()
    (folder / "file").write_text("mine")
    temporary.remove_abandoned.cache_clear()
    temporary.remove_abandoned()
    assert (folder / "file").read_text() == "mine"
    folders.close()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there nothing tells who holds a folder")
def test_no_process_takes_another_s_new_folder_for_abandoned(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [subprocess.Popen([sys.executable, "-c", MAKERS], env=environment) for _ in range(3)]
    assert [process.wait(60) for process in started] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []


HOLDER = """
import os, signal, sys
from skillkit.core.paths.temporary import temporary_folder
with temporary_folder("probe") as folder:
    print(folder, flush=True)
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there nothing tells who holds a folder")
def test_a_temporary_folder_goes_with_its_block_and_after_a_kill_at_the_next_start(temporary: Path) -> None:
    with temporary_folders.temporary_folder("probe") as folder:
        Path(folder, "x").write_text("x")
    assert list(temporary.iterdir()) == []
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        held = Path(process.stdout.readline().strip())
        assert after_sweeping(held).is_dir(), "somebody uses it"
        process.communicate("")
    assert held.is_dir()
    assert not after_sweeping(held).exists()
