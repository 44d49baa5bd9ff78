from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from support.running import ordinary_user, said_by_user

from skillkit.core.paths import trees
from skillkit.core.paths.files import Folder
from skillkit.core.paths.trees import files_below, remove_tree

LEVELS = 3_000


def nested(top: Path, levels: int, name: str = "d" * 40) -> None:
    """By descriptor: the path becomes longer than the system takes."""
    top.mkdir()
    folder = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=folder)
        below = os.open(name, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the library does not recurse any more")
def test_the_usual_way_fails_on_a_deep_tree(tmp_path: Path) -> None:
    nested(tmp_path / "top", LEVELS)
    try:
        with pytest.raises((OSError, RecursionError)):
            shutil.rmtree(tmp_path / "top")
    finally:
        remove_tree(tmp_path / "top")


def test_a_tree_of_any_depth_is_removed(tmp_path: Path) -> None:
    nested(tmp_path / "top", LEVELS)
    remove_tree(tmp_path / "top")
    assert os.listdir(tmp_path) == []


def test_what_a_link_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "top" / "deep").mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    for link in (tmp_path / "top" / "link", tmp_path / "top" / "deep" / "link"):
        link.symlink_to(tmp_path / "mine")
    remove_tree(tmp_path / "top")
    (tmp_path / "top").symlink_to(tmp_path / "mine")
    remove_tree(tmp_path / "top")
    assert os.listdir(tmp_path) == ["mine"]
    assert (tmp_path / "mine" / "file").read_text() == "mine"


def test_what_was_made_unreadable_goes_too() -> None:
    code = """
        import os
        from skillkit.core.paths.trees import remove_tree
        os.makedirs("top/a/b/c")
        open("top/a/b/c/file", "w").close()
        for path in ("top/a/b/c", "top/a/b", "top/a", "top"):
            os.chmod(path, 0)
        try:
            os.listdir("top")
        except PermissionError:
            print("closed")
        remove_tree("top")
        print(os.path.lexists("top"))
    """
    with ordinary_user() as folder:
        assert said_by_user(code, folder).split() == ["closed", "False"]


def test_files_are_found_by_name_and_links_are_not(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "c").write_text("12345")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "also").symlink_to(tmp_path / "a" / "b" / "c")
    os.mkfifo(tmp_path / "pipe")
    with Folder.of(tmp_path) as top:
        assert [(names, status.st_size) for names, status in files_below(top)] == [(("a", "b", "c"), 5)]


def test_a_look_for_files_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nested(tmp_path / "top", LEVELS, name="d")
    (tmp_path / "many").mkdir()
    for number in range(50):
        (tmp_path / "many" / str(number)).touch()
    with Folder.of(tmp_path / "top") as top:
        assert list(files_below(top)) == []
    monkeypatch.setattr(trees, "LOOKED_AT", 20)
    with Folder.of(tmp_path / "many") as top:
        assert len(list(files_below(top))) == 20
    remove_tree(tmp_path / "top")


def test_a_look_for_files_holds_few_descriptors(tmp_path: Path) -> None:
    nested(tmp_path / "top", 60, name="d")
    before = len(os.listdir("/proc/self/fd"))
    with Folder.of(tmp_path / "top") as top:
        for _ in files_below(top):
            assert len(os.listdir("/proc/self/fd")) <= before + 3
    assert len(os.listdir("/proc/self/fd")) == before
