"""What a person gave a skill for good -> what it may use, as long as its content is the same."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skillkit.core.exceptions import ConfigurationError
from skillkit.core.paths import real_path
from skillkit.core.store.state import StateStore
from skillkit.core.values.needs import Grant
from skillkit.core.values.text import storable

__all__ = ["KeptGrant", "StandingGrants"]

# Of these a skill has one: a later one takes its place.
_SINGLE = "working_directory"

_COLUMNS = "select skill, folder, digest, name, channel, granted_at from grants"
_INSERT = "insert into grants (skill, folder, digest, kind, name, channel, granted_at) values (?, ?, ?, ?, ?, ?, ?)"
_DELETE = "delete from grants where skill = ? and folder = ? and name = ?"


@dataclass(frozen=True, slots=True)
class KeptGrant:
    """One grant, to one skill in one folder with exactly this content; once that changes it is only remembered."""

    skill: str
    folder: str
    """Its real path, by whatever links it was reached."""
    digest: str
    grant: Grant
    channel: str
    granted_at: float


class StandingGrants:
    """The grants of one world. Those that only look make no file."""

    def __init__(self, store: StateStore) -> None:
        self._store = store

    def give(
        self, grants: Collection[Grant], *, skill: str, folder: str | Path, digest: str, channel: str
    ) -> list[KeptGrant]:
        """Beside what this content has; what other content of the skill had is forgotten."""
        name, place, now = storable(skill), storable(real_path(folder)), time.time()
        given = [KeptGrant(name, place, digest, grant, channel, now) for grant in dict.fromkeys(grants)]
        if sum(grant.kind == _SINGLE for grant in dict.fromkeys(grants)) > 1:
            raise ConfigurationError("A skill has one working directory. Grant one of: skill, workspace, auto.")
        with self._store.transaction() as connection:
            kept = (name, place)
            connection.execute("delete from grants where skill = ? and folder = ? and digest <> ?", (*kept, digest))
            for each in given:
                kind, text = each.grant.kind, storable(each.grant.id)
                if kind == _SINGLE:
                    connection.execute("delete from grants where skill = ? and folder = ? and kind = ?", (*kept, kind))
                connection.execute(_DELETE, (*kept, text))
                connection.execute(_INSERT, (*kept, digest, kind, text, channel, now))
        return given

    def of(self, skill: str, folder: str | Path) -> list[KeptGrant]:
        """All that is kept about the skill in this folder, of whichever content."""
        return self._find("where skill = ? and folder = ? order by seq", storable(skill), storable(real_path(folder)))

    def all(self) -> list[KeptGrant]:
        """By name, folder, then in the order in which they were given."""
        return self._find("order by skill, folder, seq")

    def remove(
        self, skill: str, grants: Iterable[Grant] | None = None, *, folder: str | Path | None = None
    ) -> list[KeptGrant]:
        """What it does not have any more; without grants all, without a folder wherever the skill was."""
        wanted = None if grants is None else {*grants}
        place = None if folder is None else storable(real_path(folder))
        found = self._find("where skill = ? order by seq", storable(skill))
        gone = [each for each in found if place in (None, each.folder) and (wanted is None or each.grant in wanted)]
        if gone:
            with self._store.transaction() as connection:
                connection.executemany(_DELETE, [(each.skill, each.folder, storable(each.grant.id)) for each in gone])
        return gone

    def _find(self, which: str, *values: str) -> list[KeptGrant]:
        if not self._store.path.exists():
            return []
        with self._store.connection() as connection:
            rows = connection.execute(f"{_COLUMNS} {which}", values).fetchall()
        return [kept for row in rows if (kept := _kept_from(row)) is not None]


def _kept_from(values: tuple[Any, ...]) -> KeptGrant | None:
    """None for what this version does not know: it grants nothing."""
    skill, folder, digest, name, channel, granted_at = values
    try:
        return KeptGrant(skill, folder, digest, Grant.from_id(name), channel, granted_at)
    except ConfigurationError:
        return None
