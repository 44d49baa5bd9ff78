from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from skillkit.core.paths.files import Folder, copy_content


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "key").write_text("secret")
    return folder


def copied(source: Path, target: Path, *, limit: int | None = None) -> int:
    with source.open("rb") as reading, target.open("xb") as writing:
        return copy_content(reading.fileno(), writing.fileno(), limit=limit)


def test_a_named_folder_is_made_with_all_that_leads_there(tmp_path: Path) -> None:
    with Folder.named(tmp_path / "a" / "b", make=True) as folder:
        folder.write_new("c", b"text")
    assert (tmp_path / "a" / "b" / "c").read_bytes() == b"text"


def test_a_folder_that_is_not_there_is_not_made_unasked(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Folder.named(tmp_path / "a")


@pytest.mark.parametrize("way", ["link", "link/sub", "chain", "real/link/sub", "real/../link"])
def test_no_link_on_the_way_to_a_named_folder_is_followed(tmp_path: Path, victim: Path, way: str) -> None:
    (tmp_path / "real").mkdir()
    for link in (tmp_path / "link", tmp_path / "real" / "link"):
        link.symlink_to(victim)
    (tmp_path / "chain").symlink_to("link")
    os.makedirs(tmp_path / way, exist_ok=True)  # the control: by name it is the victim's
    assert victim in (Path(os.path.realpath(tmp_path / way)), Path(os.path.realpath(tmp_path / way)).parent)
    with pytest.raises(OSError, match="a link is in the way"):
        Folder.named(tmp_path / way, make=True)


def test_a_link_at_the_top_of_the_system_is_followed() -> None:
    links = [entry for entry in os.scandir("/") if entry.is_symlink() and entry.is_dir()]
    if not links:
        pytest.skip("this machine has none")
    with Folder.named(links[0].path) as folder:
        assert folder.is_still_at(os.path.realpath(links[0].path))


def test_a_held_folder_stays_the_same_whatever_its_name_comes_to_mean(tmp_path: Path, victim: Path) -> None:
    with Folder.named(tmp_path / "out", make=True) as folder:
        (tmp_path / "out").rename(tmp_path / "moved")
        (tmp_path / "out").symlink_to(victim)
        folder.write_new("key", b"planted")
        assert not folder.is_still_at(tmp_path / "out")
        assert folder.is_still_at(tmp_path / "moved")
    assert (victim / "key").read_text() == "secret"
    assert (tmp_path / "moved" / "key").read_text() == "planted"


@pytest.mark.parametrize("is_dangling", [True, False])
def test_a_new_file_is_never_made_through_a_link(tmp_path: Path, victim: Path, is_dangling: bool) -> None:
    (tmp_path / "file").symlink_to(victim / ("new" if is_dangling else "key"))
    with Folder.of(tmp_path) as folder, pytest.raises(FileExistsError):
        folder.write_new("file", b"planted")
    assert sorted(os.listdir(victim)) == ["key"]
    assert (victim / "key").read_text() == "secret"


def test_only_a_plain_file_is_replaced(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to(victim / "key")
    (tmp_path / "folder").mkdir()
    with Folder.of(tmp_path) as folder:
        folder.replace("file", b"new")
        for name in ("link", "folder"):
            with pytest.raises(OSError, match=r"link is in the way|no plain file"):
                folder.replace(name, b"new")
    assert (tmp_path / "file").read_text() == "new"
    assert (victim / "key").read_text() == "secret"
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "link", "victim"]


def test_a_file_with_a_second_name_is_replaced_under_one(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "file").hardlink_to(victim / "key")
    with Folder.of(tmp_path) as folder:
        folder.replace("file", b"new")
    assert (victim / "key").read_text() == "secret"


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "../victim", "/etc"])
def test_only_single_names_are_entries(tmp_path: Path, name: str) -> None:
    attempts: list[Callable[[Folder], object]] = [
        lambda folder: folder.new_file(name),
        lambda folder: folder.folder(name, make=True),
        lambda folder: folder.open_file(name),
        lambda folder: folder.status(name),
    ]
    with Folder.of(tmp_path) as folder:
        for attempt in attempts:
            with pytest.raises(OSError, match="no plain name"):
                attempt(folder)


def test_neither_a_link_nor_a_pipe_is_read(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "link").symlink_to(victim / "key")
    os.mkfifo(tmp_path / "pipe")
    with Folder.of(tmp_path) as folder:
        for name in ("link", "pipe"):
            with pytest.raises(OSError, match=r"levels of symbolic links|no plain file"):
                folder.open_file(name)


def test_holes_stay_holes(tmp_path: Path) -> None:
    source = tmp_path / "source"
    with source.open("wb") as file:
        file.write(b"begin")
        file.seek(300_000_000)
        file.write(b"middle")
        file.truncate(500_000_000)
    written = copied(source, tmp_path / "copy", limit=10_000_000)
    status = (tmp_path / "copy").stat()
    assert status.st_size == 500_000_000
    assert max(written, status.st_blocks * 512) < 5_000_000
    with (tmp_path / "copy").open("rb") as file:
        assert file.read(5) == b"begin"
        file.seek(300_000_000)
        assert file.read(8) == b"middle\0\0"


@pytest.mark.parametrize("content", [b"", b"text", b"\0" * 10_000, os.urandom(3_000_000)])
def test_a_copy_has_the_same_content(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "source").write_bytes(content)
    copied(tmp_path / "source", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content


def test_nothing_past_the_limit_is_written(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"x" * 5_000_000)
    with pytest.raises(OSError, match="limit") as caught:
        copied(tmp_path / "source", tmp_path / "copy", limit=4_999_999)
    assert caught.value.errno == errno.EFBIG
    assert (tmp_path / "copy").stat().st_size == 0
