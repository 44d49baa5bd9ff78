"""Text from anywhere, made safe and tidy for a terminal."""

from __future__ import annotations

import pytest

from skillkit.core.values.text import visible
from skillkit.present.terminal import wrap


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        pytest.param("plain\ttext\n", "plain\ttext\n", id="plain"),
        pytest.param("naïve 漢字 ⚠\ufe0f", "naïve 漢字 ⚠\ufe0f", id="other scripts and emoji"),
        pytest.param("ไทย ผู้", "ไทย ผู้", id="marks that a script needs"),
        pytest.param("\x1b[31m\x9b\r", r"\x1b[31m\x9b\x0d", id="controls"),
        pytest.param("a\u202eb\u200bc\u2028", r"a\u202eb\u200bc\u2028", id="direction and zero width"),
        pytest.param("a\u3164b\U000e0100", r"a\u3164b\U000e0100", id="unseen letters"),
        pytest.param("a\u0378", r"a\u0378", id="unassigned"),
        pytest.param("e" + "\u0301" * 6, "e" + "\u0301" * 4 + r"\u0301\u0301", id="a pile of marks"),
        pytest.param("\u0301a \u0301b\n\u0301", "\\u0301a \\u0301b\n\\u0301", id="marks without a letter"),
    ],
)
def test_what_could_deceive_is_written_out(text: str, safe: str) -> None:
    assert visible(text) == safe


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        pytest.param("", [""], id="empty"),
        pytest.param("short", ["short"], id="short"),
        pytest.param("two words here", ["two words", "here"], id="words"),
        pytest.param("abcdefghijklmno", ["abcdefghij", "klmno"], id="one long word"),
        pytest.param("  abcdefghijkl", ["  abcdefgh", "ijkl"], id="indented"),
        pytest.param("漢字漢字漢字", ["漢字漢字漢", "字"], id="wide"),
        pytest.param("123456789e\u0301x", ["123456789", "e\u0301x"], id="a mark stays with its letter"),
        pytest.param("one        two three", ["one", "two three"], id="spaces at a break"),
    ],
)
def test_a_line_is_broken_into_pieces_that_fit(line: str, pieces: list[str]) -> None:
    assert list(wrap(line, 10)) == pieces


def test_source_is_broken_without_losing_anything() -> None:
    line = "    if a  and    b: return   'x y z'   "
    assert "".join(wrap(line, 7, at_words=False)) == line
