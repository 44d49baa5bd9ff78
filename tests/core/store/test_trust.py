"""Approvals that last: for a session, or for good; each for one content only."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.commands import BOUNDS

from skillkit import ConfigurationError, StateUnavailableError
from skillkit.core.store.base import Moment, Store
from skillkit.core.store.opening import open_store
from skillkit.core.store.trust import SESSION_APPROVAL_SECONDS, StandingApprovals

PDF: dict[str, Any] = {"skill": "pdf", "folder": "/skills/pdf", "channel": "terminal", "walls": BOUNDS}

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path / "state")
    yield store
    store.close()


@pytest.fixture
def approvals(store: Store) -> StandingApprovals:
    return StandingApprovals(store)


def test_a_session_approval_covers_the_same_skill_in_the_same_session_with_the_same_content(
    approvals: StandingApprovals,
) -> None:
    given = approvals.approve_in_session("one", digest="d1", **PDF)
    assert approvals.covering("one", "pdf", "d1", BOUNDS) == given
    assert (given.kind, given.session_id, given.digest, given.channel) == ("session", "one", "d1", "terminal")
    assert given.approved_at == pytest.approx(time.time(), abs=60)
    for session, skill, digest in [
        ("two", "pdf", "d1"),
        (None, "pdf", "d1"),
        ("", "pdf", "d1"),
        ("one", "csv", "d1"),
        ("one", "pdf", "d2"),
    ]:
        assert approvals.covering(session, skill, digest, BOUNDS) is None


def test_a_new_content_takes_the_place_of_the_old_one(approvals: StandingApprovals, store: Store) -> None:
    approvals.approve_in_session("one", digest="d1", **PDF)
    approvals.approve_in_session("one", digest="d2", **PDF)
    # Of many machines one may still have the old content, which a person did approve.
    assert (approvals.covering("one", "pdf", "d1", BOUNDS) is not None) is store.is_shared
    assert approvals.covering("one", "pdf", "d3", BOUNDS) is None
    assert approvals.covering("one", "pdf", "d2", BOUNDS) is not None


def test_a_session_approval_needs_a_session(approvals: StandingApprovals) -> None:
    with pytest.raises(ConfigurationError, match="needs the session's id"):
        approvals.approve_in_session("", digest="d1", **PDF)
    assert approvals.trusted() == []


def test_another_process_of_the_same_session_is_covered(approvals: StandingApprovals, store: Store) -> None:
    approvals.approve_in_session("one", digest="d1", **PDF)
    code = (
        "import sys\nfrom skillkit.core.store.trust import StandingApprovals\nfrom skillkit.core.store.opening import open_store\n"
        "store = open_store(sys.argv[1])\n"
        "from skillkit.core.values.bounds import Bounds\nstanding, walls = StandingApprovals(store), Bounds.from_text(sys.argv[2])\n"
        "print([bool(standing.covering(each, 'pdf', 'd1', walls)) for each in ('one', 'two')])\nstore.close()"
    )
    words = [sys.executable, "-c", code, str(store.folder), BOUNDS.to_text()]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "[True, False]\n"


def test_an_old_session_approval_is_worth_nothing_and_is_cleared_away_while_trust_stays(
    approvals: StandingApprovals, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    approvals.approve_in_session("one", digest="d1", **PDF)
    approvals.trust(digest="t1", **PDF)
    later = time.time() + SESSION_APPROVAL_SECONDS + 1
    monkeypatch.setattr(store, "now", lambda: Moment("", 0.0, later))
    assert approvals.covering("one", "pdf", "d1", BOUNDS) is None
    assert approvals.covering("one", "pdf", "t1", BOUNDS) is not None
    approvals.approve_in_session("two", digest="d2", **PDF)
    with store.connection() as connection:
        kept = connection.execute("select kind, digest from approvals order by seq").fetchall()
    assert kept == [("trust", "t1"), ("session", "d2")]


def test_trust_covers_every_session_until_it_is_removed(approvals: StandingApprovals) -> None:
    given = approvals.trust(digest="d1", **PDF)
    assert (given.kind, given.session_id) == ("trust", None)
    assert approvals.covering(None, "pdf", "d1", BOUNDS) == given
    assert approvals.covering("any", "pdf", "d1", BOUNDS) == given
    assert approvals.covering("any", "pdf", "d2", BOUNDS) is None
    assert approvals.covering("any", "csv", "d1", BOUNDS) is None
    assert approvals.remove_trust("pdf") == [given]
    assert approvals.remove_trust("pdf") == []
    assert approvals.covering("any", "pdf", "d1", BOUNDS) is None


def test_trusting_a_new_content_ends_the_trust_in_the_old_one(approvals: StandingApprovals, store: Store) -> None:
    approvals.trust(digest="d1", **PDF)
    approvals.trust(digest="d2", **PDF)
    assert [each.digest for each in approvals.trusted()] == (["d1", "d2"] if store.is_shared else ["d2"])
    assert (approvals.covering("any", "pdf", "d1", BOUNDS) is not None) is store.is_shared
    approvals.remove_trust("pdf")
    assert approvals.trusted() == []


def test_two_copies_of_a_skill_are_trusted_one_by_one_where_folders_count(
    approvals: StandingApprovals, store: Store
) -> None:
    for folder in ("/b", "/a"):
        approvals.trust(skill="pdf", folder=Path(folder), digest=f"of{folder}", channel="cli", walls=BOUNDS)
    if store.is_shared:
        with pytest.raises(ConfigurationError, match=r"by its name and content.*Leave the folder out"):
            approvals.remove_trust("pdf", folder=Path("/a"))
        return
    assert [each.folder for each in approvals.trusted()] == ["/a", "/b"]
    assert [each.folder for each in approvals.remove_trust("pdf", folder=Path("/a"))] == ["/a"]
    assert [each.folder for each in approvals.trusted()] == ["/b"]


def test_removing_trust_leaves_session_approvals_alone(approvals: StandingApprovals) -> None:
    approvals.approve_in_session("one", digest="d1", **PDF)
    approvals.trust(digest="d1", **PDF)
    approvals.remove_trust("pdf")
    cover = approvals.covering("one", "pdf", "d1", BOUNDS)
    assert cover is not None
    assert cover.kind == "session"


def test_the_last_approved_content_is_known_whatever_kind_of_approval_it_was(
    approvals: StandingApprovals, store: Store
) -> None:
    assert approvals.last_approved_digest("pdf", "/skills/pdf") is None
    approvals.approve_in_session("one", digest="d1", **PDF)
    assert approvals.last_approved_digest("pdf", Path("/skills/pdf")) == "d1"
    approvals.trust(digest="d2", **PDF)
    assert approvals.last_approved_digest("pdf", "/skills/pdf") == "d2"
    approvals.approve_in_session("two", digest="d3", **PDF)
    assert approvals.last_approved_digest("pdf", "/skills/pdf") == "d3"
    assert approvals.last_approved_digest("pdf", "/elsewhere") == ("d3" if store.is_shared else None)
    assert approvals.last_approved_digest("csv", "/skills/pdf") is None
    assert approvals.digests() == {"d1", "d2", "d3"}


@pytest.mark.own_file
def test_a_folder_is_the_same_by_whatever_link_it_is_reached(approvals: StandingApprovals, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    approvals.trust(skill="pdf", folder=tmp_path / "link", digest="d1", channel="cli", walls=BOUNDS)
    assert approvals.last_approved_digest("pdf", tmp_path / "real") == "d1"
    assert [each.folder for each in approvals.remove_trust("pdf", folder=tmp_path / "link")] == [
        str((tmp_path / "real").resolve())
    ]


@pytest.mark.own_file
def test_looking_makes_no_file(approvals: StandingApprovals, store: Store) -> None:
    assert approvals.covering("one", "pdf", "d1", BOUNDS) is None
    assert (approvals.trusted(), approvals.digests()) == ([], frozenset())
    assert approvals.last_approved_digest("pdf", "/x") is None
    assert not store.folder.exists()


def test_a_folder_that_is_no_utf8_can_be_trusted(approvals: StandingApprovals, store: Store) -> None:
    approvals.trust(skill="p\udcff", folder="/skills/\udcff", digest="d1", channel="cli", walls=BOUNDS)
    assert approvals.covering(None, "p\udcff", "d1", BOUNDS) is not None
    assert approvals.last_approved_digest("p\udcff", "/skills/\udcff") == "d1"
    folder = None if store.is_shared else "/skills/\udcff"
    assert len(approvals.remove_trust("p\udcff", folder=folder)) == 1


@pytest.mark.parametrize(("kind", "session"), [("trust", "one"), ("session", ""), ("other", "one")])
def test_the_database_itself_keeps_the_two_kinds_apart(store: Store, kind: str, session: str) -> None:
    values = (kind, session, "pdf", "/x", "d", "cli", 0.0)
    statement = """insert into approvals (kind, session, skill, folder, digest, channel, approved_at)
        values (?, ?, ?, ?, ?, ?, ?)"""
    broken = (sqlite3.IntegrityError, StateUnavailableError)
    with pytest.raises(broken, match=r"CHECK|check constraint"), store.connection() as connection:
        connection.execute(statement, values)


def test_to_trust_one_skill_no_more_says_nothing_about_another(approvals: StandingApprovals) -> None:
    approvals.trust(digest="d1", **PDF)
    other = approvals.trust(skill="csv", folder="/skills/csv", digest="d2", channel="terminal", walls=BOUNDS)
    assert [gone.skill for gone in approvals.remove_trust("pdf")] == ["pdf"]
    assert approvals.trusted() == [other]


@pytest.mark.parametrize(
    ("chosen", "left"),
    [
        ({}, []),
        ({"skill": "pdf"}, [("one", "csv")]),
        ({"session_id": "one"}, [("two", "pdf")]),
        ({"skill": "pdf", "session_id": "one"}, [("one", "csv"), ("two", "pdf")]),
        ({"skill": "PDF"}, [("one", "csv"), ("one", "pdf"), ("two", "pdf")]),
        ({"session_id": ""}, [("one", "csv"), ("one", "pdf"), ("two", "pdf")]),
    ],
)
def test_session_approvals_are_ended_by_skill_and_by_session_and_trust_stays(
    approvals: StandingApprovals, chosen: dict[str, str], left: list[tuple[str, str]]
) -> None:
    for session, skill in (("two", "pdf"), ("one", "pdf"), ("one", "csv")):
        approvals.approve_in_session(session, digest="d1", **{**PDF, "skill": skill})
    approvals.trust(digest="d1", **PDF)
    before = approvals.in_sessions()
    assert [(each.session_id, each.skill) for each in before] == [("one", "csv"), ("one", "pdf"), ("two", "pdf")]
    gone = approvals.end_in_sessions(**chosen)
    remaining = approvals.in_sessions()
    assert [(each.session_id, each.skill) for each in remaining] == left
    assert sorted(map(str, [*gone, *remaining])) == sorted(map(str, before))
    assert len(approvals.trusted()) == 1


def test_a_session_whose_name_is_no_unicode_can_be_ended(approvals: StandingApprovals) -> None:
    approvals.approve_in_session("s\udcff", digest="d1", **{**PDF, "skill": "p\udcff"})
    assert len(approvals.end_in_sessions(skill="p\udcff", session_id="s\udcff")) == 1
    assert approvals.in_sessions() == []


@pytest.mark.own_file
def test_looking_for_session_approvals_makes_no_world(approvals: StandingApprovals, store: Store) -> None:
    assert (approvals.in_sessions(), approvals.end_in_sessions()) == ([], [])
    assert not store.folder.exists()


def test_an_approval_for_a_session_holds_thirty_days_and_not_a_moment_longer(
    approvals: StandingApprovals, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = approvals.approve_in_session("one", digest="d1", **PDF)
    for age, holds in ((30 * 86_400 - 1, True), (30 * 86_400, False)):
        monkeypatch.setattr(store, "now", lambda age=age: Moment("", 0.0, given.approved_at + age))
        assert (approvals.covering("one", "pdf", "d1", BOUNDS) is not None) is holds
        assert bool(approvals.in_sessions()) is holds
