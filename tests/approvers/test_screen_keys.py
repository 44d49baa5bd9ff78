"""Bytes from a terminal, read as keys."""

from __future__ import annotations

import pytest

from skillkit.approvers.screen import is_unfinished, keys_of


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        pytest.param(b"", (), id="nothing"),
        pytest.param(b"1", ("1",), id="digit"),
        pytest.param(b"\x1b", ("escape",), id="Esc"),
        pytest.param(b"\x1b\x1b", ("escape", "escape"), id="Esc twice"),
        pytest.param(b"\x1b[A\x1bOB", ("up", "down"), id="arrows"),
        pytest.param(b"\x1b[5~\x1b[6~", ("page up", "page down"), id="pages"),
        pytest.param(b"\x1b1", ("unknown",), id="Alt-1"),
        pytest.param(b"\x1b[1;5C", ("unknown",), id="a sequence that holds a 1"),
        pytest.param(b"\x1b[200~1\x1b[201~", ("unknown", "1", "unknown"), id="paste"),
        pytest.param("é".encode(), ("\xc3", "\xa9"), id="two bytes"),
    ],
)
def test_keys_are_told_apart(data: bytes, keys: tuple[str, ...]) -> None:
    assert keys_of(data) == keys


@pytest.mark.parametrize("data", [b"\x1b", b"\x1b[", b"\x1b[1;", b"\x1bO", b"x\x1b"])
def test_the_rest_of_a_sequence_is_awaited(data: bytes) -> None:
    assert is_unfinished(data)


@pytest.mark.parametrize("data", [b"", b"1", b"\x1b[A", b"\x1bOA", b"\x1b1"])
def test_nothing_is_awaited_behind_a_whole_key(data: bytes) -> None:
    assert not is_unfinished(data)
