"""What a script made under guarded names -> what its result says of it; and a guard that ends once."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import Self

from skillkit.core.run.guard.guard import NOTHING_GUARDED, Guard, Guarded
from skillkit.core.run.guard.restore import SetAside
from skillkit.core.values.runs import ScriptExecutionResult

__all__ = ["Guarding", "tell_of"]

NAMED_ASIDE = 5
NAME_CHARACTERS = 250

run_log = logging.getLogger("skillkit.run")


class Guarding:
    """Ends once, however often it is asked to."""

    def __init__(self, guard: Guard, guarded: Guarded) -> None:
        self._guard = guard
        self.guarded = guarded

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> tuple[SetAside, ...]:
        guarded, self.guarded = self.guarded, NOTHING_GUARDED
        return self._guard.end(guarded) if guarded is not NOTHING_GUARDED else ()


def tell_of(moved: tuple[SetAside, ...], result: ScriptExecutionResult) -> ScriptExecutionResult:
    """The result, and in its hint what the script made that others would have obeyed."""
    if not moved:
        return result
    more = f" and {len(moved) - NAMED_ASIDE} more" if len(moved) > NAMED_ASIDE else ""
    names = ", ".join(_quoted(each.path) for each in moved[:NAMED_ASIDE]) + more
    kept = next((os.path.dirname(each.kept) for each in moved if each.kept), "")
    left = [each.path for each in moved if not each.kept]
    said = f"The script made or changed what agents, editors, shells or git obey: {names}."
    said += f" It was moved to {kept}; look at it before you put anything back." if kept else ""
    said += f" Remove what could not be moved: {', '.join(map(_quoted, left[:NAMED_ASIDE]))}." if left else ""
    run_log.warning(said)
    return replace(result, hint=f"{result.hint} {said}".strip())


def _quoted(path: str) -> str:
    """A script chose the name: it can neither write a sentence of its own nor hide what it is."""
    return repr(path if len(path) <= NAME_CHARACTERS else f"{path[:NAME_CHARACTERS]}...")
