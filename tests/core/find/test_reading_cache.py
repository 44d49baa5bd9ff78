from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from support.skill_folders import discovered, metadata_of, settled, skill_folder

from skillkit.core.find import reading as cache_module
from skillkit.core.find.reading import Reading, ReadingCache, drop_oldest, file_key

READING = Reading("s", '["d", [], null, null, null, {}, {}]', "[]")


@pytest.fixture
def saved(tmp_path: Path) -> tuple[ReadingCache, str, os.stat_result]:
    """A cache on disk that knows one file, the file, and its status."""
    path = str(skill_folder(tmp_path / "root", "s") / "SKILL.md")
    status = settled(os.stat(path))
    cache = ReadingCache(tmp_path / "cache", str(tmp_path / "root"))
    cache.put(path, status, READING)
    cache.save()
    return cache, path, status


def again(cache: ReadingCache) -> ReadingCache:
    loaded = ReadingCache(cache.folder, cache.root)
    loaded.load()
    return loaded


def test_a_reading_comes_back_as_it_was(saved: tuple[ReadingCache, str, os.stat_result]) -> None:
    cache, path, status = saved
    assert again(cache).get(path, file_key(status)) == READING


def test_a_reading_survives_discoveries_that_only_use_it(saved: tuple[ReadingCache, str, os.stat_result]) -> None:
    cache, path, status = saved
    written = cache.file.stat().st_ino
    second = again(cache)
    assert second.get(path, file_key(status)) == READING
    second.save()
    assert cache.file.stat().st_ino == written
    assert again(second).get(path, file_key(status)) == READING


@pytest.mark.parametrize("part", range(5))
def test_any_change_of_the_files_status_makes_it_unknown(
    saved: tuple[ReadingCache, str, os.stat_result], part: int
) -> None:
    """Device, inode, size, time of change and time of status change: a file replaced by a twin differs in one."""
    cache, path, status = saved
    words = file_key(status).split()
    words[part] = str(int(words[part]) + 1)
    assert again(cache).get(path, " ".join(words)) is None


def test_a_fresh_file_is_not_kept(tmp_path: Path) -> None:
    path = str(skill_folder(tmp_path, "s") / "SKILL.md")
    cache = ReadingCache(tmp_path / "cache", str(tmp_path))
    cache.put(path, os.stat(path), READING)
    cache.save()
    assert not (tmp_path / "cache").exists()


def test_a_file_from_the_future_is_not_kept(tmp_path: Path) -> None:
    path = str(skill_folder(tmp_path, "s") / "SKILL.md")
    cache = ReadingCache(tmp_path / "cache", str(tmp_path))
    cache.put(path, settled(os.stat(path), seconds=-3600), READING)
    assert cache._current == []


def test_another_format_makes_everything_unknown(
    saved: tuple[ReadingCache, str, os.stat_result], monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, path, status = saved
    monkeypatch.setattr(cache_module, "FORMAT", "skillkit readings of another kind")
    assert again(cache).get(path, file_key(status)) is None


def damaged(content: bytes) -> list[bytes]:
    """The file cut, extended and with single bytes changed at many places."""
    cut = [content[:length] for length in range(0, len(content), 7)]
    flipped = [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in range(0, len(content), 5)]
    header, _, body = content.partition(b"\n")
    return [*cut, *flipped, content + b"x", header, body, b"\xff" * 100, b"\0" * 100, b"[" * 10_000, b"{}"]


def test_a_damaged_cache_counts_as_none(saved: tuple[ReadingCache, str, os.stat_result]) -> None:
    cache, path, status = saved
    content = cache.file.read_bytes()
    for damage in damaged(content):
        cache.file.write_bytes(damage)
        assert again(cache).get(path, file_key(status)) is None, damage
    cache.file.write_bytes(content)
    assert again(cache).get(path, file_key(status)) == READING


def test_a_folder_in_place_of_the_cache_is_harmless(saved: tuple[ReadingCache, str, os.stat_result]) -> None:
    cache, path, status = saved
    cache.file.unlink()
    cache.file.mkdir()
    second = again(cache)
    second.put(path, status, READING)
    second.save()
    assert sorted(entry.name for entry in cache.folder.iterdir()) == [cache.file.name]


def test_a_state_folder_that_cannot_be_made_is_harmless(tmp_path: Path) -> None:
    skill_folder(tmp_path / "root", "s")
    (tmp_path / "file").write_text("")
    assert list(metadata_of(discovered(tmp_path / "root", tmp_path / "file" / "cache"))) == ["s"]


@pytest.mark.parametrize("name", ["tab\there", "line\nend", "del\x7f", "caf\udce9"])
def test_names_that_would_break_a_line_are_read_every_time(tmp_path: Path, name: str) -> None:
    path = str(skill_folder(tmp_path, "s") / "SKILL.md")
    cache = ReadingCache(tmp_path / "cache", str(tmp_path))
    cache.put(f"{tmp_path}/{name}/SKILL.md", settled(os.stat(path)), READING)
    cache.put(path, settled(os.stat(path)), Reading(name, READING.fields, READING.notes))
    assert cache._current == []


def test_only_the_latest_roots_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "KEPT_ROOTS", 2)
    for age, name in enumerate(("aa", "bb", "cc")):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    drop_oldest(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["aa", "bb"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with two skills whose files count as settled at once."""
    monkeypatch.setattr(cache_module, "SETTLED_NANOSECONDS", -(10**12))
    skill_folder(tmp_path / "root", "a", frontmatter="name: other\ndescription: old one\n")
    skill_folder(tmp_path / "root", "b", frontmatter="name: b\n")
    return tmp_path / "root"


def test_a_second_discovery_says_the_same(root: Path, tmp_path: Path) -> None:
    first, second, third = (discovered(root, tmp_path / "cache") for _ in range(3))
    assert metadata_of(first) == metadata_of(second) == metadata_of(third)
    assert first.diagnostics == second.diagnostics == third.diagnostics
    assert [diagnostic.code for diagnostic in first.diagnostics] == ["name-mismatch", "missing-field"]
    assert len(list((tmp_path / "cache").iterdir())) == 1


def description(root: Path, cache: Path) -> str:
    return metadata_of(discovered(root, cache))["other"].description


def test_a_changed_file_is_read_again(root: Path, tmp_path: Path) -> None:
    assert description(root, tmp_path / "cache") == "old one"
    skill_folder(root, "a", frontmatter="name: other\ndescription: new and longer\n")
    assert description(root, tmp_path / "cache") == "new and longer"


def test_a_file_of_the_same_size_and_time_is_still_noticed(root: Path, tmp_path: Path) -> None:
    file = root / "a" / "SKILL.md"
    assert description(root, tmp_path / "cache") == "old one"
    before = file.stat()
    time.sleep(0.02)  # longer than a tick of the clock that stamps files
    file.write_text(file.read_text().replace("old one", "new one"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert description(root, tmp_path / "cache") == "new one"


def test_a_file_replaced_by_another_of_the_same_size_and_time_is_noticed(root: Path, tmp_path: Path) -> None:
    file = root / "a" / "SKILL.md"
    assert description(root, tmp_path / "cache") == "old one"
    before = file.stat()
    twin = tmp_path / "twin"
    twin.write_text(file.read_text().replace("old one", "new one"))
    os.utime(twin, ns=(before.st_atime_ns, before.st_mtime_ns))
    twin.replace(file)
    assert description(root, tmp_path / "cache") == "new one"


def test_a_touched_file_still_says_the_same(root: Path, tmp_path: Path) -> None:
    assert description(root, tmp_path / "cache") == "old one"
    (root / "a" / "SKILL.md").touch()
    assert description(root, tmp_path / "cache") == "old one"


def test_a_removed_skill_is_gone_from_result_and_cache(root: Path, tmp_path: Path) -> None:
    discovered(root, tmp_path / "cache")
    (root / "a" / "SKILL.md").unlink()
    assert metadata_of(discovered(root, tmp_path / "cache")) == {}
    (file,) = (tmp_path / "cache").iterdir()
    assert str(root / "a") not in file.read_text()


def test_the_cache_may_be_deleted_at_any_time(root: Path, tmp_path: Path) -> None:
    discovered(root, tmp_path / "cache")
    for file in (tmp_path / "cache").iterdir():
        file.unlink()
    assert description(root, tmp_path / "cache") == "old one"
    for file in (tmp_path / "cache").iterdir():
        file.unlink()
    (tmp_path / "cache").rmdir()
    assert description(root, tmp_path / "cache") == "old one"


def test_the_cache_is_for_its_owner_only(root: Path, tmp_path: Path) -> None:
    discovered(root, tmp_path / "cache")
    assert (tmp_path / "cache").stat().st_mode & 0o077 == 0
