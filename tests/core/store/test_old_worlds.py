"""A world that skillkit 0.5.0 left, opened by this version: nothing of it is lost, and what a person said still counts.

`world-0.5.0.sql` was made by that version: five runs, a refusal, a yes for a session, trust, an answered question.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from skillkit import TRUSTED, ApprovalDeclinedError, SkillManager, World
from skillkit.core.record import AuditLog
from skillkit.core.store.schema import MIGRATIONS
from skillkit.core.store.state import FILE_NAME, StateStore
from skillkit.core.store.trust import StandingApprovals
from skillkit.core.values.questions import Prompt
from skillkit.testing import ScriptedApprover

WORLD = "97bd66d3ed69f0fca3b4f1dcd8c4cc9d"
DIGEST = "00c501ca9f6a2a6a731a8e11c688db8a460efd945315d8a09ed63b73b50b8797"
LAST_HASH = "1221fb9b2dc5c7896a830a60bfd93b4ff9624a8e13e5f8b66677b03e9bc9b887"
FILES = {
    "SKILL.md": "---\nname: demo\ndescription: Says what it is told.\n---\nRun `scripts/run.sh`.\n",
    "scripts/run.sh": 'echo "ran $1"\n',
    "scripts/fail.sh": "exit 3\n",
}
ASKING = replace(TRUSTED, approval="first_run", sandbox="off", grantable=())

pytestmark = pytest.mark.own_file


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """The folder around skills and state, as that version had made both."""
    for top in (tmp_path / "skills/demo", tmp_path / "state/snapshots" / DIGEST):
        for name, text in FILES.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(text)
    for folder in (tmp_path / "state", tmp_path / "state/snapshots"):
        folder.chmod(0o700)
    text = Path(__file__).with_name("world-0.5.0.sql").read_text()
    connection = sqlite3.connect(tmp_path / "state" / FILE_NAME)
    connection.executescript(text.replace("@SKILL@", str(tmp_path / "skills/demo")))
    connection.close()
    (tmp_path / "state" / FILE_NAME).chmod(0o600)
    return tmp_path


def manager_of(world: Path, *answers: str, session: str = "s-1") -> tuple[SkillManager, ScriptedApprover]:
    approver = ScriptedApprover(*answers)
    return SkillManager(
        world / "skills", "", [], [], policy=ASKING, state_dir=world / "state", session_id=session, approver=approver
    ), approver


def test_the_chain_of_its_audit_verifies_and_goes_on(world: Path) -> None:
    store = StateStore(world / "state")
    log = AuditLog(store)
    verified = log.verify()
    assert (verified.ok, verified.count) == (True, 9)
    records = list(log.records())
    assert records[-1].hash == LAST_HASH
    assert [record.kind for record in records] == ["started", "finished", "refused", *["started", "finished"] * 3]
    assert records[2].fields["arguments"] == 'argv ["two","--token","[masked]"]'
    assert log.append("started", {"skill": "demo"}).seq == 10
    assert log.verify().ok
    store.close()


def test_it_is_brought_up_to_date_once_by_whoever_comes_first(world: Path) -> None:
    code = (
        "import sys\nfrom skillkit.core.record import AuditLog\nfrom skillkit.core.store.state import StateStore\n"
        "AuditLog(StateStore(sys.argv[1])).append('started', {'skill': 'demo'})\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", code, str(world / "state")]
    started = [subprocess.Popen(words, env=environment) for _ in range(4)]
    assert [process.wait(60) for process in started] == [0, 0, 0, 0]
    store = StateStore(world / "state")
    verified = AuditLog(store).verify()
    assert (verified.ok, verified.count) == (True, 13)
    store.close()
    connection = sqlite3.connect(world / "state" / FILE_NAME)
    assert connection.execute("pragma user_version").fetchone() == (len(MIGRATIONS),)
    assert connection.execute("select value from meta where key = 'world'").fetchone() == (WORLD,), "it is the same one"
    connection.close()


def test_what_was_asked_and_answered_is_its_history(world: Path) -> None:
    with World(world / "state") as opened:
        (past,) = opened.history()
        assert past.request.title == "Which?"
        assert past.answer is not None
        assert (past.answer.option_id, past.answer.channel) == ("b", "cli")
        assert opened.pending() == []


def test_trust_is_kept_and_asked_about_once_more_for_its_walls_were_not(world: Path) -> None:
    store = StateStore(world / "state")
    (trusted,) = StandingApprovals(store).trusted()
    store.close()
    assert (trusted.skill, trusted.digest, trusted.channel) == ("demo", DIGEST, "cli")
    manager, approver = manager_of(world, "yes_in_session")
    with manager:
        assert manager.execute_skill_script("demo", "run", argv=["again"]).stdout == "ran again\n"
        (asked,) = approver.requests
        assert "an older skillkit did not keep within which walls" in asked.message
        assert manager.execute_skill_script("demo", "run", argv=["more"]).stdout == "ran more\n"
        assert len(approver.requests) == 1, "the new word covers the rest"


def test_nothing_runs_on_its_old_word_alone(world: Path) -> None:
    manager, _ = manager_of(world, "no")
    with manager, pytest.raises(ApprovalDeclinedError):
        manager.execute_skill_script("demo", "run")


def test_what_changed_since_it_was_approved_is_shown_from_its_own_copy(world: Path) -> None:
    (world / "skills/demo/scripts/run.sh").write_text('echo "ran $1 and more"\n')
    manager, approver = manager_of(world, "yes_once")
    with manager:
        assert manager.execute_skill_script("demo", "run", argv=["new"]).stdout == "ran new and more\n"
    prompt = Prompt.from_context(approver.requests[0].context)
    assert prompt is not None
    (change,) = prompt.changes or ()
    assert change.path == "scripts/run.sh"
    assert '-echo "ran $1"' in change.diff


@pytest.mark.slow
def test_its_commands_work_on_it_unchanged(world: Path) -> None:
    for words, expected in {
        ("audit", "verify"): "Intact: 9 records",
        ("trust", "list"): "walls unknown",
        ("audit", "tail"): "yes in session",
        ("approvals", "list"): "Nothing waits",
    }.items():
        said = subprocess.run(
            [sys.executable, "-m", "skillkit", *words, "--state-dir", str(world / "state")],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        assert expected in said.stdout + said.stderr
