"""Closed places are looked up again when something around them changed, and only then."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from skillkit.core.paths import forbidden
from skillkit.core.paths.forbidden import forbidden_paths

TICK_SECONDS = 0.05  # of the clock by which folders say when they changed


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if all of these folders had been as they are for long."""
    monkeypatch.setattr(forbidden, "SETTLED_NANOSECONDS", -(10**18))
    monkeypatch.setattr(forbidden, "_known_places", {})
    monkeypatch.setattr(forbidden, "HOMES", ())


def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One entry for each time that all places are looked up."""
    seen: list[object] = []
    usual = forbidden._looked_up

    def counted(*given: Any) -> Any:
        seen.append(given)
        return usual(*given)

    monkeypatch.setattr(forbidden, "_looked_up", counted)
    return seen


def test_nothing_is_looked_up_twice_while_nothing_changes(
    tmp_path: Path, private_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (private_home / ".ssh").mkdir()
    seen = looked_up(monkeypatch)
    first = forbidden_paths(tmp_path / "state")
    assert forbidden_paths(tmp_path / "state") == first
    assert len(seen) == 1
    assert first.covers(str(private_home / ".ssh" / "id"))


def test_a_closed_place_that_becomes_a_link_closes_what_it_leads_to(tmp_path: Path, private_home: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert not forbidden_paths(None).covers(str(elsewhere / "key"))
    time.sleep(TICK_SECONDS)
    (private_home / ".aws").symlink_to(elsewhere)
    assert forbidden_paths(None).covers(str(elsewhere / "key"))


def test_deeper_ones_too(tmp_path: Path, private_home: Path) -> None:
    """Their folder was not there before."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert not forbidden_paths(None).covers(str(elsewhere / "key"))
    time.sleep(TICK_SECONDS)
    (private_home / ".config").mkdir()
    assert not forbidden_paths(None).covers(str(elsewhere / "key"))
    time.sleep(TICK_SECONDS)
    (private_home / ".config" / "gcloud").symlink_to(elsewhere)
    assert forbidden_paths(None).covers(str(elsewhere / "key"))


def test_where_a_link_leads_is_asked_each_time(tmp_path: Path, private_home: Path) -> None:
    """Of what it leads to, and whom that leads to, nothing around here tells."""
    first, second, hop = (tmp_path / name for name in ("first", "second", "hop"))
    first.mkdir()
    second.mkdir()
    hop.symlink_to(first)
    (private_home / ".aws").symlink_to(hop)
    assert forbidden_paths(None).covers(str(first / "key"))
    hop.unlink()
    hop.symlink_to(second)
    assert forbidden_paths(None).covers(str(second / "key"))


def test_another_home_and_other_keys_are_other_questions(
    tmp_path: Path, private_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del private_home
    forbidden_paths(None)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert forbidden_paths(None).covers(str(tmp_path / ".netrc"))
    monkeypatch.setenv("SKILLKIT_SECRETS_DIR", str(tmp_path / "keys"))
    assert forbidden_paths(None).covers(str(tmp_path / "keys" / "skill" / "NAME"))
