"""Runs that came -> spares for those that will: made in the background, few, for a minute, never in a fork.

Theory of operation. One thread makes and keeps all spares of this process: the kernel ends walls with the thread that
started them, and it lives as long as the process. A run tells it (`expect`) how the next one of its kind would start,
and the next one asks for it (`take`). Which are kept is decided here: one for a script, a second only where runs come
faster than spares; no more than policy says, for a minute; where there is no room, a script gets it that ran twice
within that minute. Memory is looked at every few seconds.
"""

from __future__ import annotations

import atexit
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import NamedTuple

from skillkit.core.exceptions import SkillKitError
from skillkit.core.run.warm.spare import Spare, Unready
from skillkit.core.values.runs import ScriptCommand

__all__ = ["Recipe", "spares"]

LIFE_SECONDS = 60.0
FIRST_DELAY_SECONDS = 0.1  # a process that ends after one run makes none
LOOK_SECONDS = 2.0
TAKE_SECONDS = 2.0
READY_SECONDS = 20.0
REMEMBERED = 256
TRIES = 3
LEAST_FREE_MEGABYTES = 256
LEAST_FREE_PART = 0.05


class Recipe(NamedTuple):
    """How the next run of one script would start."""

    owner: int
    """Whose runs these are; when it closes, its spares end."""
    slot: Hashable
    command: ScriptCommand
    make: Callable[[int], Spare]
    """Gets how many modules may be imported ahead, and gives a spare that is on its way."""
    sandboxes: int
    megabytes: int


class _Kind:
    """What is known of one script."""

    def __init__(self) -> None:
        self.runs: deque[float] = deque(maxlen=2)
        self.misses = 0
        """In a row: runs that found no spare."""
        self.misfits = 0
        """In a row: spares that were not what a run needed."""
        self.failures = 0
        self.most_imports = 1 << 30
        self.had_one = False
        self.is_awaited = False
        """Somebody waits for the one that is being made, which is sooner than anew; for all others it is not."""


class _Spares:
    """Of one process."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._kinds: dict[Hashable, _Kind] = {}
        self._wanted: dict[Hashable, tuple[float, Recipe]] = {}
        self._kept: list[tuple[Recipe, Spare]] = []
        self._making: Recipe | None = None
        self._thread: threading.Thread | None = None
        self._wake = (-1, -1)
        self._is_still_wanted = True

    # What runs say.

    def take(self, slot: Hashable) -> Spare | None:
        """One for this run alone; the most finished. One that is being made is waited for, by one run alone."""
        if self._thread is None:
            return None
        with self._changed:
            kind = self._kinds.get(slot)
            if kind is None:
                return None
            is_making = self._making is not None and self._making.slot == slot
            if is_making and not self._of(slot) and not kind.is_awaited:
                kind.is_awaited = True
                self._changed.wait_for(lambda: self._of(slot) or self._making is None, TAKE_SECONDS)
                kind.is_awaited = False
            found = max(self._of(slot), key=lambda each: (each[1].is_ready, each[1].done), default=None)
            if found is None:
                kind.misses += 1
                return None
            kind.misses = 0 if found[1].is_ready else kind.misses + 1
            self._kept.remove(found)
            return found[1]

    def expect(self, recipe: Recipe) -> None:
        """The next run may come at any time."""
        with self._changed:
            kind = self._kinds.setdefault(recipe.slot, _Kind())
            kind.runs.append(time.monotonic())
            if len(self._kinds) > REMEMBERED:
                del self._kinds[next(iter(self._kinds))]
            if not self._may_have(recipe, kind):
                return
            delay = 0.0 if kind.had_one else FIRST_DELAY_SECONDS
            self._wanted[recipe.slot] = (time.monotonic() + delay, recipe)
            self._start_thread()
            self._nudge()

    def note_fit(self, slot: Hashable, *, fits: bool) -> None:
        """Whether a spare was what a run needed; where it never is, none are made."""
        with self._changed:
            if (kind := self._kinds.get(slot)) is not None:
                kind.misfits = 0 if fits else kind.misfits + 1

    def review(self, slot: Hashable, command: ScriptCommand | None) -> None:
        """After a decision: whatever was made for something else, or for what may not run any more, ends."""
        if self._thread is None:
            return
        with self._changed:
            wanted = self._wanted.get(slot)
            if wanted is not None and wanted[1].command != command:
                del self._wanted[slot]
            if self._making is not None and self._making.slot == slot and self._making.command != command:
                self._is_still_wanted = False
            gone = [each for each in self._kept if each[0].slot == slot and each[1].command != command]
            self._drop(gone)
        _end(gone)

    def close(self, owner: int) -> None:
        """Everything of one that makes no more runs."""
        if self._thread is None:
            return
        with self._changed:
            self._wanted = {slot: each for slot, each in self._wanted.items() if each[1].owner != owner}
            is_made = self._changed.wait_for(lambda: self._making is None or self._making.owner != owner, READY_SECONDS)
            self._is_still_wanted = self._is_still_wanted and is_made  # who makes it ends it, however late that is
            gone = [each for each in self._kept if each[0].owner == owner]
            self._drop(gone)
        _end(gone)

    def count(self, slot: Hashable | None = None) -> int:
        """How many wait and are ready."""
        with self._changed:
            return sum(spare.is_ready for recipe, spare in self._kept if slot in (None, recipe.slot))

    def close_all(self, owner: int) -> None:
        """At the end of the process that made them."""
        if os.getpid() == owner and self._changed.acquire(timeout=1):
            try:
                gone, self._kept, self._wanted = self._kept, [], {}
                self._is_still_wanted = False
            finally:
                self._changed.release()
            _end(gone)

    def forget(self) -> None:
        """In a fork: spares and the thread are its parent's."""
        for number in self._wake:
            if number >= 0:
                os.close(number)
        self._begin()

    # Inside the lock.

    def _of(self, slot: Hashable) -> list[tuple[Recipe, Spare]]:
        return [each for each in self._kept if each[0].slot == slot and not each[1].is_spoiled]

    def _drop(self, gone: list[tuple[Recipe, Spare]]) -> None:
        self._kept = [each for each in self._kept if each not in gone]

    def _may_have(self, recipe: Recipe, kind: _Kind) -> bool:
        """Whether one more is worth its cost; makes room for it by taking it from who ran longest ago."""
        most = 2 if kind.misses >= TRIES - 1 else 1
        if len(self._of(recipe.slot)) >= most or max(kind.misfits, kind.failures) >= TRIES:
            return False
        others = self._wanted.keys() - {recipe.slot}
        making = self._making is not None and self._making.slot != recipe.slot
        if len(self._kept) + len(others) + making < recipe.sandboxes:
            return True
        runs_often = len(kind.runs) > 1 and kind.runs[-1] - kind.runs[0] < LIFE_SECONDS
        return runs_often and not self._of(recipe.slot)

    def _make_room(self, recipe: Recipe) -> list[tuple[Recipe, Spare]]:
        too_many = len(self._kept) + 1 - recipe.sandboxes
        by_age = sorted(self._kept, key=lambda each: self._last_run(each[0].slot))
        gone = by_age[: max(too_many, 0)]
        self._drop(gone)
        return gone

    def _last_run(self, slot: Hashable) -> float:
        kind = self._kinds.get(slot)
        return kind.runs[-1] if kind and kind.runs else 0.0

    def _start_thread(self) -> None:
        if self._thread is None:
            self._wake = os.pipe()
            os.set_blocking(self._wake[1], False)
            self._thread = threading.Thread(target=self._keep, name="skillkit spares", daemon=True)
            self._thread.start()
            atexit.register(self.close_all, os.getpid())

    def _nudge(self) -> None:
        with suppress(OSError):  # full, so that it wakes anyway
            os.write(self._wake[1], b".")

    # The thread.

    def _keep(self) -> None:
        while True:
            with suppress(Exception):  # whatever it is, runs start without spares; the thread must not end
                self._wait()
                self._look_after()
                self._make_next()

    def _wait(self) -> None:
        poller = select.poll()
        poller.register(self._wake[0], select.POLLIN)
        with self._changed:
            for _, spare in self._kept:
                if not spare.is_ready:
                    poller.register(spare.answers, select.POLLIN)
            soonest = min((at for at, _ in self._wanted.values()), default=None)
            is_idle = not self._kept
        longest = None if is_idle else LOOK_SECONDS
        seconds = longest if soonest is None else max(0.0, soonest - time.monotonic())
        if any(number == self._wake[0] for number, _ in poller.poll(None if seconds is None else seconds * 1000)):
            os.read(self._wake[0], 4096)

    def _look_after(self) -> None:
        now = time.monotonic()
        gone = []
        with self._changed:
            for each in self._kept:
                recipe, spare = each
                spare.look()
                is_late = not spare.is_ready and now - spare.made_at > READY_SECONDS
                if spare.is_spoiled or spare.has_printed or is_late:
                    kind = self._kinds.get(recipe.slot, _Kind())
                    kind.most_imports = min(kind.most_imports, spare.done)
                    kind.failures += 1
                    gone.append(each)
                    if kind.failures < TRIES:
                        self._wanted.setdefault(recipe.slot, (now, recipe))
                elif now - spare.made_at > LIFE_SECONDS:
                    gone.append(each)
            gone += self._too_large([each for each in self._kept if each not in gone])
            self._drop(gone)
        _end(gone)

    def _too_large(self, kept: list[tuple[Recipe, Spare]]) -> list[tuple[Recipe, Spare]]:
        """Whom there is no memory for, who ran longest ago first."""
        if not kept:
            return []
        if _memory_is_short():
            return kept
        room, gone = float(min(recipe.megabytes for recipe, _ in kept)), []
        room -= max(spare.helper_megabytes for _, spare in kept)
        for each in sorted(kept, key=lambda each: -self._last_run(each[0].slot)):
            room -= each[1].megabytes
            if room < 0:
                gone.append(each)
        return gone

    def _make_next(self) -> None:
        with self._changed:
            due = [each for at, each in self._wanted.values() if at <= time.monotonic()]
            if not due or _memory_is_short():
                return
            recipe = due[0]
            del self._wanted[recipe.slot]
            gone = self._make_room(recipe)
            kind = self._kinds.setdefault(recipe.slot, _Kind())
            kind.had_one = True
            self._making, self._is_still_wanted = recipe, True
        _end(gone)
        spare, gone = None, []
        try:
            spare = recipe.make(kind.most_imports)
        except (Unready, SkillKitError, OSError, ValueError):
            kind.failures += 1
        finally:
            with self._changed:
                self._making = None
                if spare is not None and self._is_still_wanted:
                    self._kept.append((recipe, spare))
                elif spare is not None:
                    gone = [(recipe, spare)]
                self._changed.notify_all()
        _end(gone)


def _end(gone: list[tuple[Recipe, Spare]]) -> None:
    for _, spare in gone:
        with suppress(OSError):
            spare.discard()


def _memory_is_short() -> bool:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        free, total = (int(lines[name].split()[0]) / 1024 for name in ("MemAvailable", "MemTotal"))
    except (OSError, KeyError, ValueError):
        return True
    return free < max(LEAST_FREE_MEGABYTES, total * LEAST_FREE_PART)


spares = _Spares()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=spares.forget)
