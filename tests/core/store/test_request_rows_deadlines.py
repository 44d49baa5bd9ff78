"""When something is over, whatever is done to the clock."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from skillkit.core.store import base
from skillkit.core.store.base import Moment, boot_id, moment_now, steady_seconds
from skillkit.core.store.request_rows import Life

CREATED = 1000.0
DEADLINE = Moment("boot", 50.0, CREATED + 10)


def is_over(deadline: Moment, created_at: float, now: Moment) -> bool:
    return Life(1, False, created_at, deadline).is_over(now)


@pytest.mark.parametrize("wall", [-1e9, CREATED, CREATED + 10, 1e12])
def test_during_one_boot_only_the_steady_clock_counts(wall: float) -> None:
    assert not is_over(DEADLINE, CREATED, Moment("boot", 49.9, wall))
    assert is_over(DEADLINE, CREATED, Moment("boot", 50.0, wall))


@pytest.mark.parametrize(
    ("wall", "over"),
    [(CREATED, False), (CREATED + 9.9, False), (CREATED + 10, True), (CREATED - 0.1, True)],
)
def test_after_a_restart_the_wall_clock_counts_if_it_can_be_believed(wall: float, over: bool) -> None:
    assert is_over(DEADLINE, CREATED, Moment("another", 1.0, wall)) is over


@pytest.mark.parametrize(
    ("steady", "wall", "over"),
    [(49.0, CREATED + 5, False), (50.0, CREATED + 5, True), (49.0, CREATED + 10, True), (49.0, CREATED - 1, True)],
)
def test_where_boots_cannot_be_told_apart_both_clocks_must_agree(steady: float, wall: float, over: bool) -> None:
    assert is_over(Moment("", 50.0, CREATED + 10), CREATED, Moment("", steady, wall)) is over


def test_now_goes_on_while_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = moment_now()
    monkeypatch.setattr("skillkit.core.store.base.time.time", lambda: 0.0)
    after = moment_now()
    assert after.wall == 0.0
    assert after.boot == before.boot == boot_id()
    assert after.steady >= before.steady
    assert time.time() == 0.0


def test_a_later_moment_is_later_by_both_clocks() -> None:
    assert Moment("boot", 50.0, 1000.0).after(2.5) == Moment("boot", 52.5, 1002.5)


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="needs a clock that counts sleep")
def test_time_asleep_counts_where_the_system_can_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "clock_gettime", lambda clock: 7.0 if clock == time.CLOCK_BOOTTIME else 0.0)
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    asleep_too = steady_seconds()
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    only_awake = steady_seconds()
    assert (asleep_too, only_awake) == (7.0, 5.0)


def test_the_start_of_the_machine_is_known_by_what_the_system_says_or_by_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"said": b"3f2a\n", "no text": b"\xff\xfe", "missing": None}
    found = {}
    for name, content in files.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        monkeypatch.setattr(base, "BOOT_ID_FILE", tmp_path / name)
        found[name] = boot_id.__wrapped__()
    assert found == {"said": "3f2a", "no text": "", "missing": ""}


def test_a_steady_clock_of_another_boot_says_nothing() -> None:
    assert not is_over(DEADLINE, CREATED, Moment("another", 99.0, CREATED + 5))
