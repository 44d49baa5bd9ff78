"""Changes in the world's file -> server-sent events; one thread looks for all who listen, while there are any."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

from starlette.concurrency import run_in_threadpool

from skillkit.core.decide.requests import World
from skillkit.core.exceptions import StateUnavailableError

__all__ = ["Events", "Glance"]

LOOK_SECONDS = 0.1
# Time alone ends a request too, and no commit tells of it.
LOOK_AGAIN_SECONDS = 1.0
BEAT_SECONDS = 15.0
MOST_LISTENERS = 64


@dataclass(frozen=True, slots=True)
class Glance:
    """What can be answered at one moment; `version` differs whenever that differs."""

    version: str
    ids: tuple[str, ...]

    def event(self) -> bytes:
        content = json.dumps({"version": self.version, "pending": self.ids})
        return f"event: pending\nid: {self.version}\ndata: {content}\n\n".encode()


class Listener:
    """One open stream; it holds no queue, so one that reads slowly misses only what is out of date."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()

    def wake(self) -> None:
        with suppress(RuntimeError):  # a loop that has ended hears nothing
            self._loop.call_soon_threadsafe(self._woken.set)

    async def sleep(self) -> None:
        """Until there is news, or it is time to say that we are still here."""
        try:
            async with asyncio.timeout(BEAT_SECONDS):
                await self._woken.wait()
        except TimeoutError:
            return
        self._woken.clear()


class Events:
    """What every open page follows; `close` ends all streams at once."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._lock = threading.Condition()
        self._listeners: set[Listener] = set()
        self._is_watching = False
        self._is_closed = False
        self._latest: Glance | None = None

    @property
    def is_full(self) -> bool:
        return len(self._listeners) >= MOST_LISTENERS

    def glance(self) -> Glance:
        found = self._world.pending_ids()
        version = sha256(json.dumps(found).encode()).hexdigest()[:16]
        return Glance(version, tuple(name for _, name in found))

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """First what is true now, whatever the listener saw before; then each change."""
        listener = Listener()
        self._add(listener)
        try:
            yield b"retry: 1000\n\n"
            glance = await run_in_threadpool(self.glance)
            yield glance.event()
            while not self._is_closed:
                await listener.sleep()
                before, glance = glance, self._latest or glance
                yield glance.event() if glance.version != before.version else b": still here\n\n"
        except StateUnavailableError:
            return  # a listener comes back by itself, and hears then what is true
        finally:
            self._remove(listener)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._lock.notify()
            for listener in self._listeners:
                listener.wake()

    def _add(self, listener: Listener) -> None:
        with self._lock:
            self._listeners.add(listener)
            if not self._is_watching and not self._is_closed:
                self._is_watching = True
                threading.Thread(target=self._watch, name="skillkit-page", daemon=True).start()

    def _remove(self, listener: Listener) -> None:
        with self._lock:
            self._listeners.discard(listener)
            if not self._listeners:
                self._lock.notify()

    def _watch(self) -> None:
        mark: tuple[int, int, int] | None = None
        looked = 0.0
        while True:
            try:
                now = self._world.change_mark()
                if now != mark or time.monotonic() - looked >= LOOK_AGAIN_SECONDS:
                    mark, looked = now, time.monotonic()
                    self._tell(self.glance())
            except StateUnavailableError:
                mark = None
            with self._lock:
                if not self._is_wanted():
                    return
                self._lock.wait(LOOK_SECONDS)
                if not self._is_wanted():
                    return

    def _is_wanted(self) -> bool:
        """Under the lock: a listener who comes later starts a thread of its own."""
        if self._listeners and not self._is_closed:
            return True
        self._is_watching = False
        self._latest = None
        return False

    def _tell(self, glance: Glance) -> None:
        with self._lock:
            if self._latest is not None and self._latest.version == glance.version:
                return
            self._latest = glance
            for listener in self._listeners:
                listener.wake()
