"""The audit's rows: each follows the last one, whoever wrote it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from skillkit.core.store.audit_rows import AuditRows
from skillkit.core.store.base import Head, Row
from skillkit.core.store.state import StateStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StateStore]:
    store = StateStore(tmp_path / "state")
    yield store
    store.close()


def row_after(head: Head) -> Row:
    return head.seq + 1, "now", "started", "{}", head.hash or "", f"hash {head.seq + 1}"


def test_a_row_is_appended_behind_whatever_is_last(store: StateStore) -> None:
    rows = AuditRows(store)
    heads: list[Head] = []

    def noted(head: Head) -> Row:
        heads.append(head)
        return row_after(head)

    for _ in range(2):
        store.append(noted)
    assert heads == [Head(store.world(), 0, None), Head(store.world(), 1, "hash 1")]
    assert [row[0] for row in rows.read(after=0)] == [1, 2]


def test_a_row_follows_our_own_last_one_only_while_nobody_else_wrote(store: StateStore) -> None:
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


def test_a_row_does_not_follow_into_another_file(store: StateStore) -> None:
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


def test_rows_are_read_in_both_directions_across_pages(store: StateStore) -> None:
    rows = AuditRows(store)
    for _ in range(1_003):
        store.append(row_after)
    numbers = [row[0] for row in rows.read(after=0)]
    assert numbers == list(range(1, 1_004))
    assert [row[0] for row in rows.read(after=0, newest_first=True)] == numbers[::-1]
