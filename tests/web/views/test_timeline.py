"""The axis of time is true: as far apart as moments are, so far apart stand their bars."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillkit.web.views.timeline import MOST_BARS, WIDTH, timeline_of


def test_empty_minutes_are_as_wide_as_full_ones() -> None:
    """The chart before left them out, so that an hour looked like a minute."""
    line = timeline_of([(0.0, "succeeded"), (1.0, "failed"), (3000.0, "refused"), (3001.0, "refused")])
    assert line is not None
    assert (line.start, line.end, line.step) == (0, 3060, 60)
    places = sorted({part.x for part in line.parts})
    assert places == [0, 50 * WIDTH // 51]
    assert {(part.kind, part.x) for part in line.parts} == {("good", 0), ("bad", 0), ("warn", places[1])}
    assert (line.most, line.busiest) == (2, 0)


def test_one_moment_is_no_axis() -> None:
    assert timeline_of([]) is None
    assert timeline_of([(5.0, "failed"), (5.0, "failed")]) is None


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.floats(0, 4e9), st.sampled_from(["succeeded", "failed", "other"])), max_size=40))
def test_any_runs_fit(runs: list[tuple[float, str]]) -> None:
    line = timeline_of(runs)
    if line is not None:
        assert line.end - line.start <= (MOST_BARS + 1) * line.step
        assert all(part.x >= 0 and part.x + part.width <= line.width for part in line.parts)
        assert all(part.y >= 0 and part.y + part.height <= line.height for part in line.parts)
