"""One call of a tool -> its result, with progress while it runs and no process left when it is cancelled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import anyio
from mcp.server.context import ServerRequestContext

from skillkit.core.waiting import awaited_run
from skillkit.present.terminal import cut, visible

__all__ = ["LiveProgress", "stoppable"]

INTERVAL_SECONDS = 0.1
TAIL_BYTES = 2_000
LINE_COLUMNS = 200

Result = TypeVar("Result")


async def stoppable(run: Callable[[], Result], cancel: threading.Event) -> Result:
    """Runs it in a thread; when the call is cancelled, so is the run, and only then the call ends."""
    running = asyncio.ensure_future(awaited_run(lambda _: run()))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        cancel.set()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # nobody is left to look at it
        raise


class LiveProgress:
    """What a script prints -> progress for the client: how many bytes so far, and the last line."""

    def __init__(self, ctx: ServerRequestContext[Any, Any]) -> None:
        self.ctx = ctx
        self.loop = asyncio.get_running_loop()
        self.changed = asyncio.Event()
        self.seen = 0
        self.sent = 0
        self.tail = b""

    def on_output(self, _: str, data: bytes) -> None:
        """Called from the thread that reads the script's output."""
        self.seen += len(data)
        self.tail = (self.tail + data)[-TAIL_BYTES:]
        with suppress(RuntimeError):  # the loop is closed, and nobody listens
            self.loop.call_soon_threadsafe(self.changed.set)

    async def report(self) -> None:
        """Until cancelled; what comes in between two reports is told by the second."""
        while True:
            await self.changed.wait()
            self.changed.clear()
            await self.send()
            await asyncio.sleep(INTERVAL_SECONDS)

    async def send(self) -> None:
        if self.seen > self.sent:
            self.sent = self.seen
            await self.ctx.session.report_progress(float(self.sent), None, last_line(self.tail))


def last_line(output: bytes) -> str:
    """Made harmless: a script's words are not the client's."""
    lines = output.decode("utf-8", errors="replace").split("\n")
    line = next((each.strip() for each in reversed(lines) if each.strip()), "")
    return cut(visible(line), LINE_COLUMNS)
