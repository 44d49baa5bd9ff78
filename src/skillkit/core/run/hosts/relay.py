"""Two connections -> bytes that pass between them, both ways at once, until both are over.

Theory of operation. Each way holds what came and could not go on yet, in a buffer of its own: nothing more is read
until that is gone, so a slow reader slows its writer and memory stays flat. A way on which much comes again and again
is *busy*. It is looked at when a large piece has come, or after 2 ms: most of what a relay costs is waking up for small
ones. And it gets a pipe in place of the buffer where the system can move bytes from connection to pipe to connection
by itself (`splice`), uncopied. There are few of those at a time, since the system counts what pipes hold.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from contextlib import ExitStack

from skillkit.core.run.hosts.requests import Body, RequestError

__all__ = ["Moved", "relay"]

BUFFER_BYTES = 65_536
MUCH_BYTES, OFTEN = 4_096, 8
BUSY_BYTES, BUSY_MILLISECONDS = 1 << 19, 2
AHEAD_BYTES = 1 << 21
PIPE_BYTES = 1 << 20
MOST_PIPES = 32
_pipes = threading.BoundedSemaphore(MOST_PIPES)
_CAN_SPLICE = hasattr(os, "splice")
_AT_ONCE = (os.SPLICE_F_MOVE | os.SPLICE_F_NONBLOCK) if _CAN_SPLICE else 0


class Moved:
    """How many bytes went to a host and came from it; counted while they pass."""

    def __init__(self) -> None:
        self.sent = self.received = 0


class _Buffer:
    """Bytes on their way through this process; of a request's body no more than belongs to it."""

    def __init__(self, body: Body | None) -> None:
        self._body = body
        self._room = bytearray(BUFFER_BYTES)
        self._waiting = memoryview(b"")

    def fill(self, source: socket.socket) -> tuple[int, int]:
        """How many bytes came and how many of them go on."""
        came = source.recv_into(self._room)
        taken = came if self._body is None else self._body.take(bytes(self._room[:came]))
        self._waiting = memoryview(self._room)[:taken]
        return came, taken

    def drain(self, sink: socket.socket) -> int:
        sent = sink.send(self._waiting)
        self._waiting = self._waiting[sent:]
        return sent


class _Pipe:
    """Bytes on their way inside the system."""

    def __init__(self, held: ExitStack) -> None:
        """Raises OSError where none is to be had."""
        import fcntl  # not everywhere

        self._read, self._write = os.pipe()
        held.callback(os.close, self._read)
        held.callback(os.close, self._write)
        self._room = fcntl.fcntl(self._write, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        self._waiting = 0

    def fill(self, source: socket.socket) -> tuple[int, int]:
        self._waiting = os.splice(source.fileno(), self._write, self._room, flags=_AT_ONCE)
        return self._waiting, self._waiting

    def drain(self, sink: socket.socket) -> int:
        sent = os.splice(self._read, sink.fileno(), self._waiting, flags=_AT_ONCE)
        self._waiting -= sent
        return sent


class _Way:
    """One direction: what came in and could not go out yet."""

    def __init__(self, source: socket.socket, sink: socket.socket, body: Body | None = None) -> None:
        self.source, self.sink = source, sink
        self._body = body
        self._held = ExitStack()
        self._room: _Buffer | _Pipe = _Buffer(body)
        self._waiting = 0
        self._much = 0
        self._has_asked = False
        self._is_ending = False
        self.is_busy = False
        self.is_over = body is not None and body.is_over

    @property
    def wants_more(self) -> bool:
        return not (self._is_ending or self.is_over or self._waiting)

    @property
    def is_full(self) -> bool:
        return self._waiting > 0

    def read(self) -> None:
        came, self._waiting = self._room.fill(self.source)
        self._is_ending = came == 0
        self._much = self._much + 1 if came >= MUCH_BYTES else 0
        self.expect(much=self._much >= OFTEN)

    def expect(self, *, much: bool) -> None:
        """How much has to come before it is looked at again."""
        if much != self.is_busy and self._body is None:
            self.is_busy = much
            self._much *= much
            self._wait_for(BUSY_BYTES if much else 1)

    def _wait_for(self, count: int) -> None:
        self.source.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, count)

    def write(self) -> int:
        """How much went on; at the end that nothing more comes is passed on, too."""
        sent = self._room.drain(self.sink) if self._waiting else 0
        self._waiting -= sent
        if self._waiting:
            return sent
        if self._is_ending:
            self.is_over = True
            self.sink.shutdown(socket.SHUT_WR)
        elif self._body is not None:
            self.is_over = self._body.is_over  # the host keeps its side open: many take its end for a hang-up
        elif self.is_busy and not self._has_asked:
            self._take_pipe()
        return sent

    def _take_pipe(self) -> None:
        """Once: who gets none goes on with the buffer."""
        self._has_asked = True
        if _CAN_SPLICE and _pipes.acquire(blocking=False):
            self._held.callback(_pipes.release)
            with contextlib.suppress(OSError):  # too many are open
                self._room = _Pipe(self._held)
                # The system lets a sender run ahead by as much as was ever waited for.
                self._wait_for(AHEAD_BYTES)
                self._wait_for(BUSY_BYTES)

    def close(self) -> None:
        self._held.close()


def relay(client: socket.socket, server: socket.socket, moved: Moved, body: Body | None = None) -> None:
    """Pass bytes on until both ways are over; with a body only that goes to the server, and its answer is the end."""
    client.setblocking(False)
    server.setblocking(False)
    there, back, poller = _Way(client, server, body), _Way(server, client), _Poller()
    try:
        while not back.is_over or (body is None and not there.is_over):
            came = poller.wait(there, back)
            moved.sent += _pass_on(there, came)
            moved.received += _pass_on(back, came)
    except (OSError, RequestError):
        pass  # one of them hung up, say
    finally:
        there.close()
        back.close()


def _pass_on(way: _Way, came: set[int]) -> int:
    """What came is sent on at once: most often there is room for it."""
    if way.wants_more and (way.is_busy or way.source.fileno() in came):
        try:
            way.read()
        except BlockingIOError:
            if not came:  # for a while: it is busy no more
                way.expect(much=False)
            return 0
    elif not way.is_full:
        return 0
    try:
        return way.write()
    except BlockingIOError:
        return 0


class _Poller:
    """Looks at two connections; what each is looked at for is told to the system only when it changes."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._wanted: dict[socket.socket, int] = {}

    def wait(self, there: _Way, back: _Way) -> set[int]:
        """Sleep until something came or can go out; on which connections something came."""
        for reader, writer in ((there, back), (back, there)):
            wanted = (select.POLLIN if reader.wants_more else 0) | (select.POLLOUT if writer.is_full else 0)
            self._look(reader.source, wanted)
        is_busy = (there.is_busy and there.wants_more) or (back.is_busy and back.wants_more)
        found = self._poll.poll(BUSY_MILLISECONDS if is_busy else None)
        return {number for number, events in found if events & ~select.POLLOUT}

    def _look(self, connection: socket.socket, wanted: int) -> None:
        """One that is looked at for nothing is left out: that its other side hung up would be told without end."""
        before = self._wanted.get(connection, 0)
        if wanted == before:
            return
        self._wanted[connection] = wanted
        if wanted:
            self._poll.register(connection, wanted)
        else:
            self._poll.unregister(connection)
