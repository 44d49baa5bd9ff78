from __future__ import annotations

import base64

import pytest

from skillkit.core.decide.risk.encoded import decoded_preview, encoded_findings, is_plain_run

ENCODED = "".join(f"{number * 7919:x}Qz" for number in range(120))


def base64_of(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def test_a_picture_at_the_very_start_is_a_picture() -> None:
    assert list(encoded_findings(f"data:image/png;base64,{ENCODED}")) == []
    assert len(list(encoded_findings(f"other:image/png;base64,{ENCODED}"))) == 1


@pytest.mark.parametrize(("length", "lines"), [(5_000, []), (5_001, [2])])
def test_a_line_is_endless_from_here_on_and_found_where_it_stands(length: int, lines: list[int]) -> None:
    text = "\n" + ("a b " * 1_300)[:length] + "\n"
    assert [found.line for found in encoded_findings(text)] == lines


@pytest.mark.parametrize(
    ("text", "preview"),
    [
        (base64_of(b"import os"), ", which says 'import os'"),
        (base64_of(b"import os") + "a", ", which says 'import os'"),
        (b"import os!".hex(), ", which says 'import os!'"),
        (base64_of(b"one\ntwo\tx"), ", which says 'one two x'"),
        (base64_of(b"one\0two\0"), ""),
        (base64_of(b"\xff\xfe\xfd"), ""),
        ("no code!", ""),
        ("", ""),
    ],
)
def test_what_an_encoded_text_says(text: str, preview: str) -> None:
    assert decoded_preview(text) == preview


def test_only_the_start_of_an_encoded_text_is_decoded() -> None:
    assert decoded_preview(base64_of(b"a" * 225 + b"\0" * 75)) == ""
    assert decoded_preview(base64_of(b"a" * 300 + b"\0" * 75)).startswith(", which says 'aaa")


LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    ("blob", "is_plain"),
    [
        pytest.param(LETTERS[:11] * 40, True, id="few characters"),
        pytest.param(LETTERS[:12] * 40, False, id="enough characters"),
        pytest.param((LETTERS[:11] * 40)[:400] + "z", True, id="few at the start"),
        pytest.param((LETTERS * 20)[:360] + "/" * 40, False, id="some slashes"),
        pytest.param((LETTERS * 20)[:359] + "/" * 41, True, id="a path"),
        pytest.param((LETTERS * 20)[:358] + "+" + "/" * 41, False, id="as many slashes as base64 may have"),
        pytest.param((LETTERS * 40)[:951] + "/" * 49, False, id="few slashes for its length"),
        pytest.param((LETTERS * 40)[:949] + "/" * 51, True, id="a long path"),
    ],
)
def test_nothing_is_encoded_in_a_ruler_or_a_path(blob: str, is_plain: bool) -> None:
    assert is_plain_run(blob) is is_plain
