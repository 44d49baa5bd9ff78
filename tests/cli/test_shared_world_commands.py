"""Every command that a person uses, on a world in PostgreSQL: each with no more than the role that it needs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.asking import in_threads, only_pending, request_named
from support.databases import Database
from support.page_visits import answer_over_http
from support.skill_folders import skill_folder

from skillkit import ApprovalUnavailableError, StateUnavailableError, World
from skillkit.cli.main import cli

pytest.importorskip("psycopg")
pytestmark = pytest.mark.slow

As = Callable[..., Path]


def typed(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, [*map(str, words)])


def done(*words: str | Path) -> str:
    result = typed(*words)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def use(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[As]:
    """From now on as a login with these roles, on a machine of its own; gives its state folder."""
    world = database.new_world()

    def use(*roles: str) -> Path:
        login = database.new_login(world, *roles)
        monkeypatch.setenv("SKILLKIT_STATE", database.address(world, login=login))
        monkeypatch.setenv("SKILLKIT_STATE_DIR", str(tmp_path / login))
        return tmp_path / login

    yield use
    monkeypatch.delenv("SKILLKIT_STATE")
    database.drop_world(world)


@pytest.fixture
def places(tmp_path: Path) -> tuple[str | Path, ...]:
    skill_folder(tmp_path / "skills", "hello", files={"scripts/hello.sh": "echo hello there\n"})
    return "--skills", tmp_path / "skills"


def test_trust_is_given_on_one_machine_and_counts_on_another(use: As, places: tuple[str | Path, ...]) -> None:
    use("approver")
    assert "No skill is trusted in postgresql://" in done("trust", "list")
    done("trust", "add", "hello", "--yes", *places)
    assert "any folder" in done("trust", "list")
    folder = use("front", "worker")
    assert "hello there" in done("run", "hello", "hello.sh", *places)
    assert not (folder / "state.sqlite3").exists()
    with pytest.raises(StateUnavailableError, match="does not let this login do that"):
        raise typed("trust", "add", "hello", "--yes", *places).exception or AssertionError
    (Path(places[1]) / "hello/scripts/hello.sh").write_text("echo changed\n")
    assert isinstance(typed("run", "hello", "hello.sh", *places).exception, ApprovalUnavailableError)
    use("approver")
    assert "hello" in done("trust", "remove", "hello")
    assert "No skill is trusted" in done("trust", "list")


def test_a_grant_is_given_and_taken_back_for_all_machines(use: As, places: tuple[str | Path, ...]) -> None:
    use("approver")
    assert "Nothing is granted in postgresql://" in done("grant", "list")
    done("grant", "hello", "--variable", "PAPER_SIZE", "--yes", *places)
    use("front")
    listed = done("grant", "list")
    assert "variable:PAPER_SIZE" in listed
    assert isinstance(typed("grant", "remove", "hello").exception, StateUnavailableError)
    use("approver")
    assert "hello" in done("grant", "remove", "hello")
    assert "Nothing is granted" in done("grant", "list")


def test_audit_is_read_and_verified_by_anybody_with_a_role(
    use: As, places: tuple[str | Path, ...], tmp_path: Path
) -> None:
    use("approver", "front", "worker")
    done("trust", "add", "hello", "--yes", *places)
    done("run", "hello", "hello.sh", *places)
    for role in ("worker", "front", "approver"):
        use(role)
        assert "2 records" in done("audit", "verify")
        assert "hello" in done("audit", "tail")
        assert len(done("audit", "export").splitlines()) == 2
        assert "hello.sh" in done("audit", "show", "1")
    done("audit", "checkpoint", "-o", tmp_path / "kept")
    assert "2 records" in done("audit", "verify", "--checkpoint", tmp_path / "kept")


def test_approvals_of_one_machine_are_answered_on_another(use: As) -> None:
    use("front")
    with World() as asking, in_threads(1, lambda: asking.ask_request(request_named("abcdefabcdef"))) as (waiting,):
        only_pending(asking)
        assert isinstance(typed("approvals", "answer", "abcdefabcdef", "no").exception, StateUnavailableError)
        use("approver")
        assert "abcdefabcdef" in done("approvals", "list")
        assert "Run abcdefabcdef?" in done("approvals", "show", "abcdefabcdef")
        done("approvals", "answer", "abcdefabcdef", "no")
        got = waiting.result(30)
        assert (got.option_id, got.channel) == ("no", "cli")
    assert "abcdefabcdef" in done("approvals", "list", "--history")
    assert "session" in done("approvals", "sessions")


def test_doctor_says_where_the_world_is_and_whether_it_can_be_used(
    use: As, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = use("worker")
    told = typed("doctor").output
    assert f"+ {database.address().partition('@')[0].partition('owner')[0]}" in told
    assert str(folder) in "".join(told.split())
    monkeypatch.setenv("SKILLKIT_STATE", "postgresql:///db?host=/nonexistent&world=acme")
    told = " ".join(typed("doctor").output.split())
    assert "- postgresql:///db?world=acme" in told
    assert "Check that the database runs" in told


def test_the_page_answers_for_a_machine_that_waits(use: As) -> None:
    use("front")
    with World() as asking, in_threads(1, lambda: asking.ask_request(request_named("abcdefabcdef"))) as (waiting,):
        only_pending(asking)
        folder = use("approver")
        words = [sys.executable, "-c", "from skillkit.cli.main import main; main()", "web", "--json", "--no-open"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as page:
            try:
                assert page.stdout is not None
                told = json.loads(page.stdout.readline())
                assert "Run abcdefabcdef?" in answer_over_http(told["link"], "yes_once", request_id="abcdefabcdef")
                got = waiting.result(30)
                assert (got.option_id, got.channel) == ("yes_once", "web")
            finally:
                page.send_signal(signal.SIGTERM)
                page.wait(30)
        assert not (folder / "state.sqlite3").exists()
