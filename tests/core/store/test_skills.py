"""Grants in the world's store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from skillkit import ConfigurationError
from skillkit.core.store import state
from skillkit.core.store.base import Store
from skillkit.core.store.opening import open_store
from skillkit.core.store.requests import Requests
from skillkit.core.store.skills import StandingGrants
from skillkit.core.store.trust import StandingApprovals
from skillkit.core.values.needs import Grant

KEY, HOST = Grant("secret", "API_KEY"), Grant("host", "api.example.com", is_private=True)

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = open_store(tmp_path / "state")
    yield made
    made.close()


def give(store: Store, *grants: Grant, digest: str = "d1", folder: str = "/skills/pdf") -> None:
    StandingGrants(store).give(grants, skill="pdf", folder=folder, digest=digest, channel="cli")


@pytest.mark.own_file
def test_looking_makes_no_file(store: Store) -> None:
    grants = StandingGrants(store)
    assert (grants.all(), grants.of("pdf", "/skills/pdf"), grants.remove("pdf")) == ([], [], [])
    assert not store.exists()


def test_what_was_given_is_kept_with_its_content_channel_and_time(store: Store) -> None:
    give(store, KEY, HOST)
    kept = StandingGrants(store).of("pdf", "/skills/pdf")
    assert [(each.grant, each.digest, each.channel) for each in kept] == [(KEY, "d1", "cli"), (HOST, "d1", "cli")]
    assert all(each.granted_at > 0 for each in kept)
    # Where there are many machines, a skill is known by its name and content, whatever its folder.
    assert StandingGrants(store).of("pdf", "/elsewhere/pdf") == (kept if store.is_shared else [])
    assert StandingGrants(store).of("csv", "/skills/pdf") == []


def test_given_again_it_is_there_once(store: Store) -> None:
    give(store, KEY)
    give(store, KEY, HOST)
    assert [each.grant for each in StandingGrants(store).all()] == [KEY, HOST]


def test_what_other_content_had_is_forgotten_when_something_is_given_to_the_new(store: Store) -> None:
    give(store, KEY, HOST)
    give(store, KEY, digest="d2")
    others = [(KEY, "d1"), (HOST, "d1")] if store.is_shared else []  # which another machine may still have
    assert [(each.grant, each.digest) for each in StandingGrants(store).all()] == [*others, (KEY, "d2")]


def test_a_skill_has_one_working_directory(store: Store) -> None:
    workspace, own = Grant("working_directory", "workspace"), Grant("working_directory", "skill")
    give(store, workspace)
    give(store, own, KEY)
    assert [each.grant for each in StandingGrants(store).all()] == [own, KEY]
    with pytest.raises(ConfigurationError, match="one working directory"):
        give(store, workspace, own)


def test_grants_are_taken_back_one_by_one_or_all(store: Store) -> None:
    grants = StandingGrants(store)
    give(store, KEY, HOST)
    assert [each.grant for each in grants.remove("pdf", [HOST])] == [HOST]
    assert [each.grant for each in grants.remove("pdf")] == [KEY]
    assert grants.remove("pdf") == []


def test_grants_are_taken_back_by_folder_where_folders_count(store: Store) -> None:
    grants = StandingGrants(store)
    give(store, KEY)
    give(store, KEY, folder="/other/pdf")
    if store.is_shared:
        with pytest.raises(ConfigurationError, match=r"by its name and content.*Leave the folder out"):
            grants.remove("pdf", folder="/other/pdf")
        return
    assert [each.folder for each in grants.remove("pdf", folder="/other/pdf")] == ["/other/pdf"]
    assert [each.folder for each in grants.all()] == ["/skills/pdf"]


def test_what_a_later_version_wrote_grants_nothing(store: Store) -> None:
    give(store, KEY)
    with store.transaction() as connection:
        connection.execute("update grants set name = 'flight:moon'")
    assert StandingGrants(store).all() == []


@pytest.mark.own_file
def test_a_file_of_the_version_before_grants_is_brought_up_to_date_and_keeps_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "state"
    with monkeypatch.context() as patch:
        patch.setattr(state, "MIGRATIONS", state.MIGRATIONS[:3])
        older = open_store(folder)
        with older.transaction() as connection:
            connection.execute(
                "insert into approvals (kind, session, skill, folder, digest, channel, approved_at, walls) "
                "values ('trust', '', 'pdf', '/skills/pdf', 'd1', 'cli', 1.0, '')"
            )
            content = (
                '{"id": "q", "title": "T", "message": "", "options": [{"id": "a", "label": "A"}], "session_id": null}'
            )
            connection.execute(
                "insert into requests (id, content, context, single_use, is_held, created_at, expires_at, boot, deadline, "
                "state, option_id, channel, answered_at) values ('q', ?, '{}', '[]', 0, 1.0, 2.0, '', 2.0, "
                "'answered', 'a', 'cli', 1.5)",
                (content,),
            )
        older.close()
    store = open_store(folder)
    (trusted,) = StandingApprovals(store).trusted()
    (past,) = Requests(store).past(5)
    give(store, KEY)
    assert (trusted.digest, trusted.ticks, trusted.left) == ("d1", (), ())
    assert past.answer is not None
    assert (past.answer.option_id, past.answer.grants, past.answer.reason, past.request.grants) == ("a", (), "", ())
    assert [each.grant for each in StandingGrants(store).all()] == [KEY]
    store.close()
    with closing(sqlite3.connect(folder / "state.sqlite3")) as connection:
        assert connection.execute("pragma user_version").fetchone() == (len(state.MIGRATIONS),)
