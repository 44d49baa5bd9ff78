"""An output stream of a running process -> its first bytes, and how many there were."""

from __future__ import annotations

import io
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["READ_SIZE", "Capture"]

READ_SIZE = 65_536  # bytes: what a pipe holds; larger pipes and splice(2) were measured and gain nothing


class Capture:
    """One output stream: the first `limit` bytes are kept and shown, the rest is read and only counted."""

    __slots__ = ("_kept", "_limit", "_listener", "_name", "count")

    def __init__(self, name: str, limit: int, listener: Callable[[str, bytes], None] | None) -> None:
        self._name = name
        self._limit = limit
        self._listener = listener
        # getvalue() hands out its own buffer, so ten megabytes kept are ten megabytes used.
        self._kept = io.BytesIO()
        self.count = 0

    def read(self, fd: int, buffer: memoryview) -> bool:
        """Take once what is there, through a buffer that streams may share; false at the end."""
        size = os.readv(fd, [buffer])
        self.add(buffer[:size])
        return size > 0

    def add(self, chunk: memoryview) -> None:
        """Keep what fits, show the listener the same, count everything."""
        room = self._limit - self.count
        self.count += len(chunk)
        if room <= 0 or not chunk:
            return
        kept = chunk[:room]
        self._kept.write(kept)
        if self._listener is not None:
            self._listener(self._name, bytes(kept))

    def kept(self) -> bytes:
        return self._kept.getvalue()
