"""A way to a shared world -> a call as soon as it tells of an answer: one thread with a connection of its own.

What the database sends may get lost, as behind a pooler that shares connections among transactions. So nobody relies
on it before a word sent through the usual connections has come back here, and whoever relies on it still looks now
and then.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from skillkit.core.exceptions import SkillKitError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import psycopg

__all__ = ["Notices"]

SLICE_SECONDS = 0.5
RETRY_SECONDS = 2.0
PROBE_SECONDS = 3.0


class Notices:
    """Hears until it is closed; `is_heard` says whether what is told reaches us now."""

    def __init__(
        self,
        channel: str,
        *,
        connect: Callable[[], psycopg.Connection[Any]],
        say: Callable[[str], None],
        wake: Callable[[], None],
    ) -> None:
        """`connect` gives a connection that is ours, `say` sends a word to the channel as others do."""
        self._channel, self._connect, self._say, self._wake = channel, connect, say, wake
        self._closed, self._heard = threading.Event(), threading.Event()
        threading.Thread(target=self._hear, name="skillkit-hear", daemon=True).start()

    @property
    def is_heard(self) -> bool:
        return self._heard.is_set()

    def close(self) -> None:
        """Its thread ends within a moment."""
        self._closed.set()

    def _hear(self) -> None:
        import psycopg

        while not self._closed.is_set():
            with suppress(psycopg.Error, SkillKitError):
                self._hear_while_connected()
            self._heard.clear()
            self._wake()  # what was told meanwhile was not heard
            self._closed.wait(RETRY_SECONDS)

    def _hear_while_connected(self) -> None:
        from psycopg import sql

        with self._connect() as connection:
            connection.execute(sql.SQL("listen {}").format(sql.Identifier(self._channel)))
            word = secrets.token_hex(8)
            self._say(word)
            if not self._comes_back(connection, word):
                # Deaf: whoever waits goes on looking.
                self._closed.wait()
                return
            self._heard.set()
            self._wake()  # for what was told before we heard
            while not self._closed.is_set():
                for _ in connection.notifies(timeout=SLICE_SECONDS, stop_after=1):
                    self._wake()

    def _comes_back(self, connection: psycopg.Connection[Any], word: str) -> bool:
        for notice in connection.notifies(timeout=PROBE_SECONDS):
            if notice.payload == word:
                return True
            self._wake()
        return False
