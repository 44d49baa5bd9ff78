"""Managers -> many runs at once from threads and from a loop, each compared with how it must end."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from bench.soak.scripts import ASKED, HOSTED, KINDS, SKILL, Kind, Outcome
from skillkit import ScriptExecutionResult, SkillKitError, SkillManager

__all__ = ["Load", "Tally"]

THREADS = 32
TASKS = 8
CANCELLED_SHARE = 0.1
CANCEL_AFTER = 0.15


@dataclass(slots=True)
class Tally:
    """How the runs of one kind ended."""

    milliseconds: Counter[int] = field(default_factory=Counter)
    """How often each, to two digits: what is counted here must not grow with the runs and be taken for theirs."""
    wrong: list[str] = field(default_factory=list)


class Load:
    """The same managers for the whole soak, so that whatever one keeps for itself is seen to grow.

    Without a manager that opens hosts (walls that cannot) their kinds are not in the mix.
    """

    def __init__(self, manager: SkillManager, asking: SkillManager, hosted: SkillManager | None, seed: int) -> None:
        self.manager, self.asking, self.hosted = manager, asking, hosted
        self.mix = {**KINDS, **(HOSTED if hosted else {}), **ASKED}
        self.tallies = {name: Tally() for name in self.mix}
        self.counts = Counter[str]()
        self._lock = threading.Lock()
        self._words = (f"word{number}" for number in itertools.count())
        self._random = random.Random(seed)
        self._first = list(self.mix)  # however short it is, every kind comes once

    def work_for(self, seconds: float) -> None:
        """Ends when every run has ended."""
        until = time.monotonic() + seconds
        with ThreadPoolExecutor(THREADS) as pool:
            threads = [pool.submit(self._in_thread, until) for _ in range(THREADS)]
            asyncio.run(self._in_loop(until))
        for thread in threads:
            thread.result()

    def _in_thread(self, until: float) -> None:
        while time.monotonic() < until:
            name, kind, word = self._next()
            began = time.monotonic()
            try:
                outcome: Outcome = self._holder(kind).execute_skill_script(
                    SKILL, kind.script or "none", **kind.call_with(word)
                )
            except SkillKitError as error:
                outcome = error
            except Exception as error:  # noqa: BLE001 - whatever is not ours is wrong, and the others go on
                self.tallies[name].wrong.append(repr(error))
                continue
            self._note(name, outcome, word, began)

    async def _in_loop(self, until: float) -> None:
        async def worker() -> None:
            while time.monotonic() < until:
                await self._awaited()

        await asyncio.gather(*(worker() for _ in range(TASKS)))

    async def _awaited(self) -> None:
        name, kind, word = self._next()
        run = self._holder(kind).aexecute_skill_script(SKILL, kind.script or "none", **kind.call_with(word))
        began = time.monotonic()
        if not kind.is_asked and self._random.random() < CANCELLED_SHARE:
            with suppress(TimeoutError, SkillKitError):
                await asyncio.wait_for(run, CANCEL_AFTER)
            self.counts["cancelled"] += 1
            return
        try:
            outcome: Outcome = await run
        except SkillKitError as error:
            outcome = error
        except Exception as error:  # noqa: BLE001 - as above
            self.tallies[name].wrong.append(repr(error))
            return
        self._note(name, outcome, word, began)

    def _next(self) -> tuple[str, Kind, str]:
        with self._lock:
            if self._first:
                name = self._first.pop()
            else:
                (name,) = self._random.choices(list(self.mix), [kind.share for kind in self.mix.values()])
            return name, self.mix[name], next(self._words)

    def _holder(self, kind: Kind) -> SkillManager:
        if kind.has_hosts and self.hosted is not None:
            return self.hosted
        return self.asking if kind.is_asked else self.manager

    def _note(self, name: str, outcome: Outcome, word: str, began: float) -> None:
        with self._lock:
            tally = self.tallies[name]
            tally.milliseconds[_to_two_digits((time.monotonic() - began) * 1000)] += 1
            self.counts["refused" if isinstance(outcome, SkillKitError) else "finished"] += 1
            if isinstance(outcome, ScriptExecutionResult):
                self.counts[outcome.isolation.start] += 1
            if not self.mix[name].is_right(outcome, word):
                tally.wrong.append(repr(outcome)[:500])


def _to_two_digits(milliseconds: float) -> int:
    return int(float(f"{milliseconds:.2g}"))
