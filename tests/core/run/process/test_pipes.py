from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from skillkit.core.run.process.pipes import READ_SIZE, Capture, Descriptors, Feed


def drained(capture: Capture, content: bytes) -> Capture:
    """`capture` after everything was read from a pipe that somebody else fills."""
    reader, writer = os.pipe()

    def fill() -> None:
        with os.fdopen(writer, "wb") as stream:
            stream.write(content)

    filler = threading.Thread(target=fill)
    filler.start()
    buffer = memoryview(bytearray(READ_SIZE))
    while capture.read(reader, buffer):
        pass
    filler.join()
    os.close(reader)
    return capture


@pytest.mark.parametrize(
    ("written", "limit", "kept"),
    [
        pytest.param(b"", 10, b"", id="nothing"),
        pytest.param(b"0123456789", 10, b"0123456789", id="exactly the limit"),
        pytest.param(b"0123456789x", 10, b"0123456789", id="one more"),
        pytest.param(b"abc", 0, b"", id="nothing wanted"),
        pytest.param(b"\xff\xfe\x00", 10, b"\xff\xfe\x00", id="bytes that are no text"),
        pytest.param(b"x" * 300_000, 200_000, b"x" * 200_000, id="more than one read"),
    ],
)
def test_the_first_bytes_are_kept_and_all_are_counted(written: bytes, limit: int, kept: bytes) -> None:
    capture = drained(Capture("stdout", limit, None), written)

    assert (capture.kept(), capture.count) == (kept, len(written))


def test_the_listener_gets_what_is_kept_and_no_more() -> None:
    heard: list[tuple[str, bytes]] = []

    drained(Capture("stderr", 100_000, lambda name, chunk: heard.append((name, chunk))), b"y" * 250_000)

    assert {name for name, _ in heard} == {"stderr"}
    assert b"".join(chunk for _, chunk in heard) == b"y" * 100_000


def test_a_feed_stops_where_the_pipe_is_full_and_goes_on_later() -> None:
    content = os.urandom(500_000)
    feed = Feed(content)
    taken = b""
    with Descriptors() as held:
        reader, writer = held.pipe()
        os.set_blocking(writer, False)
        while feed.write(writer):
            assert feed.write(writer)
            taken += os.read(reader, 65_536)
        held.close(writer)
        while chunk := os.read(reader, 65_536):
            taken += chunk

    assert taken == content


@pytest.mark.parametrize("disposition", [signal.SIG_IGN, signal.SIG_DFL])
def test_a_reader_that_closed_ends_the_feed_and_not_the_program(disposition: signal.Handlers) -> None:
    before = signal.signal(signal.SIGPIPE, disposition)
    try:
        with Descriptors() as held:
            reader, writer = held.pipe()
            held.close(reader)

            assert not Feed(b"to nobody").write(writer)
        assert signal.SIGPIPE not in signal.sigpending()
    finally:
        signal.signal(signal.SIGPIPE, before)


def test_descriptors_are_closed_once_and_all() -> None:
    before = {entry.name for entry in Path("/proc/self/fd").iterdir()}
    with Descriptors() as held:
        reader, writer = held.pipe()
        moved = held.keep(writer, least=100)
        held.close(reader, reader, writer)

        assert moved >= 100
        assert not os.get_inheritable(moved)
    assert {entry.name for entry in Path("/proc/self/fd").iterdir()} == before
