"""Ends of runs that cannot be recorded now -> files of this machine, and back when the database is there again."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from skillkit.core.paths import require_own_folder
from skillkit.core.paths.files import Folder

__all__ = ["Kept", "Spool"]


class Kept(NamedTuple):
    """One end, by the name under which the run was claimed."""

    run: str
    worker: str
    state: str
    fields: dict[str, Any]
    result: str


class Spool:
    """A file for each end; what is in it was masked before."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, run: str, worker: str, state: str, fields: Mapping[str, Any], result: str) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_own_folder(self.folder)
        text = json.dumps(Kept(run, worker, state, dict(fields), result)._asdict(), default=str)
        with Folder.of(self.folder) as folder:
            folder.replace(f"{run}.json", text.encode(), 0o600)

    def all(self) -> Iterator[Kept]:
        """The oldest first; what cannot be read stays for a person to look at."""
        if not os.path.isdir(self.folder):
            return
        for path in sorted(self.folder.glob("*.json"), key=os.path.getmtime):
            try:
                yield Kept(**json.loads(path.read_bytes()))
            except (ValueError, TypeError, OSError):
                continue

    def drop(self, run: str) -> None:
        (self.folder / f"{run}.json").unlink(missing_ok=True)
