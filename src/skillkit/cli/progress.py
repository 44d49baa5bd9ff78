"""A walk over folders -> a moving bar on the terminal, once there is much to look through."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

__all__ = ["folder_progress"]

MANY_FOLDERS = 2_000


@contextmanager
def folder_progress() -> Iterator[Callable[[int], None] | None]:
    """Gives a callback for the number of folders seen so far; None when nobody would see a bar."""
    if not sys.stderr.isatty():
        yield None
        return
    with ExitStack() as stack:
        show: Callable[[int], None] | None = None

        def report(folders: int) -> None:
            nonlocal show
            if show is None and folders >= MANY_FOLDERS:
                show = started_bar(stack)
            if show is not None:
                show(folders)

        yield report


def started_bar(stack: ExitStack) -> Callable[[int], None]:
    """The total is not known, so the bar only moves; it vanishes when the walk is over."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("Looking for skills"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:,} folders"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = stack.enter_context(bar).add_task("walk", total=None)
    return lambda folders: bar.update(task, completed=folders)
