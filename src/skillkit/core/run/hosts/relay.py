"""Two connections -> bytes that pass between them, both ways at once, until both are over."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from contextlib import closing

from skillkit.core.run.hosts.requests import Body, RequestError

__all__ = ["Moved", "relay"]

BUFFER_BYTES = 65_536
FILLED_OFTEN = 8
LARGE_BYTES = 1 << 20  # for who sends much: fewer looks at each connection; most send little
_large = threading.BoundedSemaphore(32)
_CAME = select.POLLIN | select.POLLHUP | select.POLLERR


class Moved:
    """How many bytes went to a host and came from it; counted while they pass."""

    def __init__(self) -> None:
        self.sent = self.received = 0


class _Way:
    """One direction: what came in and could not go out yet."""

    def __init__(self, source: socket.socket, sink: socket.socket, body: Body | None = None) -> None:
        self.source, self.sink = source, sink
        self._body = body
        self._buffer = bytearray(BUFFER_BYTES)
        self._waiting = memoryview(b"")
        self._filled = 0
        self._is_ending = False
        self.is_over = body is not None and body.is_over

    @property
    def wants_more(self) -> bool:
        return not (self._is_ending or self.is_over or self._waiting)

    @property
    def is_full(self) -> bool:
        return bool(self._waiting)

    def read(self) -> None:
        count = self.source.recv_into(self._buffer)
        self._is_ending = count == 0
        self._filled = self._filled + 1 if count == len(self._buffer) else 0
        taken = count if self._body is None else self._body.take(bytes(self._buffer[:count]))
        self._waiting = memoryview(self._buffer)[:taken]

    def write(self) -> int:
        """How much went on; at the end that nothing more comes is passed on, too."""
        sent = self.sink.send(self._waiting) if self._waiting else 0
        self._waiting = self._waiting[sent:]
        if self._filled >= FILLED_OFTEN and not self._waiting:
            self._enlarge()
        if not self._waiting and self._is_ending:
            self.is_over = True
            self.sink.shutdown(socket.SHUT_WR)
        elif not self._waiting and self._body is not None:
            self.is_over = self._body.is_over  # the host keeps its side open: many take its end for a hang-up
        return sent

    def _enlarge(self) -> None:
        self._filled = 0
        if len(self._buffer) < LARGE_BYTES and _large.acquire(blocking=False):
            self._buffer = bytearray(LARGE_BYTES)

    def close(self) -> None:
        if len(self._buffer) == LARGE_BYTES:
            _large.release()


def relay(client: socket.socket, server: socket.socket, moved: Moved, body: Body | None = None) -> None:
    """Pass bytes on until both ways are over; with a body only that goes to the server, and its answer is the end."""
    client.setblocking(False)
    server.setblocking(False)
    there, back = _Way(client, server, body), _Way(server, client)
    with contextlib.suppress(OSError, RequestError), closing(there), closing(back):  # one of them hung up, say
        while not back.is_over or (body is None and not there.is_over):
            came = _wait(there, back)
            moved.sent += _pass_on(there, came)
            moved.received += _pass_on(back, came)


def _pass_on(way: _Way, came: set[int]) -> int:
    """What came is sent on at once: most often there is room for it."""
    if way.wants_more and way.source.fileno() in came:
        way.read()
    elif not way.is_full:
        return 0
    try:
        return way.write()
    except BlockingIOError:
        return 0


def _wait(there: _Way, back: _Way) -> set[int]:
    """Sleep until something came or can go out; on which connections something came."""
    poller = select.poll()
    for reader, writer in ((there, back), (back, there)):
        wanted = (select.POLLIN if reader.wants_more else 0) | (select.POLLOUT if writer.is_full else 0)
        if wanted:
            poller.register(reader.source, wanted)
    return {number for number, events in poller.poll() if events & _CAME}
