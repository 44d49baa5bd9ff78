"""Moving in a long text."""

from __future__ import annotations

import pytest

from skillkit.approvers.pager import moved, page


@pytest.mark.parametrize(
    ("key", "top", "then"),
    [
        pytest.param("down", 0, 1, id="a line on"),
        pytest.param("up", 0, 0, id="nothing above the first"),
        pytest.param(" ", 0, 9, id="a page on, one line shared"),
        pytest.param("page up", 50, 41, id="a page back"),
        pytest.param("end", 0, 90, id="the last page is full"),
        pytest.param(" ", 88, 90, id="not beyond the end"),
        pytest.param("home", 77, 0, id="the beginning"),
        pytest.param("1", 5, 5, id="a key without meaning"),
    ],
)
def test_keys_move_the_view(key: str, top: int, then: int) -> None:
    assert moved(key, top, height=10, count=100) == then


def test_a_text_shorter_than_the_view_does_not_move() -> None:
    assert moved("end", 0, height=10, count=3) == 0


def test_a_line_is_cleared_before_it_is_written_so_that_a_full_one_keeps_its_last_character() -> None:
    assert page(["x" * 20, "y"], 0, "Source", 20, 5).startswith(f"\x1b[H\x1b[K{'x' * 20}\n\x1b[Ky\n\x1b[J")
