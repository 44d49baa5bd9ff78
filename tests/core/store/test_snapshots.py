"""Copies of skills: exactly what was hashed, kept while they are needed and no longer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from skillkit import ContentChangedError, StateUnavailableError
from skillkit.core.models import digest
from skillkit.core.models.digest import manifest_of
from skillkit.core.store import snapshots
from skillkit.core.store.snapshots import KEPT_COPIES, Snapshots


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


def copied(state: Snapshots, base: Path) -> Path:
    with state.hold(base, manifest_of(base)) as copy:
        return copy


def copies(state: Snapshots) -> set[str]:
    return {path.name for path in state.folder.iterdir()} - {".uses", "package.json"}


@pytest.mark.parametrize("found", [b"", b'{"type": "module"}\n'], ids=["cut off", "other words"])
def test_beside_the_copies_nothing_speaks_for_all_of_them(tmp_path: Path, found: bytes) -> None:
    base, state = write(tmp_path / "skill", {"SKILL.md": "x"}), Snapshots(tmp_path / "state")
    copied(state, base)
    (state.folder / "package.json").write_bytes(found)
    copied(state, base)
    assert (state.folder / "package.json").read_bytes() == b"{}\n"
    assert copies(state) == {manifest_of(base).digest}


def edited(state: Snapshots, base: Path, number: int) -> Path:
    write(base, {"a": f"version {number}"})
    return copied(state, base)


def test_a_copy_is_read_only_and_named_by_its_digest(tmp_path: Path) -> None:
    base = write(tmp_path / "skill", {"SKILL.md": "x", "scripts/run.sh": "echo\n", ".git/HEAD": "x"})
    (base / "scripts/run.sh").chmod(0o755)
    (base / "link").symlink_to("scripts/run.sh")
    state = Snapshots(tmp_path / "state")
    copy = copied(state, base)
    assert copy == tmp_path / "state/snapshots" / manifest_of(base).digest
    assert manifest_of(copy) == manifest_of(base)
    assert not (copy / ".git").exists()
    modes = [oct((copy / name).stat().st_mode & 0o777) for name in ("SKILL.md", "scripts/run.sh", "scripts")]
    assert modes == ["0o444", "0o555", "0o555"]
    assert copied(state, base) == copy
    assert copies(state) == {copy.name}


@pytest.mark.parametrize("change", ["rewritten", "removed", "link", "pipe"])
def test_a_skill_that_changed_since_gives_no_copy(tmp_path: Path, change: str) -> None:
    base = write(tmp_path / "skill", {"a": "1", "b": "2"})
    manifest = manifest_of(base)
    (base / "a").unlink()
    if change == "rewritten":
        (base / "a").write_text("3")
    elif change == "link":
        (base / "a").symlink_to("/etc/passwd")
    elif change == "pipe":
        os.mkfifo(base / "a")
    state = Snapshots(tmp_path / "state")
    with pytest.raises(ContentChangedError, match="changed while it was being copied"), state.hold(base, manifest):
        pass
    assert copies(state) == set()
    assert list((tmp_path / "state/snapshots/.uses").iterdir()) == []


def test_a_hole_stays_a_hole_in_the_copy(tmp_path: Path) -> None:
    base = write(tmp_path / "skill", {"a": "x"})
    os.truncate(base / "a", 100_000_000)
    copy = copied(Snapshots(tmp_path / "state"), base)
    assert (copy / "a").stat().st_size == 100_000_000
    assert (copy / "a").stat().st_blocks * 512 < 1_000_000


def test_of_forty_edits_the_newest_and_the_approved_ones_stay(tmp_path: Path) -> None:
    base, approved = tmp_path / "skill", set[str]()
    state = Snapshots(tmp_path / "state", lambda: approved)
    made = []
    for number in range(40):
        made.append(edited(state, base, number).name)
        if number == 3:
            approved.add(made[3])
    assert copies(state) == {made[3], *made[-KEPT_COPIES:]}
    assert {path.name for path in (tmp_path / "state/snapshots/.uses").iterdir()} == copies(state)


def test_the_newest_are_those_that_were_used_last(tmp_path: Path) -> None:
    base = tmp_path / "skill"
    state = Snapshots(tmp_path / "state")
    made = [edited(state, base, number).name for number in range(KEPT_COPIES)]
    edited(state, base, 0)
    new = edited(state, base, 99).name
    assert copies(state) == {made[0], *made[2:], new}


def test_the_copies_of_one_skill_do_not_push_out_those_of_another(tmp_path: Path) -> None:
    state = Snapshots(tmp_path / "state")
    other = copied(state, write(tmp_path / "other", {"a": "other"}))
    for number in range(2 * KEPT_COPIES):
        edited(state, tmp_path / "skill", number)
    assert other.is_dir()


def test_a_copy_in_use_stays_and_goes_when_it_is_not(tmp_path: Path) -> None:
    base = write(tmp_path / "skill", {"a": "in use"})
    state = Snapshots(tmp_path / "state")
    with state.hold(base, manifest_of(base)) as used:
        for number in range(2 * KEPT_COPIES):
            edited(state, base, number)
        assert (used / "a").read_text() == "in use"
    edited(state, base, 99)
    assert not used.exists()


HOLDS = """
import sys
from pathlib import Path
from skillkit.core.models.digest import manifest_of
from skillkit.core.store.snapshots import Snapshots
with Snapshots(Path(sys.argv[1])).hold(Path(sys.argv[2]), manifest_of(sys.argv[2])) as copy:
    print(copy.name, flush=True)
    sys.stdin.readline()
    print((copy / "a").read_text())
"""


def test_a_copy_that_another_process_uses_stays_until_that_ends(tmp_path: Path) -> None:
    base = write(tmp_path / "skill", {"a": "in use"})
    state = Snapshots(tmp_path / "state")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, tmp_path / "state", base],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        for number in range(2 * KEPT_COPIES):
            edited(state, base, number)
        assert name in copies(state)
        process.stdin.write("\n")
        process.stdin.close()
        assert process.stdout.read() == "in use\n"
    edited(state, base, 99)
    assert name not in copies(state)


RACES = """
import sys
from pathlib import Path
from skillkit.core.models.digest import manifest_of
from skillkit.core.store.snapshots import Snapshots
state, base = Snapshots(Path(sys.argv[1])), Path(sys.argv[2])
for turn in range(120):
    (base / "a").write_text(f"{sys.argv[3]} {turn % 7}")
    manifest = manifest_of(base)
    with state.hold(base, manifest) as copy:
        assert manifest_of(copy).digest == manifest.digest
print("well")
"""


def test_processes_that_make_use_and_remove_the_same_copies_never_miss_one(tmp_path: Path) -> None:
    """All of them share contents, each has a folder of its own; what one removes another may be about to take."""
    processes = []
    for name in ("one", "two", "three"):
        base = write(tmp_path / name, {"a": ""})
        words = [sys.executable, "-c", RACES, str(tmp_path / "state"), str(base), "same"]
        processes.append(subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    assert [process.communicate() for process in processes] == [("well\n", "")] * 3


def test_a_copy_unused_for_a_month_goes_unless_an_approval_is_about_it(tmp_path: Path) -> None:
    approved = set[str]()
    state = Snapshots(tmp_path / "state", lambda: approved)
    made = {name: copied(state, write(tmp_path / name, {"a": name})) for name in ("approved", "forgotten", "recent")}
    approved.add(made["approved"].name)
    for name in ("approved", "forgotten"):
        os.utime(tmp_path / "state/snapshots/.uses" / made[name].name, (0, 0))
    copied(state, write(tmp_path / "new", {"a": "new"}))
    assert {name: copy.exists() for name, copy in made.items()} == {
        "approved": True,
        "forgotten": False,
        "recent": True,
    }


def test_what_a_killed_process_left_unfinished_goes_after_a_day(tmp_path: Path) -> None:
    state = Snapshots(tmp_path / "state")
    copied(state, write(tmp_path / "one", {"a": "1"}))
    for name, age in ((".new-old", 0), (".new-fresh", None)):
        (state.folder / name / "deep").mkdir(parents=True)
        if age is not None:
            os.utime(state.folder / name, (age, age))
    copied(state, write(tmp_path / "two", {"a": "2"}))
    assert {name for name in copies(state) if name.startswith(".")} == {".new-fresh"}


@pytest.mark.parametrize("kind", ["other bytes", "one more file", "another copy's place"])
def test_a_copy_that_is_not_what_its_name_says_is_never_given_out(tmp_path: Path, kind: str) -> None:
    base = write(tmp_path / "skill", {"a": "good"})
    state = Snapshots(tmp_path / "state")
    evil = copied(state, write(tmp_path / "evil", {"a": "evil"}))
    copy = copied(state, base)
    for kept in (digest._hashes, digest._readings):
        kept.clear()
    if kind == "other bytes":
        (copy / "a").chmod(0o644)
        (copy / "a").write_text("evil")
    elif kind == "one more file":
        (copy / "b").write_text("evil")
    else:
        copy.rename(tmp_path / "gone")
        evil.rename(copy)
    with (
        pytest.raises(StateUnavailableError, match=r"not what its name says.*remove that folder"),
        state.hold(base, manifest_of(base)),
    ):
        pass


def test_a_full_disk_is_no_change_of_the_skill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = write(tmp_path / "skill", {"a": "1"})

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(snapshots, "copy_content", full)
    state = Snapshots(tmp_path / "state")
    with pytest.raises(OSError, match="No space left"), ExitStack() as held:
        held.enter_context(state.hold(base, manifest_of(base)))
    assert copies(state) == set()
