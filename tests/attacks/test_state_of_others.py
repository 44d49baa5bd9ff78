"""A state that others can have written: forged trust, altered copies, notes that make skillkit move files."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.running import kinds
from support.skill_folders import skill_folder

from skillkit import GUARDED, AuditUnavailableError, SkillKitError, SkillManager, StateUnavailableError
from skillkit.cli.main import cli
from skillkit.core.models import digest
from skillkit.core.paths import judge
from skillkit.core.run.guard.restore import Before, Journal
from skillkit.web.presence import running_page

ANOTHER_USER = 65534
as_root = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
on_posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes say nothing here")
GUARDED_WALLS = replace(GUARDED, sandbox="preferred")
FILES = ["state.sqlite3", "state.sqlite3-wal", "state.sqlite3-shm"]
PARTS = ["", *FILES, "snapshots", "snapshots/.uses", "snapshots/package.json", "COPY"]


def trusted_world(folder: Path) -> Path:
    """A state in which a person trusts a skill, and has run it; whoever can write one can make one."""
    base = skill_folder(folder / "skills", "demo", files={"scripts/run.sh": "echo ran\n"})
    state = folder / "state"
    with SkillManager(folder / "skills", "", [], [], policy=GUARDED_WALLS, state_dir=state) as manager:
        walls, standing = manager.flow.bounds(None), manager.flow.approvals.standing
        content = digest.manifest_of(base).digest
        standing.trust(skill="demo", folder=base, digest=content, channel="terminal", walls=walls)
    assert run(folder) == "ran\n"
    return state


def run(folder: Path) -> str:
    """Asks nobody: without trust nothing runs."""
    with SkillManager(folder / "skills", "", [], [], policy=GUARDED_WALLS, state_dir=folder / "state") as manager:
        return manager.execute_skill_script("demo", "run").stdout


def part_of(state: Path, part: str) -> Path:
    if part == "COPY":
        return state / "snapshots" / digest.manifest_of(state.parent / "skills/demo").digest
    path = state / part
    if not path.exists():
        path.touch(mode=0o600)
    return path


def test_control_trust_that_stands_in_a_state_is_believed(tmp_path: Path) -> None:
    trusted_world(tmp_path)
    assert run(tmp_path) == "ran\n"


@as_root
@pytest.mark.parametrize("part", PARTS)
def test_what_belongs_to_another_user_is_not_believed(tmp_path: Path, part: str) -> None:
    state = trusted_world(tmp_path)
    os.chown(part_of(state, part), ANOTHER_USER, ANOTHER_USER)
    with pytest.raises((StateUnavailableError, AuditUnavailableError), match=r"another user.*SKILLKIT_STATE_DIR"):
        run(tmp_path)


@on_posix
@pytest.mark.parametrize("part", PARTS[1:])
def test_a_link_in_the_place_of_a_part_is_not_followed(tmp_path: Path, part: str) -> None:
    state = trusted_world(tmp_path)
    path = part_of(state, part)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises((StateUnavailableError, AuditUnavailableError), match=r"is a link.*SKILLKIT_STATE_DIR"):
        run(tmp_path)


@on_posix
def test_a_state_folder_that_this_user_linked_elsewhere_is_used(tmp_path: Path) -> None:
    state = trusted_world(tmp_path)
    state.rename(tmp_path / "elsewhere")
    state.symlink_to(tmp_path / "elsewhere")
    assert run(tmp_path) == "ran\n"


@as_root
def test_a_link_that_another_user_made_to_a_state_is_not_followed(tmp_path: Path) -> None:
    state = trusted_world(tmp_path)
    state.rename(tmp_path / "elsewhere")
    state.symlink_to(tmp_path / "elsewhere")
    os.chown(state, ANOTHER_USER, ANOTHER_USER, follow_symlinks=False)
    with pytest.raises((StateUnavailableError, AuditUnavailableError), match="another user"):
        run(tmp_path)


@on_posix
@pytest.mark.parametrize("part", ["state.sqlite3", "state.sqlite3-wal", "snapshots/package.json"])
@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_a_file_that_others_can_write_is_not_believed(tmp_path: Path, part: str, mode: int) -> None:
    part_of(trusted_world(tmp_path), part).chmod(mode)
    with pytest.raises((StateUnavailableError, AuditUnavailableError), match="can be written by other users"):
        run(tmp_path)


@on_posix
@pytest.mark.parametrize("part", ["", "snapshots", "snapshots/.uses", "COPY"])
def test_a_folder_of_ones_own_that_others_can_write_is_closed_to_them(tmp_path: Path, part: str) -> None:
    path = part_of(trusted_world(tmp_path), part)
    path.chmod(0o777)
    assert run(tmp_path) == "ran\n"
    assert path.stat().st_mode & 0o022 == 0


@on_posix
def test_a_folder_for_everybody_is_not_taken_over(tmp_path: Path) -> None:
    """A state in /tmp itself would stand among everybody's files."""
    state = trusted_world(tmp_path)
    state.chmod(0o1777)
    with pytest.raises((StateUnavailableError, AuditUnavailableError), match="can be written by other users"):
        run(tmp_path)
    assert state.stat().st_mode & 0o7777 == 0o1777


RUNS = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[2]]
import test_state_of_others
try:
    print(test_state_of_others.run(Path(sys.argv[1])))
except Exception as error:
    print(type(error).__name__, error)
"""


def said_anew(folder: Path) -> str:
    """A program that remembers nothing of earlier runs."""
    tests = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((os.environ.get("PYTHONPATH", ""), str(tests.parent)))}
    words = [sys.executable, "-c", RUNS, str(folder), str(tests)]
    return subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout


def alter(copy: Path) -> None:
    (copy / "scripts/run.sh").chmod(0o755)
    (copy / "scripts/run.sh").write_text("echo evil\n")


def exchange(copy: Path) -> None:
    """By name only: every file in it is as skillkit made it."""
    other = copy.with_name("0" * 64)
    shutil.copytree(copy, other)
    alter(other)
    copy.rename(copy.with_name("1" * 64))
    other.rename(copy)


@pytest.mark.slow
@on_posix
@pytest.mark.parametrize("change", [alter, exchange])
def test_altered_bytes_never_run_under_the_approved_digest(tmp_path: Path, change: object) -> None:
    copy = part_of(trusted_world(tmp_path), "COPY")
    assert said_anew(tmp_path) == "ran\n\n"
    assert callable(change)
    change(copy)
    control = subprocess.run(["bash", copy / "scripts/run.sh"], capture_output=True, text=True, check=True)
    assert control.stdout == "evil\n", "a copy that nobody looks at runs"
    said = said_anew(tmp_path)
    assert said.startswith("StateUnavailableError")
    assert "not what its name says" in said
    assert kinds(tmp_path)[-1] == "refused"


@on_posix
def test_altered_bytes_do_not_run_in_a_program_that_used_the_copy_before(tmp_path: Path, tier: str) -> None:
    trusted_world(tmp_path)
    with SkillManager(tmp_path / "skills", "", [], [], policy=GUARDED, state_dir=tmp_path / "state") as manager:
        result = manager.execute_skill_script("demo", "run")
        assert (result.stdout, result.isolation.tier) == ("ran\n", tier)
        alter(part_of(tmp_path / "state", "COPY"))
        with pytest.raises(StateUnavailableError, match="not what its name says"):
            manager.execute_skill_script("demo", "run")


@pytest.mark.slow
@as_root
@pytest.mark.parametrize("part", ["", "snapshots", "set-aside", "page.json", "COPY"])
def test_doctor_names_what_cannot_be_believed(tmp_path: Path, part: str) -> None:
    path = part_of(trusted_world(tmp_path), part)
    well = CliRunner().invoke(cli, ["doctor", "--state-dir", str(tmp_path / "state"), "--json"])
    assert json.loads(well.output)["state"]["problem"] == ""
    os.chown(path, ANOTHER_USER, ANOTHER_USER)
    ended = CliRunner().invoke(cli, ["doctor", "--state-dir", str(tmp_path / "state"), "--json"])
    problem = json.loads(ended.output)["state"]["problem"]
    assert ended.exit_code == 1
    assert str(path) in problem
    assert "another user" in problem


def journal_entry(state: Path, workspace: Path) -> Path:
    """As a run leaves it whose program was killed: everything guarded that it does not know is moved away."""
    root = judge(workspace)
    assert root is not None
    before = Before(root, frozenset(), frozenset(), began=0.0, until=9e9)
    path, descriptor = Journal(state).begin(before, timeout=9e9)
    os.close(descriptor)
    return Path(path)


@as_root
@pytest.mark.parametrize("owner", [0, ANOTHER_USER], ids=["control: own", "of another user"])
def test_a_note_of_another_user_moves_no_files(tmp_path: Path, owner: int) -> None:
    state = trusted_world(tmp_path)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "AGENTS.md").write_text("be good\n")
    os.chown(journal_entry(state, workspace), owner, owner)
    policy = replace(GUARDED, sandbox="required")
    with SkillManager(tmp_path / "skills", "", [], [], policy=policy, state_dir=state, workspace=workspace) as manager:
        assert manager.execute_skill_script("demo", "run").stdout == "ran\n"
    assert (workspace / "AGENTS.md").exists() == (owner != 0)


@as_root
@pytest.mark.parametrize("part", ["set-aside", "guarded-runs"])
def test_what_is_moved_away_does_not_go_to_another_user(tmp_path: Path, part: str) -> None:
    state = trusted_world(tmp_path)
    (state / part).mkdir(mode=0o700, exist_ok=True)
    os.chown(state / part, ANOTHER_USER, ANOTHER_USER)
    (tmp_path / "workspace").mkdir()
    policy = replace(GUARDED, sandbox="required")
    with (
        SkillManager(
            tmp_path / "skills", "", [], [], policy=policy, state_dir=state, workspace=tmp_path / "workspace"
        ) as manager,
        pytest.raises(SkillKitError, match="another user"),
    ):
        manager.execute_skill_script("demo", "run")


@as_root
@pytest.mark.parametrize("owner", [0, ANOTHER_USER], ids=["control: own", "of another user"])
def test_a_page_that_another_user_announced_is_none(tmp_path: Path, owner: int) -> None:
    from skillkit.core.run.process.kernel import started_at

    (tmp_path / "state").mkdir(mode=0o700)
    file = tmp_path / "state/page.json"
    page = {"address": "http://127.0.0.1:9", "pid": os.getpid(), "started": started_at(os.getpid()), "token": "x"}
    file.write_text(json.dumps(page))
    os.chown(file, owner, owner)
    assert (running_page(tmp_path / "state") is None) == (owner != 0)
