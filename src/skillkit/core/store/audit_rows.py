"""The rows of the audit: its SQL but for the append, so that the log itself knows records and hashes only."""

from __future__ import annotations

from skillkit.core.store.base import Connection, Head, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillkit.core.store.base import Store

__all__ = ["AuditRows"]

_AFTER_ALL = 2**63 - 1
_PAGE_ROWS = 500
_KEEP = """insert into meta (key, value) values ('checkpoint', ?)
    on conflict (key) do update set value = excluded.value"""
_COLUMNS = "select seq, timestamp, kind, fields, previous, hash from audit"


class AuditRows:
    """The audit table of one world; what cannot be read or written is a StateUnavailableError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def _head(self, connection: Connection) -> Head:
        row = connection.execute("select seq, hash from audit order by seq desc limit 1").fetchone()
        world = self._store.connected_world
        return Head(world, 0, None) if row is None else Head(world, int(row[0]), str(row[1]))

    def read(
        self, *, after: int, kind: str | None = None, holding: Sequence[str] = (), newest_first: bool = False
    ) -> Iterator[Row]:
        """Rows whose fields hold all these texts, page by page: between pages other threads and writers get a turn."""
        conditions = ["seq > ?", *(["kind = ?"] if kind is not None else []), *["instr(fields, ?) > 0"] * len(holding)]
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
        with self._store.transaction(durable=True) as connection:
            connection.execute(_KEEP, (text_of(self._head(connection)),))
