"""What scripts print -> rows that whoever ordered the run reads while it goes on; a timer sends what stays behind."""

from __future__ import annotations

import threading
from contextlib import suppress

from skillkit.core.exceptions import StateUnavailableError
from skillkit.fleet.rows import Rows

__all__ = ["Stream", "Streams"]

FLUSH_SECONDS = 0.1
CHUNK_BYTES = 256 * 1024
MOST_WAITING = 4 * 1024 * 1024
"""What the database does not take meanwhile is dropped here; the result has it all."""


class Stream:
    """Of one run; in order, each piece once."""

    def __init__(self, run: str, streams: Streams) -> None:
        self._run, self._streams = run, streams
        self._lock, self._sending = threading.Lock(), threading.Lock()
        self._waiting: list[tuple[str, bytearray]] = []
        self._size = self._n = 0

    def write(self, stream: str, data: bytes) -> None:
        """Never waits for the database: the run goes on meanwhile."""
        with self._lock:
            if self._size + len(data) > MOST_WAITING:
                return
            if self._waiting and self._waiting[-1][0] == stream and len(self._waiting[-1][1]) < CHUNK_BYTES:
                self._waiting[-1][1].extend(data)
            else:
                self._waiting.append((stream, bytearray(data)))
            self._size += len(data)
        self._streams.wake()

    def flush(self) -> None:
        with self._sending:
            with self._lock:
                taken, self._waiting, self._size = self._waiting, [], 0
            if not taken:
                return
            first, self._n = self._n, self._n + len(taken)
            chunks = [(first + n, stream, bytes(data)) for n, (stream, data) in enumerate(taken)]
            with suppress(StateUnavailableError):
                self._streams.rows.add_output(self._run, chunks)

    def close(self) -> None:
        self._streams.remove(self)
        self.flush()


class Streams:
    """Of all runs of a worker; one thread sends."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._open: set[Stream] = set()
        self._lock = threading.Lock()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def new(self, run: str) -> Stream:
        stream = Stream(run, self)
        with self._lock:
            self._open.add(stream)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="skillkit-streams", daemon=True)
                self._thread.start()
        return stream

    def remove(self, stream: Stream) -> None:
        with self._lock:
            self._open.discard(stream)

    def wake(self) -> None:
        self._woken.set()

    def _work(self) -> None:
        while not self._is_closed:
            self._woken.wait()
            self._woken.clear()
            with self._lock:
                waiting = [*self._open]
            for stream in waiting:
                stream.flush()
            threading.Event().wait(FLUSH_SECONDS)

    def close(self) -> None:
        self._is_closed = True
        self._woken.set()
        if self._thread is not None:
            self._thread.join(5)
