"""A run that failed and what it wrote -> one sentence: the cause, and a remedy that works; nothing rather than a guess.

What a script writes proves nothing by itself. A cause is told only where something else agrees: the name is not on
PATH, the variable is not there, the skill has such a file. Nothing that a script can word freely is repeated.
"""

from __future__ import annotations

from collections.abc import Callable

from skillkit.core.run.hints.failure import Failure
from skillkit.core.run.hints.missing import missing_module, missing_program
from skillkit.core.run.hints.surroundings import file_elsewhere, needs_input, no_repository, timed_out, unset_variable

__all__ = ["Failure", "hint_for"]

CAUSES: tuple[Callable[[Failure, str], str], ...] = (
    missing_program,
    missing_module,
    unset_variable,
    no_repository,
    needs_input,
)


def hint_for(failure: Failure, walls: Callable[[str], str] | None = None) -> str:
    """`walls` says which wall a text complains of. Scripts that write nothing to stderr say it on stdout."""
    if failure.timed_out:
        return timed_out(failure)
    for text in (failure.stderr, failure.stdout):
        found = walls(text) if walls else ""
        for cause in CAUSES:
            found = found or cause(failure, text)
        if found:
            return found
    return file_elsewhere(failure)
