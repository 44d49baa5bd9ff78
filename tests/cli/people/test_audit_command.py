"""`skillkit audit` as a person and as a program see it."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.screens import on_screen

from skillkit.cli.people.audit import audit
from skillkit.core.record import JSON, AuditLog
from skillkit.core.store.state import StateStore

RUN: dict[str, JSON] = {"skill": "pdf-tools", "script": "scripts/extract.py", "session": "one"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = StateStore(tmp_path / "state")
    log = AuditLog(store)
    log.append("started", {**RUN, "decision": "allow", "reasons": ["approved before"], "channel": "terminal"})
    log.append("finished", {**RUN, "exit_code": 0, "signal": None, "timed_out": False, "duration_us": 1_500_000})
    log.append(
        "refused", {"skill": "e\x1b[31mvil\u202e", "script": "a\nb", "decision": "deny", "reasons": ["no", "never"]}
    )
    log.append("finished", {**RUN, "exit_code": -11, "signal": "SIGSEGV"})
    log.append("finished", {**RUN, "session": "two", "exit_code": 124, "timed_out": True, "signal": "SIGKILL"})
    store.close()
    return store.folder


def run(*words: str | Path, folder: Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(audit, [*map(str, words), "--state-dir", str(folder)], input=stdin)


def tamper(folder: Path, *statements: str) -> None:
    connection = sqlite3.connect(folder / "state.sqlite3")
    for name in ("audit_is_never_changed", "audit_is_never_shortened", "audit_only_grows"):
        connection.execute(f"drop trigger {name}")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_tail_says_of_what_there_are_no_records(folder: Path) -> None:
    told = run("tail", "--skill", "nope", "--kind", "refused", folder=folder).stderr
    assert told.startswith("No records of skill nope, kind refused in /")


def test_tail_shows_an_aligned_table_without_live_control_characters(folder: Path) -> None:
    lines = run("tail", folder=folder).stdout.splitlines()
    assert [line[:3].strip() for line in lines] == ["SEQ", "1", "2", "3", "4", "5"]
    place = lines[0].index("WHAT HAPPENED")
    assert [line[place:] for line in lines[1:]] == [
        "allow by terminal: approved before",
        "exit 0 after 1.500 s",
        "deny: no; never",
        "SIGSEGV",
        "timed out",
    ]
    assert r"e\x1b[31mvil\u202e" in lines[3]


def test_tail_on_a_narrow_screen_tells_each_record_in_two_lines(folder: Path) -> None:
    assert on_screen("audit", "tail", "--state-dir", folder, width=40) == [
        "SEQ  KIND      SKILL",
        "     WHAT HAPPENED",
        "1    started   pdf-tools",
        "     allow by terminal: approved before",
        "2    finished  pdf-tools",
        "     exit 0 after 1.500 s",
        r"3    refused   e\x1b[31mvil\u202e",
        "     deny: no; never",
        "4    finished  pdf-tools",
        "     SIGSEGV",
        "5    finished  pdf-tools",
        "     timed out",
    ]


@pytest.mark.parametrize(
    ("width", "headings"),
    [
        (60, ["SEQ", "KIND", "SKILL", "WHAT HAPPENED"]),
        (70, ["SEQ", "KIND", "SKILL", "SCRIPT", "WHAT HAPPENED"]),
        (80, ["SEQ", "TIME (UTC)", "KIND", "SKILL", "SCRIPT", "WHAT HAPPENED"]),
    ],
)
def test_tail_leaves_out_the_columns_that_do_not_fit(folder: Path, width: int, headings: list[str]) -> None:
    heading, *lines = on_screen("audit", "tail", "--state-dir", folder, width=width)
    assert re.split(r"  +", heading) == headings
    assert max(map(len, lines)) <= width
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4", "5"]
    assert lines[1].endswith("exit 0 after 1.500 s")
    if "TIME (UTC)" in headings:
        assert all(re.match(r"\d +\d\d-\d\d \d\d:\d\d:\d\d  ", line) for line in lines)


def test_tail_says_of_a_run_without_an_exit_code_what_became_of_it(tmp_path: Path) -> None:
    store = StateStore(tmp_path / "state")
    AuditLog(store).append("finished", {**RUN, "error": "lost"})
    store.close()
    assert run("tail", folder=store.folder).stdout.splitlines()[1].endswith(" lost")


def test_tail_shows_the_newest_that_fit(folder: Path) -> None:
    def seqs(*words: str) -> list[int]:
        shown = json.loads(run("tail", "--json", *words, folder=folder).stdout)
        assert next(iter(shown)) == "schema_version"
        return [record["seq"] for record in shown["records"]]

    assert seqs("-n", "2") == [4, 5]
    assert seqs("-n", "0") == []
    assert seqs("--skill", "pdf-tools", "--session", "one") == [1, 2, 4]
    assert seqs("--kind", "refused") == [3]


def test_asking_a_world_that_is_not_there_does_not_make_it(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    tail = run("tail", folder=missing)
    assert (tail.exit_code, tail.stdout, tail.stderr) == (0, "", f"No records in {missing / 'state.sqlite3'}.\n")
    for words in (["show", "1"], ["verify"], ["export"], ["checkpoint"], ["tail", "--follow"]):
        result = run(*words, folder=missing)
        assert result.exit_code == 127
        assert f"There is no audit in {missing}. Name the folder with --state-dir." in result.stderr
    assert not missing.exists()


def test_show_prints_every_field_on_its_own_line(folder: Path) -> None:
    lines = run("show", "3", folder=folder).stdout.splitlines()
    shown = dict(line.split(maxsplit=1) for line in lines)
    assert list(shown) == [
        "seq",
        "timestamp",
        "kind",
        "decision",
        "reasons",
        "script",
        "skill",
        "world",
        "previous",
        "hash",
    ]
    assert (shown["reasons"], shown["script"], shown["skill"]) == ('["no", "never"]', r"a\nb", r"e\x1b[31mvil\u202e")


def test_show_as_json_is_one_object(folder: Path) -> None:
    shown = json.loads(run("show", "2", "--json", folder=folder).stdout)
    assert (shown["schema_version"], shown["record"]["seq"], shown["record"]["fields"]["exit_code"]) == (1, 2, 0)


def test_show_of_a_record_that_is_not_there_says_so(folder: Path) -> None:
    result = run("show", "99", folder=folder)
    assert (result.exit_code, result.stdout) == (127, "")
    assert "There is no record 99." in result.stderr


def test_verify_of_an_intact_log_exits_0(folder: Path) -> None:
    result = run("verify", folder=folder)
    assert result.exit_code == 0
    assert result.stdout.startswith("Intact: 5 records, the last with hash ")


def test_verify_of_a_broken_log_exits_1_and_names_the_record(folder: Path) -> None:
    tamper(folder, "update audit set kind = 'started' where seq = 3")
    result = run("verify", folder=folder)
    assert (result.exit_code, result.stdout) == (
        1,
        "Broken: Record 3 was altered: its content does not give its hash.\n",
    )
    as_json = run("verify", "--json", folder=folder)
    found = json.loads(as_json.stdout)
    assert as_json.exit_code == 1
    assert (found["schema_version"], found["ok"], found["broken_at"], found["count"]) == (1, False, 3, 2)


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        pytest.param(["delete from audit where seq = 2"], "Broken: Record 2 is missing", id="removed"),
        pytest.param(
            [f"update audit set seq = {new} where seq = {old}" for old, new in ((3, 99), (4, 3), (99, 4))],
            "Broken: Record 3 ",
            id="reordered",
        ),
    ],
)
def test_verify_names_a_removed_and_a_reordered_record(folder: Path, statements: list[str], said: str) -> None:
    tamper(folder, *statements)
    result = run("verify", folder=folder)
    assert result.exit_code == 1
    assert result.stdout.startswith(said)


def test_a_checkpoint_file_shows_a_removed_end(folder: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    made = run("checkpoint", "-o", kept, folder=folder)
    assert made.stdout == f"Wrote the checkpoint of record 5 to {kept}. Keep it on another machine.\n"
    assert run("verify", "--checkpoint", kept, folder=folder).exit_code == 0
    tamper(folder, "delete from audit where seq = 5")
    result = run("verify", "--checkpoint", "-", folder=folder, stdin=kept.read_text())
    assert result.exit_code == 1
    assert "Record 5 is missing: the log ended at record 5" in result.stdout


def test_a_checkpoint_is_printed_for_people_and_for_programs(folder: Path) -> None:
    shown = json.loads(run("checkpoint", "--json", folder=folder).stdout)
    assert list(shown) == ["schema_version", "world", "seq", "hash", "timestamp"]
    assert run("checkpoint", folder=folder).stdout == (f"Record 5, hash {shown['hash']}, world {shown['world']}.\n")


def test_a_file_that_is_no_checkpoint_is_a_usage_error(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("{}")
    result = run("verify", "--checkpoint", tmp_path / "x", folder=folder)
    assert result.exit_code == 2
    assert "This is no checkpoint" in result.stderr


def test_a_checkpoint_that_cannot_be_written_says_where(folder: Path, tmp_path: Path) -> None:
    result = run("checkpoint", "-o", tmp_path / "no" / "x", folder=folder)
    assert result.exit_code == 2
    assert "No such file or directory" in result.stderr


def test_an_older_checkpoint_is_not_overwritten(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("older")
    result = run("checkpoint", "-o", tmp_path / "x", folder=folder)
    assert (result.exit_code, (tmp_path / "x").read_text()) == (2, "older")
    assert "File exists. Name another file." in result.stderr


def test_export_is_one_line_of_json_for_each_record(folder: Path) -> None:
    lines = run("export", folder=folder).stdout.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3, 4, 5]
    assert run("export", "--since", "4", folder=folder).stdout.splitlines() == lines[3:]
    whole = json.loads(run("export", "--since", "4", "--json", folder=folder).stdout)
    assert whole == {"schema_version": 1, "records": [json.loads(line) for line in lines[3:]]}


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_follow_shows_records_as_they_come(folder: Path, form: list[str]) -> None:
    code = "from skillkit.cli.people.audit import audit; audit()"
    command = [sys.executable, "-u", "-c", code, "tail", "-n", "1", "-f", "--state-dir", str(folder), *form]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        first = [process.stdout.readline() for _ in range(1 if form else 2)][-1]
        store = StateStore(folder)
        AuditLog(store).append("finished", {**RUN, "exit_code": 7})
        store.close()
        second = process.stdout.readline()
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    if form:
        assert [json.loads(line)["seq"] for line in (first, second)] == [5, 6]
    else:
        assert (first.split()[0], second.split()[0], second.split()[-2:]) == ("5", "6", ["exit", "7"])


@pytest.mark.parametrize("words", [[], ["tail"], ["show"], ["verify"], ["export"], ["checkpoint"]])
def test_help_gives_examples(words: list[str]) -> None:
    result = CliRunner().invoke(audit, [*words, "--help"])
    assert result.exit_code == 0
    assert "Examples:\n" in result.stdout
