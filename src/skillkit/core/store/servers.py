"""MCP servers that run in a world -> notes of who started them, for who must not answer their questions by itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from skillkit.core.paths import is_own_state, require_own_folder
from skillkit.core.store.processes import Mark, is_running, own_mark, starter_mark

__all__ = ["live_starters", "noted_server"]

FOLDER = "servers"
LONGEST_MARK = 100


@contextmanager
def noted_server(state_folder: Path) -> Iterator[None]:
    """For as long as it serves; notes of servers that were killed go when the next one starts."""
    own, starter, folder = own_mark(), starter_mark(), state_folder / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    require_own_folder(state_folder, may_be_link=True)
    require_own_folder(folder)
    for note in folder.iterdir():
        if not is_running(note.name):
            note.unlink(missing_ok=True)
    path = folder / own
    path.write_text(starter, encoding="ascii")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def live_starters(state_folder: Path) -> frozenset[Mark]:
    """The processes that started a server which still runs."""
    folder, found = state_folder / FOLDER, set[Mark]()
    if not is_own_state(state_folder, folder):
        return frozenset()
    with suppress(FileNotFoundError, NotADirectoryError):
        for note in folder.iterdir():
            if is_running(note.name):
                with suppress(OSError, ValueError), note.open(encoding="ascii") as file:
                    found.add(file.read(LONGEST_MARK))
    return frozenset(found - {""})
