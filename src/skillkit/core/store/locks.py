"""A skill's name and content -> the locks of packages that a person approved for it, in a world of many machines.

One machine keeps this beside what it built (`environments`). In a shared world the lock is there for all machines, and
the database lets approvers alone put one there: fronts order by its digest, and workers build from it.
"""

from __future__ import annotations

from collections.abc import Mapping

from skillkit.core.store.base import Store
from skillkit.core.values.text import storable

__all__ = ["ApprovedLocks"]

_DIGEST = "encode(sha256(convert_to(lock, 'UTF8')), 'hex')"
_OF = "from locks where skill = ? and digest = ? order by kind"


class ApprovedLocks:
    """Of one shared world; each is the text of a lock, by the kind of its packages."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of(self, skill: str, digest: str) -> dict[str, str]:
        with self._store.connection() as connection:
            return dict(connection.execute(f"select kind, lock {_OF}", (storable(skill), digest)).fetchall())

    def digests(self, skill: str, digest: str) -> dict[str, str]:
        """Of the locks, in their place: most runs need no more."""
        with self._store.connection() as connection:
            return dict(connection.execute(f"select kind, {_DIGEST} {_OF}", (storable(skill), digest)).fetchall())

    def may_keep(self) -> bool:
        """Whether this login has the role of approvers."""
        with self._store.connection() as connection:
            found = connection.execute("select has_any_column_privilege('locks', 'insert')").fetchone()
        return bool(found[0])

    def keep(self, skill: str, digest: str, locks: Mapping[str, str], channel: str) -> None:
        """In the place of what was approved for this content before."""
        name = storable(skill)
        with self._store.transaction() as connection:
            connection.execute("delete from locks where skill = ? and digest = ?", (name, digest))
            connection.executemany(
                "insert into locks (skill, digest, kind, lock, channel) values (?, ?, ?, ?, ?)",
                [(name, digest, kind, lock, channel) for kind, lock in locks.items()],
            )

    def forget(self, skill: str) -> int:
        """Of whichever content; how many went."""
        with self._store.transaction() as connection:
            gone = connection.execute("delete from locks where skill = ? returning kind", (storable(skill),)).fetchall()
        return len(gone)
