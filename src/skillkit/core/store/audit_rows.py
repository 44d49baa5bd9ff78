"""The rows of the audit in the world's file: all of its SQL, so that the log itself knows records and hashes only."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple, TypeAlias

from skillkit.core.exceptions import StateUnavailableError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillkit.core.store.state import StateStore

__all__ = ["AuditRows", "Head", "Row"]

Row: TypeAlias = tuple[int, str, str, str, str, str]
"""seq, timestamp, kind, fields as canonical JSON, previous, hash: a record as it is stored."""

_AFTER_ALL = 2**63 - 1
_PAGE_ROWS = 500
_INSERT = "insert into audit (seq, timestamp, kind, fields, previous, hash) values (?, ?, ?, ?, ?, ?)"
_COLUMNS = "select seq, timestamp, kind, fields, previous, hash from audit"


class Head(NamedTuple):
    """Where the log of a world ends: the number and hash of its last record; 0 and None before the first."""

    world: str
    seq: int
    hash: str | None


class AuditRows:
    """The audit table of one world; what cannot be read or written is a StateUnavailableError."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._last: tuple[sqlite3.Connection, Head] | None = None
        """Where the log ended when we last wrote to it, and through which connection."""

    def append(self, next_row: Callable[[Head], Row]) -> Row:
        """Write the row that follows whatever is last."""
        with self._store.connection() as connection:
            row = self._follow(connection, next_row) or self._append(connection, next_row)
            self._last = connection, Head(self._store.connected_world, row[0], row[5])
        return row

    def _follow(self, connection: sqlite3.Connection, next_row: Callable[[Head], Row]) -> Row | None:
        """Behind our own last row, in one step; None when another writer came between, or the file is another one.

        A trigger of the table refuses a number that is not the next one, so nobody can have come between.
        """
        if self._last is None or self._last[0] is not connection:
            return None
        row = next_row(self._last[1])
        try:
            written = connection.execute(_INSERT, row).rowcount
        except sqlite3.IntegrityError:
            return None
        self._require_kept(written)
        return row

    def _append(self, connection: sqlite3.Connection, next_row: Callable[[Head], Row]) -> Row:
        """Behind the last row of the file, with all other writers waiting."""
        connection.execute("begin immediate")
        row = next_row(self._head(connection))
        self._require_kept(connection.execute(_INSERT, row).rowcount)
        connection.execute("commit")
        return row

    def _require_kept(self, rows: int) -> None:
        """A trigger that someone planted can swallow a record without an error."""
        if rows != 1:
            raise StateUnavailableError(
                f"Something in the state file {self._store.path} swallows records. "
                "Move it away and keep it as evidence."
            )

    def _head(self, connection: sqlite3.Connection) -> Head:
        row = connection.execute("select seq, hash from audit order by seq desc limit 1").fetchone()
        world = self._store.connected_world
        return Head(world, 0, None) if row is None else Head(world, int(row[0]), str(row[1]))

    def read(
        self, *, after: int, kind: str | None = None, holding: Sequence[str] = (), newest_first: bool = False
    ) -> Iterator[Row]:
        """Rows whose fields hold all these texts, page by page: between pages other threads and writers get a turn."""
        conditions = ["seq > ?", *(["kind = ?"] if kind is not None else []), *["instr(fields, ?)"] * len(holding)]
        fixed = [*([kind] if kind is not None else []), *holding]
        upper, order = (" and seq < ?", "desc") if newest_first else ("", "asc")
        # Only fixed words are put into the statement; every value is bound.
        statement = f"{_COLUMNS} where {' and '.join(conditions)}{upper} order by seq {order} limit {_PAGE_ROWS}"
        below = [_AFTER_ALL] if newest_first else []
        while True:
            with self._store.connection() as connection:
                page: list[Row] = connection.execute(statement, (after, *fixed, *below)).fetchall()
            yield from page
            if len(page) < _PAGE_ROWS:
                return
            if newest_first:
                below = [page[-1][0]]
            else:
                after = page[-1][0]

    def world(self) -> str:
        return self._store.world()

    def checkpoint(self) -> str | None:
        """The text that was kept last, as it is in the file now."""
        with self._store.connection() as connection:
            row = connection.execute("select value from meta where key = 'checkpoint'").fetchone()
        return None if row is None else row[0]

    def keep_checkpoint(self, text_of: Callable[[Head], str]) -> None:
        """What is to be kept of the head, written so that it survives a power cut."""
        with self._store.connection(durable=True) as connection:
            connection.execute("begin immediate")
            text = text_of(self._head(connection))
            connection.execute("insert or replace into meta (key, value) values ('checkpoint', ?)", (text,))
            connection.execute("commit")
