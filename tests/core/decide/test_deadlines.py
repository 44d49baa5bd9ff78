"""When something is over, whatever is done to the clock."""

from __future__ import annotations

import time

import pytest

from skillkit.core.decide.deadlines import Moment, boot_id, is_over, moment_now

CREATED = 1000.0
DEADLINE = Moment("boot", 50.0, CREATED + 10)


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
    monkeypatch.setattr("skillkit.core.decide.deadlines.time.time", lambda: 0.0)
    after = moment_now()
    assert after.wall == 0.0
    assert after.boot == before.boot == boot_id()
    assert after.steady >= before.steady
    assert time.time() == 0.0
