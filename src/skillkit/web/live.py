"""Changes in the world's file -> calls of whoever listens, and server-sent events for open pages.

Theory of operation. `Subscription` is the only place of the page that looks at the store again and again: one thread
for all listeners, and none while nobody listens. It waits for the store's change mark, which reads no table; what waits
is read when the mark changed, and once a second, since time alone ends a request too.
A listener is handed what waits now, never what happened: whoever is slow misses only what is out of date.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256

from skillkit.core.exceptions import StateUnavailableError
from skillkit.core.store.base import ChangeMark
from skillkit.core.store.world import World

__all__ = ["MOST_LISTENERS", "Events", "Pending", "Subscription"]

LOOK_SECONDS = 0.1
LOOK_AGAIN_SECONDS = 1.0
BEAT_SECONDS = 15.0
STOP_SECONDS = 5.0
MOST_LISTENERS = 64


@dataclass(frozen=True, slots=True)
class Pending:
    """What can be answered at one moment; `version` differs whenever that differs, `runs` when what runs does."""

    version: str
    ids: tuple[str, ...]
    runs: str = ""

    def event(self) -> bytes:
        content = json.dumps({"version": self.version, "pending": self.ids, "runs": self.runs})
        return f"event: pending\nid: {self.version}\ndata: {content}\n\n".encode()


class Subscription:
    """Tells listeners, in a thread of its own, whenever what waits in a world is not what waited before."""

    def __init__(self, world: World, every: float = LOOK_SECONDS) -> None:
        self._world = world
        self._every = every
        self._lock = threading.Lock()
        self._is_idle = threading.Event()
        self._listeners: set[Callable[[Pending], None]] = set()
        self._thread: threading.Thread | None = None
        self.latest: Pending | None = None

    def now(self) -> Pending:
        found = self._world.pending_ids()
        return Pending(
            _version([found, self._world.pending_mark()]),
            tuple(name for _, name in found),
            _version(self._world.running(with_ended=True)),
        )

    def add(self, listener: Callable[[Pending], None]) -> None:
        with self._lock:
            self._listeners.add(listener)
            self._is_idle.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="skillkit-page", daemon=True)
                self._thread.start()

    def remove(self, listener: Callable[[Pending], None]) -> None:
        with self._lock:
            self._listeners.discard(listener)
            if not self._listeners:
                self._is_idle.set()

    def close(self) -> None:
        """Nobody is told anything after this."""
        with self._lock:
            thread = self._thread
            self._listeners.clear()
            self._is_idle.set()
        if thread is not None:
            thread.join(STOP_SECONDS)

    def _watch(self) -> None:
        mark: ChangeMark | None = None
        while self._is_wanted():
            try:
                mark = self._world.wait_for_change(mark, LOOK_AGAIN_SECONDS, self._is_idle)
                self._tell(self.now())
            except StateUnavailableError:
                mark = None
            self._is_idle.wait(self._every)  # however often others write

    def _is_wanted(self) -> bool:
        """A listener who comes later starts a thread of its own."""
        with self._lock:
            if not self._listeners:
                self._thread = self.latest = None
            return bool(self._listeners)

    def _tell(self, pending: Pending) -> None:
        if self.latest != pending:
            with self._lock:
                self.latest, listeners = pending, list(self._listeners)
            for listener in listeners:
                listener(pending)


def _version(found: object) -> str:
    return sha256(json.dumps(found).encode()).hexdigest()[:16]


class Events:
    """What every open page follows; `close` ends all streams at once."""

    def __init__(self, world: World) -> None:
        self._subscription = Subscription(world)
        self._wakers: set[Callable[[object], None]] = set()
        self._is_closed = False
        self.now = self._subscription.now

    @property
    def is_full(self) -> bool:
        return len(self._wakers) >= MOST_LISTENERS

    async def stream(self) -> AsyncGenerator[bytes, None]:
        """First what is true now, whatever the listener saw before; then each change."""
        loop, woken = asyncio.get_running_loop(), asyncio.Event()

        def wake(_: object) -> None:
            with suppress(RuntimeError):  # a loop that has ended hears nothing
                loop.call_soon_threadsafe(woken.set)

        self._wakers.add(wake)
        self._subscription.add(wake)
        try:
            yield b"retry: 1000\n\n"
            pending = await asyncio.to_thread(self.now)
            yield pending.event()
            while not self._is_closed:
                with suppress(TimeoutError):  # then it is time to say that we are still here
                    async with asyncio.timeout(BEAT_SECONDS):
                        await woken.wait()
                    woken.clear()
                before, pending = pending, self._subscription.latest or pending
                yield pending.event() if pending != before else b": still here\n\n"
        except StateUnavailableError:
            return  # a listener comes back by itself, and hears then what is true
        finally:
            self._wakers.discard(wake)
            self._subscription.remove(wake)

    def close(self) -> None:
        self._is_closed = True
        for wake in list(self._wakers):
            wake(None)
        self._subscription.close()
