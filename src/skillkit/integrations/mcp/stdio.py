"""A server on this process's stdin and stdout, which nobody else in it can touch while it is served."""

from __future__ import annotations

import asyncio
import io
import os
import re
import signal
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

__all__ = ["mend", "serve_stdio"]

SURROGATE_SIGNS = ("\\ud", "\\uD")
# From left to right, so that a backslash that is escaped itself starts nothing; a pair is one character.
ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
REPLACED = r"\ufffd"


def serve_stdio(server: Server[Any]) -> None:
    """Until the client closes our stdin, or a signal ends us; calls under way are cancelled, their scripts killed."""
    with _private_streams() as (incoming, outgoing):
        anyio.run(_serve, server, incoming, outgoing)


async def _serve(server: Server[Any], incoming: int, outgoing: int) -> None:
    writer = io.TextIOWrapper(os.fdopen(outgoing, "wb", closefd=False), encoding="utf-8")
    lines: Any = _Lines(incoming)  # all that the transport asks of a file to read
    async with anyio.create_task_group() as tasks:
        if os.name == "posix":  # elsewhere no loop can wait for signals
            tasks.start_soon(_stop_on_signal, tasks.cancel_scope)
        async with stdio_server(lines, anyio.wrap_file(writer)) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as received:
        async for _ in received:
            scope.cancel()
            return


@contextmanager
def _private_streams() -> Iterator[tuple[int, int]]:
    """Duplicates of stdin and stdout for us alone; whoever else reads gets nothing, what they print is on stderr.

    Duplicates are not inherited, so no script has them.
    """
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        yield incoming, outgoing
    finally:
        sys.stdout.flush()
        os.dup2(incoming, 0)
        os.dup2(outgoing, 1)


def mend(line: str) -> str:
    """JSON without half characters: the transport drops a message that holds one, and its client would wait in vain."""
    if not any(sign in line for sign in SURROGATE_SIGNS):
        return line
    return ESCAPE.sub(lambda escape: escape[0] if escape["half"] is None else REPLACED, line)


class _Lines:
    """_Lines from a descriptor, read by a thread that does not keep the process alive.

    A read that waits for a client cannot be cancelled; with a pool's thread, a signal would end us only after
    the client's next line.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    async def __aiter__(self) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        lines: asyncio.Queue[str | None] = asyncio.Queue()
        threading.Thread(target=self._read, args=(loop, lines), name="skillkit-mcp-stdin", daemon=True).start()
        while (line := await lines.get()) is not None:
            yield line

    def _read(self, loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[str | None]) -> None:
        try:
            with os.fdopen(self.descriptor, "rb", closefd=False) as file:
                for line in file:
                    loop.call_soon_threadsafe(lines.put_nowait, mend(line.decode("utf-8", errors="replace")))
            loop.call_soon_threadsafe(lines.put_nowait, None)
        except (OSError, RuntimeError):  # stdin is gone, or the loop is
            return
