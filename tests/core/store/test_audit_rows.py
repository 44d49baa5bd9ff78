"""The audit's rows: each follows the last one, whoever wrote it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillkit.core.store.audit_rows import AuditRows
from skillkit.core.store.base import Head, Row, Store
from skillkit.core.store.opening import open_store
from skillkit.core.store.state import StateStore

pytestmark = pytest.mark.usefixtures("each_database")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = open_store(tmp_path / "state")
    yield store
    store.close()


def row_after(head: Head) -> Row:
    """A shared world makes number, time and hash itself, and wants to know whose record it is."""
    fields = json.dumps({"login": head.login, "world": head.world})
    return head.seq + 1, "now", "started", fields, head.hash or "", f"hash {head.seq + 1}"


def test_rows_of_several_writers_are_one_chain(store: Store, tmp_path: Path) -> None:
    other = open_store(tmp_path / "state")
    given = [each.append(row_after) for each in (store, other, store, store, other)]
    other.close()
    found = [*AuditRows(store).read(after=0)]
    assert found == given
    assert [row[0] for row in found] == [1, 2, 3, 4, 5]
    assert [row[4] for row in found[1:]] == [row[5] for row in found[:-1]], "each names the one before it"


@pytest.mark.own_file
def test_a_row_is_appended_behind_whatever_is_last(store: Store) -> None:
    rows = AuditRows(store)
    heads: list[Head] = []

    def noted(head: Head) -> Row:
        heads.append(head)
        return row_after(head)

    for _ in range(2):
        store.append(noted)
    assert heads == [Head(store.world(), 0, None), Head(store.world(), 1, "hash 1")]
    assert [row[0] for row in rows.read(after=0)] == [1, 2]


@pytest.mark.own_file
def test_a_row_follows_our_own_last_one_only_while_nobody_else_wrote(store: Store) -> None:
    others = StateStore(store.folder)
    rows = AuditRows(store)
    heads: list[int] = []

    def noted(head: Head) -> Row:
        heads.append(head.seq)
        return row_after(head)

    store.append(noted)
    store.append(noted)
    others.append(row_after)
    others.close()
    store.append(noted)
    assert heads == [0, 1, 2, 3], "after another's row it is tried behind our own, then behind the last"
    assert [row[0] for row in rows.read(after=0)] == [1, 2, 3, 4]


@pytest.mark.own_file
def test_a_row_does_not_follow_into_another_file(store: Store) -> None:
    store.append(row_after)
    first = store.world()
    for name in os.listdir(store.folder):
        os.unlink(store.folder / name)
    heads: list[Head] = []

    def noted(head: Head) -> Row:
        heads.append(head)
        return row_after(head)

    store.append(noted)
    assert heads == [Head(store.world(), 0, None)]
    assert store.world() != first


def test_rows_are_read_in_both_directions_across_pages(store: Store) -> None:
    rows = AuditRows(store)
    for _ in range(1_003):
        store.append(row_after)
    numbers = [row[0] for row in rows.read(after=0)]
    assert numbers == list(range(1, 1_004))
    assert [row[0] for row in rows.read(after=0, newest_first=True)] == numbers[::-1]
