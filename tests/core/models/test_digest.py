from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.running import ordinary_user, said_by_user

from skillkit import ContentLoadError
from skillkit.core.models import digest
from skillkit.core.models.digest import manifest_of


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    for kept in (digest._hashes, digest._readings):
        kept.clear()
    yield
    for kept in (digest._hashes, digest._readings):
        kept.clear()


def write(base: Path, files: dict[str, str]) -> Path:
    for relative, text in files.items():
        (base / relative).parent.mkdir(parents=True, exist_ok=True)
        (base / relative).write_text(text)
    return base


def hashed(text: str) -> str:
    return f"sha256 {sha256(text.encode()).hexdigest()}"


def test_a_manifest_lists_every_file_in_order_with_its_hash(tmp_path: Path) -> None:
    write(tmp_path, {"b.txt": "b", "a/c.txt": "c", ".hidden": "h", ".git/HEAD": "x", "a/.git/HEAD": "x"})
    (tmp_path / "link").symlink_to("b.txt")
    (tmp_path / "away").symlink_to("/etc")
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert manifest_of(tmp_path).entries == (
        (".hidden", hashed("h")),
        ("a/c.txt", hashed("c")),
        ("away", "link /etc"),
        ("b.txt", hashed("b")),
        ("link", "link b.txt"),
        ("pipe", "special"),
    )


def test_the_digest_is_the_same_wherever_the_skill_is(tmp_path: Path) -> None:
    files = {"SKILL.md": "x", "scripts/run.sh": "y"}
    first, second = (manifest_of(write(tmp_path / name, files)) for name in ("one", "two"))
    assert first == second
    assert len(first.digest) == 64


def test_any_change_changes_the_digest(tmp_path: Path) -> None:
    base = write(tmp_path, {"a": "1", "b": "2"})
    seen = {manifest_of(base).digest}
    (base / "a").write_text("3")
    seen.add(manifest_of(base).digest)
    (base / "c").write_text("")
    seen.add(manifest_of(base).digest)
    (base / "b").unlink()
    seen.add(manifest_of(base).digest)
    (base / "c").rename(base / "d")
    seen.add(manifest_of(base).digest)
    (base / "d").unlink()
    (base / "d").symlink_to("a")
    seen.add(manifest_of(base).digest)
    assert len(seen) == 6


def test_names_with_line_breaks_cannot_make_two_skills_look_alike(tmp_path: Path) -> None:
    for base, link, name in ((tmp_path / "first", "x", "y\nb"), (tmp_path / "second", "x\ny", "b")):
        base.mkdir()
        (base / "a").symlink_to(link)
        (base / name).write_text("same")
    assert manifest_of(tmp_path / "first").digest != manifest_of(tmp_path / "second").digest


NAMES = st.text(st.sampled_from("ab\n \\\udcff"), min_size=1, max_size=3)
SKILLS = st.dictionaries(NAMES, st.tuples(st.sampled_from(["file", "link"]), NAMES), max_size=3)


@settings(max_examples=80, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one=SKILLS, other=SKILLS)
def test_two_skills_have_the_same_digest_only_if_they_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, one: dict[str, tuple[str, str]], other: dict[str, tuple[str, str]]
) -> None:
    digests = []
    for skill in (one, other):
        base = tmp_path_factory.mktemp("skill")
        for name, (kind, text) in skill.items():
            if kind == "link":
                os.symlink(text, base / name)
            else:
                (base / name).write_bytes(os.fsencode(text))
        digests.append(manifest_of(base).digest)
    assert (digests[0] == digests[1]) == (one == other)


def test_a_name_that_is_not_utf8_is_part_of_it(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff")).write_text("x")
    os.symlink(b"\xfe", os.fsencode(tmp_path) + b"/link")
    assert [name for name, _ in manifest_of(tmp_path).entries] == ["link", "\udcff"]


def test_a_change_that_keeps_size_and_time_is_seen(tmp_path: Path) -> None:
    base = write(tmp_path, {"a": "one"})
    before = manifest_of(base).digest
    status = (base / "a").stat()
    (base / "a").write_text("two")
    os.utime(base / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert manifest_of(base).digest != before


def test_the_hash_of_a_fresh_file_is_not_kept_and_that_of_a_settled_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = write(tmp_path, {"a": "one"})
    manifest_of(base)
    assert digest._hashes == {}
    now = time.time_ns()
    monkeypatch.setattr("skillkit.core.models.digest.time.time_ns", lambda: now + 3_000_000_000)
    first = manifest_of(base)
    assert list(digest._hashes) == [str(base / "a")]
    assert manifest_of(base) == first
    (base / "a").write_text("two")
    assert manifest_of(base) != first


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda folder: (folder / "new.sh").write_text("x"), id="added"),
        pytest.param(lambda folder: (folder / "run.sh").unlink(), id="removed"),
        pytest.param(lambda folder: (folder / "run.sh").rename(folder / "ran.sh"), id="renamed"),
        pytest.param(lambda folder: os.replace(folder / "other.sh", folder / "run.sh"), id="replaced"),
        pytest.param(lambda folder: (folder / "run.sh").write_text("changed"), id="written"),
    ],
)
def test_a_settled_folder_is_listed_once_and_again_after_any_change(
    tmp_path: Path, change: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"SKILL.md": "x", "scripts/run.sh": "y", "scripts/other.sh": "z"})
    monkeypatch.setattr(digest, "SETTLED_NANOSECONDS", 20_000_000)
    time.sleep(0.05)
    before = manifest_of(tmp_path)
    assert list(digest._readings) == [str(tmp_path)]
    monkeypatch.setattr(os, "scandir", None)  # whoever lists again now fails
    assert manifest_of(tmp_path) == before
    monkeypatch.undo()
    change(tmp_path / "scripts")
    changed = manifest_of(tmp_path)
    assert changed.digest != before.digest
    for kept in (digest._hashes, digest._readings):
        kept.clear()
    assert manifest_of(tmp_path) == changed


def test_the_reading_of_a_fresh_folder_is_not_kept(tmp_path: Path) -> None:
    manifest_of(write(tmp_path, {"SKILL.md": "x"}))
    assert digest._readings == {}


def test_the_reading_of_a_folder_with_something_that_has_no_hash_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "SETTLED_NANOSECONDS", -1)
    manifest_of(write(tmp_path, {"SKILL.md": "x"}))
    assert len(digest._readings) == 1
    os.mkfifo(tmp_path / "pipe")
    manifest_of(tmp_path)
    digest._readings.clear()
    manifest_of(tmp_path)
    assert digest._readings == {}


def test_a_link_that_leads_elsewhere_now_is_seen_in_a_settled_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "SETTLED_NANOSECONDS", -1)
    folders = [write(tmp_path / name, {"SKILL.md": name}) for name in ("one", "two")]
    base = tmp_path / "base"
    base.symlink_to(folders[0])
    assert manifest_of(base) == manifest_of(folders[0])
    base.unlink()
    base.symlink_to(folders[1])
    assert manifest_of(base) == manifest_of(folders[1])
    (folders[1] / "new").write_text("x")
    assert manifest_of(base) == manifest_of(folders[1])
    assert len(manifest_of(base).entries) == 2


def test_what_takes_longer_to_read_than_to_settle_is_not_kept_while_it_is_fresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "big").touch()
    os.truncate(tmp_path / "big", 200_000_000)
    monkeypatch.setattr(digest, "SETTLED_NANOSECONDS", 50_000_000)
    began = time.monotonic()
    manifest_of(tmp_path)
    assert time.monotonic() - began > 0.05
    assert (digest._hashes, digest._readings) == ({}, {})
    manifest_of(tmp_path)
    assert (len(digest._hashes), len(digest._readings)) == (1, 1)


def test_the_hash_of_another_file_that_stood_there_meanwhile_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders that change places leave no mark on the files in them."""
    monkeypatch.setattr(digest, "SETTLED_NANOSECONDS", -1)
    one, two = (write(tmp_path / name, {"run.sh": name}) for name in ("one", "two"))
    true_ones = manifest_of(one), manifest_of(two)
    for kept in (digest._hashes, digest._readings):
        kept.clear()

    def exchange() -> None:
        for old, new in ((one, tmp_path / "aside"), (two, one), (tmp_path / "aside", two)):
            old.rename(new)

    def hash_of_the_other(path: str) -> object:
        exchange()
        try:
            return file_hash(path)
        finally:
            exchange()

    file_hash = digest.file_hash
    monkeypatch.setattr(digest, "file_hash", hash_of_the_other)
    assert manifest_of(one) == true_ones[1]
    monkeypatch.setattr(digest, "file_hash", file_hash)
    assert manifest_of(one) == true_ones[0]


def test_readings_that_are_kept_are_bounded_by_all_their_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digest, "SETTLED_NANOSECONDS", -1)
    monkeypatch.setattr(digest, "KEPT_PATHS", 6)
    folders = [write(tmp_path / name, {"a": "x", "b": "y"}) for name in ("one", "two", "three")]
    for folder in folders:
        manifest_of(folder)
    assert list(digest._readings) == [str(folders[2])]


def test_a_folder_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ContentLoadError, match="all of it can be checked"):
        manifest_of(tmp_path / "gone")


def test_a_folder_that_cannot_be_listed_is_an_error_and_an_unreadable_file_is_not() -> None:
    with ordinary_user() as folder:
        write(folder / "skill", {"shut/a": "", "secret": "x"})
        for path, mode in (("secret", 0), ("shut", 0)):
            os.chmod(folder / "skill" / path, mode)
        said = said_by_user(
            """
            import os
            from pathlib import Path
            from skillkit import ContentLoadError
            from skillkit.core.models.digest import manifest_of
            try:
                manifest_of(Path("skill"))
            except ContentLoadError as error:
                print("all of it can be checked" in str(error))
            """,
            folder,
        )
        os.chmod(folder / "skill/shut", 0o755)
        said += said_by_user(
            "from pathlib import Path\nfrom skillkit.core.models.digest import manifest_of\n"
            "print(dict(manifest_of(Path('skill')).entries)['secret'])",
            folder,
        )
        assert said == "True\nunreadable\n"


def test_a_file_that_turns_into_a_link_while_it_is_hashed_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = write(tmp_path, {"a": "one"})
    plain_lstat = os.lstat

    def lstat_and_swap(path: str) -> os.stat_result:
        status = plain_lstat(path)
        os.unlink(path)
        os.symlink("/etc/passwd", path)
        return status

    monkeypatch.setattr("skillkit.core.models.digest.os.lstat", lstat_and_swap)
    with pytest.raises(ContentLoadError, match="cannot be read"):
        manifest_of(base)
