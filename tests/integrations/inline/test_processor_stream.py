"""The processor as a step of a LangChain pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.inline_answers import said, tutor

from skillkit import SkillManager
from skillkit.integrations.inline import InlineProcessor, shown_text

runnables = pytest.importorskip("langchain_core.runnables")


def transform(manager: SkillManager) -> Any:
    def sync(chunks: Iterator[str]) -> Iterator[str]:
        yield from map(shown_text, InlineProcessor(manager).stream(chunks))

    async def asynchronous(chunks: AsyncIterator[str]) -> AsyncIterator[str]:
        async for shown in InlineProcessor(manager).astream(chunks):
            yield shown_text(shown)

    return runnables.RunnableGenerator(sync, asynchronous)


def model(chunks: Iterator[str]) -> Iterator[str]:
    assert "".join(chunks) == "?"
    yield from ["Say %", "{scripts/spe", "ak.sh hi} ", "after me."]


def test_a_pipeline_shows_text_and_outcomes(tmp_path: Path) -> None:
    with tutor(tmp_path) as manager:
        pieces = list((runnables.RunnableGenerator(model) | transform(manager)).stream("?"))
    assert pieces[0] == "Say "
    assert "[scripts/speak.sh hi: done, " in pieces[1]
    assert "".join(pieces[2:]) == " after me."
    assert said(tmp_path) == ["hi"]


def test_a_pipeline_of_a_loop_does_the_same(tmp_path: Path) -> None:
    async def pieces_of(manager: SkillManager) -> list[str]:
        async def answer() -> AsyncIterator[str]:
            for piece in model(iter("?")):
                yield piece

        return [piece async for piece in transform(manager).atransform(answer())]

    with tutor(tmp_path) as manager:
        pieces = asyncio.run(pieces_of(manager))
    assert "[scripts/speak.sh hi: done, " in pieces[1]
    assert said(tmp_path) == ["hi"]
