"""The chain: what is hashed, and what each kind of tampering looks like."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillkit.core.store.base import Row
from skillkit.core.values.records import (
    JSON,
    Checkpoint,
    Record,
    Verification,
    canonical_json,
    chained_row,
    checkpoint_from,
    exact_fields,
    export_line,
    first_link,
    record_from,
    verification_of,
)

WORLD = "0123456789abcdef0123456789abcdef"
MOMENT = "2026-01-02T03:04:05.000006Z"

exact_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def row_after(rows: list[Row], **fields: Any) -> Row:
    previous = rows[-1][5] if rows else first_link(WORLD)
    text = canonical_json(exact_fields(fields))
    return chained_row(seq=len(rows) + 1, timestamp=MOMENT, kind="finished", fields=text, previous=previous)


def log_of(count: int) -> list[Row]:
    rows: list[Row] = []
    for number in range(count):
        rows.append(row_after(rows, skill="s", exit_code=number))
    return rows


def renumbered(rows: list[Row]) -> list[Row]:
    return [(number, *row[1:]) for number, row in enumerate(rows, 1)]


def test_the_hash_is_the_sha256_of_the_exported_line_without_it() -> None:
    record = record_from(log_of(3)[2])
    content = json.loads(export_line(record))
    digest = content.pop("hash")
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    assert digest == hashlib.sha256(text.encode()).hexdigest()


def test_the_first_record_follows_a_link_that_is_the_worlds_own() -> None:
    assert log_of(1)[0][4] == hashlib.sha256(b"skillkit audit " + WORLD.encode()).hexdigest()
    assert first_link(WORLD) != first_link("another")


def test_a_row_becomes_the_record_that_made_it() -> None:
    row = log_of(1)[0]
    assert record_from(row) == Record(1, MOMENT, "finished", {"skill": "s", "exit_code": 0}, row[4], row[5])


@given(st.dictionaries(st.text(), exact_values, max_size=4))
def test_any_exact_fields_come_back_unchanged_and_verify(fields: dict[str, Any]) -> None:
    text = canonical_json(exact_fields(fields))
    row = chained_row(seq=1, timestamp=MOMENT, kind="started", fields=text, previous=first_link(WORLD))
    assert record_from(row).fields == fields
    assert verification_of([row], world=WORLD) == Verification(ok=True, count=1, head=row[5])


def test_the_order_of_keys_does_not_change_the_text() -> None:
    one: dict[str, JSON] = {"b": 1, "a": {"d": 2, "c": 3}}
    other: dict[str, JSON] = {"a": {"c": 3, "d": 2}, "b": 1}
    assert canonical_json(exact_fields(one)) == canonical_json(exact_fields(other)) == '{"a":{"c":3,"d":2},"b":1}'


def test_fields_are_copied_so_that_later_changes_do_not_reach_the_record() -> None:
    reasons = ["one"]
    fields = exact_fields(MappingProxyType({"reasons": reasons, "pair": ("a", "b")}))
    reasons.append("two")
    assert fields == {"reasons": ["one"], "pair": ["a", "b"]}


class Fickle(Mapping[str, Any]):
    """Says something else when it is asked again, as a mapping does that another thread writes to."""

    def __init__(self) -> None:
        self._answers: list[Any] = ["text", [1.5]]

    def __getitem__(self, key: str) -> Any:
        return self._answers.pop()

    def __iter__(self) -> Iterator[str]:
        return iter(("a",))

    def __len__(self) -> int:
        return 1


def test_what_is_checked_is_what_is_recorded() -> None:
    with pytest.raises(TypeError, match=r"a is float 1\.5"):
        exact_fields(Fickle())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"duration": 1.5}, r"duration is float 1\.5; .*whole numbers", id="float"),
        pytest.param({"a": {"b": [float("nan")]}}, "b is float nan", id="nested nan"),
        pytest.param({"a": b"x"}, "a is bytes", id="bytes"),
        pytest.param({"a": object()}, "a is object", id="object"),
        pytest.param({1: "x"}, "fields has the key 1; keys of a record are text", id="key"),
    ],
)
def test_what_has_no_exact_json_form_is_refused_by_name(fields: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        exact_fields(fields)


def test_an_empty_log_is_intact_and_ends_in_the_first_link() -> None:
    assert verification_of([], world=WORLD) == Verification(ok=True, count=0, head=first_link(WORLD))


def test_an_untouched_log_is_intact() -> None:
    rows = log_of(5)
    assert verification_of(rows, world=WORLD) == Verification(ok=True, count=5, head=rows[4][5])


def broken(rows: list[Row], at: int, problem: str, *, intact: int) -> Verification:
    head = rows[intact - 1][5] if intact else first_link(WORLD)
    return Verification(ok=False, count=intact, head=head, broken_at=at, problem=problem)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        pytest.param(1, "2026-01-02T03:04:06.000006Z", id="timestamp"),
        pytest.param(2, "started", id="kind"),
        pytest.param(3, '{"exit_code":0,"skill":"s"}', id="fields"),
        pytest.param(3, '{"exit_code": 2,"skill":"s"}', id="spelling of the same fields"),
        pytest.param(3, "not json", id="fields that are no JSON"),
        pytest.param(3, '{"exit_code":2.0,"skill":"s"}', id="float"),
        pytest.param(3, "[" * 100_000, id="fields too deep to read"),
        pytest.param(3, b"\xff", id="bytes"),
        pytest.param(1, None, id="nothing"),
        pytest.param(5, "0" * 64, id="hash"),
    ],
)
def test_a_changed_record_is_named(column: int, value: Any) -> None:
    rows: list[Any] = log_of(5)
    rows[2] = (*rows[2][:column], value, *rows[2][column + 1 :])
    problem = "Record 3 was altered: its content does not give its hash."
    assert verification_of(rows, world=WORLD) == broken(rows, 3, problem, intact=2)


def test_a_record_changed_with_a_fitting_hash_is_named_by_the_one_after_it() -> None:
    rows = log_of(5)
    rows[2] = row_after(rows[:2], skill="s", exit_code=99)
    problem = "Record 3 was altered or replaced: record 4 was written after another one."
    assert verification_of(rows, world=WORLD) == broken(rows, 3, problem, intact=3)


def test_a_removed_record_is_named() -> None:
    rows = log_of(5)
    del rows[2]
    problem = "Record 3 is missing: the next one there is record 4."
    assert verification_of(rows, world=WORLD) == broken(rows, 3, problem, intact=2)


def test_a_removed_record_whose_gap_was_closed_is_named() -> None:
    rows = log_of(5)
    rows = renumbered(rows[:2] + rows[3:])
    problem = "Record 3 was altered, replaced or moved: it does not follow record 2."
    assert verification_of(rows, world=WORLD) == broken(rows, 3, problem, intact=2)


def test_a_removed_beginning_is_named() -> None:
    rows = log_of(5)
    problem = "Record 1 is missing: the next one there is record 3."
    assert verification_of(rows[2:], world=WORLD) == broken(rows, 1, problem, intact=0)


def test_an_inserted_record_is_named() -> None:
    rows = log_of(5)
    rows = renumbered([*rows[:2], row_after(rows[:2], skill="fake"), *rows[2:]])
    problem = "Record 3 was inserted: record 4 was written in its place."
    assert verification_of(rows, world=WORLD) == broken(rows, 3, problem, intact=3)


def test_a_record_before_the_first_is_named() -> None:
    rows = log_of(2)
    row = (0, *rows[0][1:])
    problem = "Record 0 was inserted: records are numbered from 1."
    assert verification_of([row, *rows], world=WORLD) == broken(rows, 0, problem, intact=0)


def test_reordered_records_are_named() -> None:
    rows = log_of(5)
    rows[2], rows[3] = (3, *rows[3][1:]), (4, *rows[2][1:])
    problem = "Record 3 was altered, replaced or moved: it does not follow record 2."
    assert verification_of(rows, world=WORLD) == broken(rows, 3, problem, intact=2)


def test_the_log_of_another_world_is_not_this_ones() -> None:
    problem = "Record 1 is not the first record of this world: it was altered, replaced or moved."
    expected = Verification(ok=False, count=0, head=first_link("other"), broken_at=1, problem=problem)
    assert verification_of(log_of(3), world="other") == expected


def checkpoint_of(rows: list[Row]) -> Checkpoint:
    return Checkpoint(world=WORLD, seq=len(rows), hash=rows[-1][5], timestamp=MOMENT)


def test_a_removed_end_shows_only_against_a_checkpoint() -> None:
    rows = log_of(5)
    assert verification_of(rows[:3], world=WORLD).ok
    problem = "Record 4 is missing: the log ended at record 5 when its checkpoint was made."
    found = verification_of(rows[:3], world=WORLD, checkpoints=[checkpoint_of(rows)])
    assert found == broken(rows, 4, problem, intact=3)


def test_a_log_written_anew_shows_only_against_a_checkpoint() -> None:
    anew: list[Row] = []
    for number in range(5):
        anew.append(row_after(anew, skill="innocent", exit_code=number))
    assert verification_of(anew, world=WORLD).ok
    problem = "Record 3 is not the one of the checkpoint: the log was written anew."
    found = verification_of(anew, world=WORLD, checkpoints=[checkpoint_of(log_of(3))])
    assert found == broken(anew, 3, problem, intact=2)


def test_a_log_that_grew_since_its_checkpoint_is_intact() -> None:
    rows = log_of(5)
    assert verification_of(rows, world=WORLD, checkpoints=[checkpoint_of(rows[:3])]).ok


def test_a_checkpoint_of_another_world_does_not_fit() -> None:
    found = verification_of([], world="other", checkpoints=[checkpoint_of(log_of(1))])
    problem = f"The checkpoint is of world {WORLD}, this log of world other: one was replaced."
    assert found == Verification(ok=False, count=0, head=first_link("other"), problem=problem)


def test_a_checkpoint_is_read_from_text_with_other_keys_beside_its_own() -> None:
    text = json.dumps({"schema_version": 1, "world": "w", "seq": 3, "hash": "h", "timestamp": "t"})
    assert checkpoint_from(text.encode()) == checkpoint_from(text) == Checkpoint("w", 3, "h", "t")


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", "[]", '{"seq": 1}', '{"seq":1.5,"world":"w","hash":"h"}'])
def test_a_text_that_is_no_checkpoint_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError, match="no checkpoint: it needs world, seq, hash and timestamp"):
        checkpoint_from(text)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=6), st.data())
def test_no_single_change_goes_unseen(codes: list[int], data: st.DataObject) -> None:
    rows: list[Row] = []
    for code in codes:
        rows.append(row_after(rows, exit_code=code))
    at = data.draw(st.integers(0, len(rows) - 2))
    column = data.draw(st.integers(1, 5))
    changed = data.draw(st.text())
    original = rows[at][column]
    rows[at] = (*rows[at][:column], changed, *rows[at][column + 1 :])  # type: ignore[assignment]  # columns are text
    assert verification_of(rows, world=WORLD).ok == (changed == original)
