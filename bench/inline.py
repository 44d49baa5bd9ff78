"""How fast a model's text is read for commands: plain text, text with code in it, and small chunks."""

from __future__ import annotations

from pathlib import Path

from bench.runner import Row, Work, measure
from skillkit.integrations.inline import InlineParser

SIZE = 8_000_000
PLAIN = "The quick brown fox is 100% sure! It jumps over {the} lazy dog, again and again.\n"
RICH = "A line of text, then `code`, then a sign: 5% of it.\n" * 12 + "```sh\necho %{no}\n```\n\n"
CHUNK = 4_096


def rows(_: Path) -> list[Row]:
    """A megabyte is a million characters, here also bytes."""
    plain = (PLAIN * (SIZE // len(PLAIN) + 1))[:SIZE]
    rich = (RICH * (SIZE // 8 // len(RICH) + 1))[: SIZE // 8]
    works: dict[str, Work] = {
        "plain": lambda: read(plain, SIZE),
        "chunks": lambda: read(plain, CHUNK),
        "rich": lambda: read(rich, CHUNK),
    }
    timings = measure(works, 5)
    return [
        speed("inline commands: plain text in one piece", SIZE, timings.p50("plain"), 50, 200),
        speed("inline commands: plain text in chunks of 4 kB", SIZE, timings.p50("chunks"), 50, 100),
        speed("inline commands: text with code in it", len(rich), timings.p50("rich"), 1, 2),
    ]


def read(text: str, chunk: int) -> None:
    parser = InlineParser()
    for start in range(0, len(text), chunk):
        parser.feed(text[start : start + chunk])
    parser.finish()


def speed(what: str, size: int, milliseconds: float, must: float, goal: float) -> Row:
    detail = f"p50 {milliseconds:.1f} ms for {size / 1e6:g} MB"
    return Row(what, size / 1e3 / milliseconds, must, goal, "MB/s", detail, at_least=True)
