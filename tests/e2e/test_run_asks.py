"""`skillkit run` on a real terminal: when it asks, what each key does, and what is remembered where."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from support.running import kinds, only_record, records_of, wait_for
from support.skill_folders import skill_folder
from support.terminals import READY, Asking, Terminal, without_controls

from skillkit import World

FILES = {"scripts/run.sh": 'echo ran "$@"\n', "scripts/read.sh": "cat\n"}

# Leads a session on the terminal as a shell does, and runs one command after the other with pipes for its streams.
SHELL = """
import json, os, subprocess, sys
if sys.argv[1]:
    os.open(sys.argv[1], os.O_RDWR)
for line in sys.stdin:
    words, text = json.loads(line)
    ended = subprocess.run([sys.executable, "-m", "skillkit", *words], input=text, capture_output=True, text=True)
    print(json.dumps({"code": ended.returncode, "stdout": ended.stdout, "stderr": ended.stderr}), flush=True)
"""


class Ended(NamedTuple):
    """How one command ended."""

    code: int
    stdout: str
    stderr: str


class Shell:
    """One session, on a terminal or without one."""

    def __init__(self, folder: Path, terminal: Terminal, *, with_terminal: bool = True) -> None:
        self.options = ["--skills", str(folder / "skills"), "--state-dir", str(folder / "state")]
        self.terminal = terminal
        self.asking = Asking(terminal.start(SHELL, with_terminal=with_terminal))

    def begin(self, *words: str, text: str = "") -> None:
        split = words.index("--") if "--" in words else len(words)
        given = [*words[:split], *self.options, *words[split:]]
        self.asking.tell(json.dumps([given, text]))

    def end(self) -> Ended:
        return Ended(**self.asking.outcome(60))

    def unasked(self, *words: str, text: str = "") -> Ended:
        """Of a command that puts no question: one that did would never end."""
        before = self.questions()
        self.begin(*words, text=text)
        ended = self.end()
        self.terminal.read(0.05)
        assert self.questions() == before
        return ended

    def asked(self, key: str, *words: str, text: str = "") -> Ended:
        before = self.questions()
        self.begin(*words, text=text)
        self.terminal.wait_for(READY, times=before + 1, seconds=60)
        for _ in range(10):
            self.terminal.send(key)
            if self.asking.has_answer(3):
                break
        return self.end()

    def questions(self) -> int:
        return without_controls(self.terminal.text).count(READY)


@contextmanager
def shell(folder: Path, *, with_terminal: bool = True) -> Iterator[Shell]:
    with Terminal(columns=100) as terminal:
        yield Shell(folder, terminal, with_terminal=with_terminal)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SKILLKIT_SESSION", raising=False)
    skill_folder(tmp_path / "skills", "demo", files=FILES)
    return tmp_path


RUN = ("run", "demo", "run")


@pytest.mark.parametrize(
    ("key", "code", "stdout"),
    [
        pytest.param("1", 0, "ran\n", id="1"),
        pytest.param("2", 0, "ran\n", id="2"),
        pytest.param("3", 126, "", id="3"),
        pytest.param("\x1b", 126, "", id="Esc"),
        pytest.param("\x03", 126, "", id="Ctrl-C"),
    ],
)
def test_the_first_run_asks_and_a_key_decides(folder: Path, key: str, code: int, stdout: str) -> None:
    with shell(folder) as here:
        ended = here.asked(key, *RUN)
        assert (ended.code, ended.stdout) == (code, stdout)
        assert ("Declined by a person (terminal)" in ended.stderr) == (code != 0)
        seen = without_controls(here.terminal.text)
    assert "May this script run?" in seen
    assert "echo ran" in seen
    assert kinds(folder) == (["refused"] if code else ["started", "finished"])


def test_once_is_asked_about_again_and_the_session_is_remembered_in_this_terminal_alone(folder: Path) -> None:
    with shell(folder) as here:
        assert here.asked("1", *RUN).code == 0
        assert here.asked("2", *RUN).code == 0
        assert here.unasked(*RUN, "--", "again").stdout == "ran again\n"
        with shell(folder) as elsewhere:
            assert elsewhere.asked("3", *RUN).code == 126
        assert here.unasked(*RUN).code == 0
    answers = [record.fields["answer"] for record in records_of(folder) if record.kind != "finished"]
    assert answers == ["yes_once", "yes_in_session", None, "no", None]


def test_a_session_that_has_a_name_is_the_same_in_every_terminal(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLKIT_SESSION", "mine")
    with shell(folder) as here:
        assert here.asked("2", *RUN).code == 0
    with shell(folder) as elsewhere:
        assert elsewhere.unasked(*RUN).code == 0


def test_a_changed_file_asks_again_and_shows_the_change(folder: Path) -> None:
    with shell(folder) as here:
        here.asked("2", *RUN)
        (folder / "skills/demo/scripts/run.sh").write_text("echo changed\n")
        assert here.asked("2", *RUN).stdout == "changed\n"
        seen = without_controls(here.terminal.text)
        assert "1 added line in 1 file (1 changed)" in seen
        assert "-echo ran" in seen
        assert "+echo changed" in seen
        assert here.unasked(*RUN).stdout == "changed\n"


def test_yes_on_the_command_line_is_for_this_run_and_another_profile_may_not_ask(folder: Path) -> None:
    with shell(folder) as here:
        assert here.unasked(*RUN, "--yes").stdout == "ran\n"
        assert only_record(folder, "started")["channel"] == "flag"
        assert here.unasked(*RUN, "--policy", "standard").code == 0
        assert here.unasked(*RUN, "--policy", "locked", "--yes").code == 126
        assert here.asked("3", *RUN).code == 126


def test_trust_ends_the_questions_until_it_is_removed_or_the_skill_changes(folder: Path) -> None:
    with shell(folder) as here:
        assert here.unasked("trust", "add", "demo", "--yes").code == 0
        assert here.unasked(*RUN).stdout == "ran\n"
        assert json.loads(here.unasked("check", "demo", "run", "--json").stdout)["reasons"] == ["Trusted."]
        (folder / "skills/demo/new.txt").write_text("new\n")
        assert here.asked("3", *RUN).code == 126
        (folder / "skills/demo/new.txt").unlink()
        assert here.unasked(*RUN).code == 0
        here.options = here.options[2:]
        assert here.unasked("trust", "remove", "demo").code == 0
        here.options = ["--skills", str(folder / "skills"), *here.options]
        assert here.asked("3", *RUN).code == 126


def test_streams_that_are_pipes_stay_the_scripts_own_while_a_person_is_asked(folder: Path) -> None:
    with shell(folder) as here:
        ended = here.asked("1", "run", "demo", "read", "--input", "-", text='{"a": 1}')
        assert (ended.code, ended.stdout, ended.stderr) == (0, '{"a": 1}', "")


def test_without_a_terminal_nothing_runs_and_the_remedy_is_said(folder: Path) -> None:
    with shell(folder, with_terminal=False) as here:
        ended = here.unasked(*RUN)
    assert (ended.code, ended.stdout) == (126, "")
    assert "needs a person's approval" in ended.stderr
    assert "--yes" in ended.stderr
    assert kinds(folder) == ["refused"]


def said(folder: Path, *words: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "skillkit", "approvals", *words, "--state-dir", str(folder / "state")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, "COLUMNS": "100"},
    ).stdout


@pytest.mark.parametrize(("option", "code"), [("yes_once", 0), ("no", 126)])
def test_where_no_terminal_can_be_asked_it_waits_for_an_answer_from_elsewhere(
    folder: Path, option: str, code: int
) -> None:
    with shell(folder, with_terminal=False) as here, World(folder / "state") as world:
        here.begin(*RUN, "--wait", "--", "--all")
        assert wait_for(world.pending, 60)
        (request,) = world.pending()
        shown = said(folder, "show", request.id[:12])
        for words in ("May this script run?", "echo ran", "--all", "Walls", "yes_in_session"):
            assert words in shown
        assert "v shows all" not in shown
        said(folder, "answer", request.id, option)
        ended = here.end()
    assert (ended.code, ended.stdout) == (code, "" if code else "ran --all\n")
    assert f"skillkit approvals show {request.id[:12]}" in ended.stderr
    (record,) = [each for each in records_of(folder) if each.kind != "finished"]
    assert (record.fields["answer"], record.fields["channel"]) == (option, "cli")
