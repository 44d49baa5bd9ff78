"""`skillkit fleet init` and `world copy`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.commands import BOUNDS
from support.databases import Database

from skillkit.cli.main import cli
from skillkit.core.record import AuditLog
from skillkit.core.store.shared.postgres import WorldAddress
from skillkit.core.store.state import StateStore
from skillkit.core.store.trust import StandingApprovals

pytest.importorskip("psycopg")
pytestmark = pytest.mark.slow


def typed(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, [*map(str, words)])


def done(*words: str | Path) -> str:
    result = typed(*words)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def world(database: Database) -> Iterator[str]:
    name = database.new_world()
    yield name
    database.drop_world(name)


def test_a_world_is_made_once_and_says_what_to_grant(database: Database) -> None:
    address = database.address("acme_shop")
    made = done("fleet", "init", "--state", address)
    assert made.startswith(f"The world acme_shop is made: {WorldAddress.from_text(address).shown}\n")
    assert "  grant acme_shop_worker to LOGIN;  -- runs scripts" in made
    assert done("fleet", "init", "--state", address).startswith("The world acme_shop is up to date")
    assert json.loads(done("fleet", "init", "--state", address, "--json"))["was_new"] is False
    database.drop_world("acme_shop")


def test_without_an_address_nothing_is_made() -> None:
    result = typed("fleet", "init")
    assert (result.exit_code != 0, "No shared world is named" in str(result.exception or result.output)) == (True, True)


def test_a_password_on_the_command_line_is_refused_without_repeating_it() -> None:
    result = typed("audit", "tail", "--state", "postgresql://me:hunter2hunter2@host/db?world=acme")
    assert result.exit_code == 2
    assert "holds a password" in " ".join(result.output.replace("│", " ").split())
    assert "hunter2" not in result.output


def test_a_folders_world_is_copied_with_its_chain(database: Database, world: str, tmp_path: Path) -> None:
    source = StateStore(tmp_path / "state")
    for number in range(3):
        AuditLog(source).append("finished", {"skill": "pdf", "exit_code": number})
    StandingApprovals(source).trust(skill="pdf", folder="/a/pdf", digest="d1", channel="terminal", walls=BOUNDS)
    source.close()
    address = ("--state", database.address(world))
    done("audit", "checkpoint", "-o", tmp_path / "kept", "--state-dir", tmp_path / "state")
    told = done("world", "copy", "--state-dir", tmp_path / "state", *address)
    assert "3 audit, 1 approvals" in told
    assert "The chain of records holds." in told
    assert "3" in done("audit", "verify", "--checkpoint", tmp_path / "kept", *address)
    assert "has records of its own" in str(
        typed("world", "copy", "--state-dir", tmp_path / "state", *address).exception
    )
    assert "There is no world" in typed("world", "copy", "--state-dir", tmp_path / "none", *address).output
