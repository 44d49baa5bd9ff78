"""Files that change through a program's memory: on some file systems such a change leaves no sign on the file."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.running import made_manager, only_record, records_of

from skillkit import STANDARD, TRUSTED, ContentChangedError, ScriptPolicy, SkillManager
from skillkit.core.models import digest
from skillkit.core.resolve import locate

GOOD, EVIL = "echo good\n", "echo evil\n"


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on a file system that keeps the times of mapped files; files there count as settled at once."""
    monkeypatch.setattr(digest, "SETTLED_NANOSECONDS", -1)
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("there is no file system in memory")
    with tempfile.TemporaryDirectory(prefix="skillkit-proof-", dir="/dev/shm") as folder:
        yield Path(folder)


class Mapped:
    """A file that a program has mapped and written before; what it writes now leaves no sign."""

    def __init__(self, file: Path) -> None:
        with open(file, "r+b") as opened:
            self._map = mmap.mmap(opened.fileno(), 0)
        self._map[:] = self._map[:]

    def write(self, text: str) -> None:
        self._map[:] = text.encode()

    def close(self) -> None:
        self._map.close()


def script(folder: Path) -> Path:
    return folder / "skills/demo/scripts/run.sh"


def test_control_such_a_change_leaves_no_sign(in_memory: Path) -> None:
    (in_memory / "file").write_text(GOOD)
    mapped = Mapped(in_memory / "file")
    before = digest.key_of(os.stat(in_memory / "file"))
    mapped.write(EVIL)
    assert digest.key_of(os.stat(in_memory / "file")) == before
    assert (in_memory / "file").read_text() == EVIL


def test_control_a_hash_that_is_kept_by_signs_does_not_see_it(in_memory: Path) -> None:
    (in_memory / "file").write_text(GOOD)
    mapped = Mapped(in_memory / "file")
    before = digest.manifest_of(in_memory)
    mapped.write(EVIL)
    assert digest.manifest_of(in_memory) == before
    assert digest.manifest_of(in_memory, by_content=True) != before


def require_true_record(manager: SkillManager, folder: Path) -> None:
    """After a change the folder is not run as what it was; when it runs, the record says what ran."""
    mapped = Mapped(script(folder))
    assert manager.execute_skill_script("demo", "run").stdout == "good\n"
    mapped.write(EVIL)
    with pytest.raises(ContentChangedError, match="Run it again"):
        manager.execute_skill_script("demo", "run")
    assert manager.execute_skill_script("demo", "run").stdout == "evil\n"
    digest._readings.clear()
    digest._hashes.clear()
    true = digest.manifest_of(folder / "skills/demo").digest
    assert [record.fields["digest"] == true for record in records_of(folder) if record.kind == "started"] == [
        False,
        True,
    ]


def test_a_folder_that_runs_itself_is_read_again_before_each_run(in_memory: Path) -> None:
    with made_manager(in_memory, {"scripts/run.sh": GOOD}, policy=TRUSTED) as manager:
        require_true_record(manager, in_memory)


def test_a_folder_that_runs_inside_walls_without_mounts_is_read_again(in_memory: Path, tier: str) -> None:
    if tier == "bubblewrap":
        pytest.skip("there a copy runs")
    with made_manager(in_memory, {"scripts/run.sh": GOOD}, policy=STANDARD) as manager:
        require_true_record(manager, in_memory)


@pytest.mark.parametrize("policy", [STANDARD, replace(STANDARD, approval="first_run")], ids=["unasked", "trusted"])
def test_where_a_copy_runs_the_approved_bytes_run(in_memory: Path, tier: str, policy: ScriptPolicy) -> None:
    if tier == "landlock" and policy is STANDARD:
        pytest.skip("there the folder runs")
    with made_manager(in_memory, {"scripts/run.sh": GOOD}, policy=policy) as manager:
        mapped = Mapped(script(in_memory))
        standing = manager.flow.approvals.standing
        skill = manager.load_skill("demo")
        walls = manager.flow.bounds(None)
        standing.trust(skill="demo", folder=skill.base_directory, digest=skill.digest, channel="terminal", walls=walls)
        assert manager.execute_skill_script("demo", "run").stdout == "good\n"
        mapped.write(EVIL)
        assert manager.execute_skill_script("demo", "run").stdout == "good\n"
    assert len({record.fields["digest"] for record in records_of(in_memory)}) == 1


@pytest.mark.parametrize("is_known", [True, False], ids=["known", "new"])
def test_a_copy_is_not_made_of_other_bytes_and_the_next_run_sees_them(
    in_memory: Path, tier: str, is_known: bool
) -> None:
    if tier == "landlock":
        pytest.skip("there the folder runs")
    locate._known.clear()
    if is_known:  # the same bytes ran before, elsewhere: their text is not read again
        with made_manager(in_memory / "before", {"scripts/run.sh": GOOD}, policy=STANDARD) as manager:
            assert manager.execute_skill_script("demo", "run").stdout == "good\n"
    with made_manager(in_memory, {"scripts/run.sh": GOOD}, policy=STANDARD) as manager:
        mapped = Mapped(script(in_memory))
        assert len(manager.load_skill("demo").digest) == 64
        mapped.write(EVIL)
        seen_by = "being copied" if is_known else "looked at"
        with pytest.raises(ContentChangedError, match=f"changed while it was {seen_by}"):
            manager.execute_skill_script("demo", "run")
        assert manager.execute_skill_script("demo", "run").stdout == "evil\n"
    assert only_record(in_memory, "refused")["error"] == "ContentChangedError"


def test_a_program_that_its_user_can_write_is_read_again(in_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from skillkit.core.resolve import CallArguments
    from skillkit.core.run import source

    program = in_memory / "bin/tool"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{GOOD}")
    program.chmod(0o755)
    mapped = Mapped(program)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    # To root all of its files are the system's; another user's would not be.
    monkeypatch.setattr(source, "is_roots", lambda path: not path.startswith(str(in_memory)))
    policy = replace(TRUSTED, allowed_commands=("tool",))
    with made_manager(in_memory, policy=policy) as manager:
        prepared = manager.flow.prepare(None, CallArguments("tool"))
        mapped.write(f"#!/bin/sh\n{EVIL}")
        mapped.close()  # what is mapped to be written cannot be started
        with pytest.raises(ContentChangedError, match="program 'tool' changed"):
            manager.flow.complete(prepared)
        assert manager.flow.execute(None, CallArguments("tool")).stdout == "evil\n"
