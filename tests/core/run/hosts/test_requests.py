"""Bodies of requests: whatever pieces they come in, exactly the body is passed on."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillkit.core.run.hosts.requests import Body, RequestError

CHUNKED = b"4\r\nWiki\r\n6;name=value\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nTrailer: x\r\n\r\n"


@given(st.lists(st.integers(0, len(CHUNKED) + 20)))
def test_chunks_end_at_the_same_byte_in_whatever_pieces_they_come(cuts: list[int]) -> None:
    sent = CHUNKED + b"GET / HTTP/1.1\r\n\r\n"
    places = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]
    body, taken = Body(None), 0
    for start, end in pairwise(places):
        if body.is_over:
            break
        taken += body.take(sent[start:end])
    assert body.is_over
    assert sent[:taken] == CHUNKED


@given(st.integers(0, 50), st.lists(st.binary(max_size=20)))
def test_a_body_of_known_length_ends_there(length: int, pieces: list[bytes]) -> None:
    body = Body(length)
    taken = sum(body.take(piece) for piece in pieces)
    assert taken == min(length, sum(map(len, pieces)))
    assert body.is_over == (taken == length)


@pytest.mark.parametrize(
    "text",
    [
        *(b"x\r\n", b"\r\n", b"4\nWiki", b"4\r\nWikiX\r\n", b"-1\r\n", b"0x4\r\n", b"1" * 5000),
        # A lone CR ends a line for some readers.
        *(b"4;a=\rb\r\n", b"4;\x00\r\n", b"0\r\nX: a\rb\r\n", b"0\r\nno colon\r\n", b"0\r\n Folded: x\r\n"),
    ],
)
def test_what_is_no_chunk_is_refused(text: bytes) -> None:
    with pytest.raises(RequestError):
        Body(None).take(text)
