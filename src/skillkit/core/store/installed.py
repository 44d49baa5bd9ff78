"""What skillkit put into folders of skills -> whether it is still that, and whose signature it had."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from skillkit.core.paths import real_path
from skillkit.core.store.state import StateStore
from skillkit.core.values.text import storable

__all__ = ["Installed", "InstalledSkills"]

_COLUMNS = "select folder, skill, digest, signer, key, signed_at, signed from installed"


class Installed(NamedTuple):
    """One folder; the digest is empty where the skill was removed, the key where nobody had signed it."""

    folder: str
    skill: str
    digest: str
    signer: str = ""
    key: str = ""
    signed_at: int = 0
    signed: str = ""
    """The digest that the signature was checked against."""


class InstalledSkills:
    """Of one world, by the real path of each skill's folder."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    def of(self, folder: str | Path) -> Installed | None:
        """Looking makes no file."""
        if not self._store.path.exists():
            return None
        with self._store.connection() as connection:
            place = (storable(real_path(folder)),)
            row = connection.execute(f"{_COLUMNS} where folder = ?", place).fetchone()
        return None if row is None else Installed(*row)

    def signer_of(self, folder: str | Path, digest: str) -> str:
        """Who signed exactly this content, when it was checked last; empty for nobody, or for other content."""
        known = self.of(folder)
        return (known.signer or known.key) if known is not None and known.signed == digest else ""

    def keep(self, rows: Iterable[Installed]) -> None:
        """In the place of what was known of each folder."""
        kept = [row._replace(folder=storable(real_path(row.folder)), skill=storable(row.skill)) for row in rows]
        with self._store.transaction() as connection:
            connection.executemany("insert or replace into installed values (?, ?, ?, ?, ?, ?, ?)", kept)
