"""What happened -> the world's append-only log, and back: append, read, verify, export, checkpoint."""

from __future__ import annotations

import sqlite3
import time
from contextlib import contextmanager
from dataclasses import asdict
from functools import lru_cache

from skillkit.core.exceptions import AuditUnavailableError, StateUnavailableError
from skillkit.core.record.chain import (
    Checkpoint,
    Record,
    Verification,
    canonical_json,
    chained_row,
    checkpoint_from,
    exact_fields,
    export_line,
    first_link,
    record_from,
    verification_of,
)
from skillkit.core.record.log import mirror
from skillkit.core.record.shown import shown_fields, shown_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillkit.core.record.chain import JSON, Row
    from skillkit.core.state import StateStore

__all__ = ["KINDS", "AuditLog"]

KINDS = frozenset(("started", "finished", "refused"))

_BEFORE_ALL = -(2**63)
_AFTER_ALL = 2**63 - 1
_PAGE_ROWS = 500
_INSERT = "insert into audit (seq, timestamp, kind, fields, previous, hash) values (?, ?, ?, ?, ?, ?)"
_COLUMNS = "select seq, timestamp, kind, fields, previous, hash from audit"


class AuditLog:
    """The log of one world; every process that shares the world's folder appends to the same chain."""

    def __init__(self, store: StateStore) -> None:
        self._store = store
        self._last: tuple[sqlite3.Connection, int, str] | None = None

    def append(self, kind: str, fields: Mapping[str, JSON]) -> Record:
        """Write one record, masked and cut, and mirror it to logging; when this returns, it outlives the process."""
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is no kind of record; known: {', '.join(sorted(KINDS))}.")
        content = shown_fields(exact_fields(fields))
        try:
            with self._store.connection() as connection:
                content["world"] = self._store.connected_world
                text = canonical_json(content)
                row = self._continued(connection, kind, text) or self._appended(connection, kind, text)
                self._last = (connection, row[0], row[-1])
        except StateUnavailableError as error:
            raise _unavailable("written", error) from error
        record = Record(row[0], row[1], kind, content, row[4], row[-1])
        mirror(record)
        return record

    def _continued(self, connection: sqlite3.Connection, kind: str, fields: str) -> Row | None:
        """The record, written behind our own last one in one step; None when another writer came between.

        A trigger of the table refuses a number that is not the next one, so nobody can have.
        """
        if self._last is None or self._last[0] is not connection:
            return None
        row = chained_row(seq=self._last[1] + 1, timestamp=_now(), kind=kind, fields=fields, previous=self._last[2])
        try:
            rows = connection.execute(_INSERT, row).rowcount
        except sqlite3.IntegrityError:
            return None
        self._require_kept(rows)
        return row

    def _appended(self, connection: sqlite3.Connection, kind: str, fields: str) -> Row:
        """The record, written behind whatever is last, with all other writers waiting."""
        connection.execute("begin immediate")
        seq, previous = _head(connection)
        row = chained_row(seq=seq + 1, timestamp=_now(), kind=kind, fields=fields, previous=previous)
        self._require_kept(connection.execute(_INSERT, row).rowcount)
        connection.execute("commit")
        return row

    def records(
        self,
        *,
        after: int = 0,
        limit: int | None = None,
        skill: str | None = None,
        session: str | None = None,
        kind: str | None = None,
        newest_first: bool = False,
    ) -> Iterator[Record]:
        """Records that fit every filter, in order; the log may grow while they are read."""
        wanted = {"skill": skill, "session": session}
        exact = {name: shown_text(value) for name, value in wanted.items() if value is not None}
        # The text narrows the search inside SQLite; the parsed fields decide.
        hints = [canonical_json({name: value})[1:-1] for name, value in exact.items()]
        found = 0
        for row in self._rows(after=after, kind=kind, hints=hints, newest_first=newest_first):
            if found == limit:
                return
            record = record_from(row)
            if all(record.fields.get(name) == value for name, value in exact.items()):
                found += 1
                yield record

    def verify(self, *, checkpoint: Checkpoint | None = None) -> Verification:
        """Read the whole log and say whether it is as it was written, or which record is not."""
        world = self._store_world()
        with self._connection("read") as connection:
            kept = connection.execute("select value from meta where key = 'checkpoint'").fetchone()
        checkpoints = [] if checkpoint is None else [checkpoint]
        if kept is not None:
            # Whoever can edit the file can edit this too; it still shows a careless cut.
            try:
                checkpoints.append(checkpoint_from(kept[0]))
            except ValueError:
                problem = "The checkpoint that the file keeps of itself is unreadable: it was altered."
                return Verification(ok=False, count=0, head=first_link(world), problem=problem)
        return verification_of(self._rows(after=_BEFORE_ALL), world=world, checkpoints=checkpoints)

    def export(self, *, after: int = 0) -> Iterator[str]:
        """One line of JSON for each record."""
        return (export_line(record) for record in self.records(after=after))

    def checkpoint(self) -> Checkpoint:
        """Where the log ends now, to be kept where the writer cannot edit; the file keeps one too."""
        world = self._store_world()
        with self._connection("written", durable=True) as connection:
            connection.execute("begin immediate")
            seq, head = _head(connection)
            checkpoint = Checkpoint(world=world, seq=seq, hash=head, timestamp=_now())
            connection.execute(
                "insert or replace into meta (key, value) values ('checkpoint', ?)",
                (canonical_json(asdict(checkpoint)),),
            )
            connection.execute("commit")
        return checkpoint

    def _require_kept(self, rows: int) -> None:
        """A trigger that someone planted can swallow a record without an error."""
        if rows != 1:
            raise StateUnavailableError(
                f"Something in the state file {self._store.path} swallows records. "
                "Move it away and keep it as evidence."
            )

    def _store_world(self) -> str:
        with self._connection("read"):
            return self._store.world()

    def _rows(
        self, *, after: int, kind: str | None = None, hints: Sequence[str] = (), newest_first: bool = False
    ) -> Iterator[Row]:
        """Rows page by page: between pages other threads and writers have their turn."""
        conditions = [
            "seq > ?",
            *(["kind = ?"] if kind is not None else []),
            *["instr(fields, ?)"] * len(hints),
        ]
        fixed = [*([kind] if kind is not None else []), *hints]
        upper = " and seq < ?" if newest_first else ""
        order = "desc" if newest_first else "asc"
        # Only fixed words are put into the statement; every value is bound.
        statement = f"{_COLUMNS} where {' and '.join(conditions)}{upper} order by seq {order} limit {_PAGE_ROWS}"
        below = [_AFTER_ALL] if newest_first else []
        while True:
            with self._connection("read") as connection:
                page: list[Row] = connection.execute(statement, (after, *fixed, *below)).fetchall()
            yield from page
            if len(page) < _PAGE_ROWS:
                return
            if newest_first:
                below = [page[-1][0]]
            else:
                after = page[-1][0]

    @contextmanager
    def _connection(self, purpose: str, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            with self._store.connection(durable=durable) as connection:
                yield connection
        except StateUnavailableError as error:
            raise _unavailable(purpose, error) from error


def _unavailable(purpose: str, error: StateUnavailableError) -> AuditUnavailableError:
    rule = "; a run that cannot be recorded does not start" if purpose == "written" else ""
    return AuditUnavailableError(f"The audit cannot be {purpose}{rule}. {error}")


def _head(connection: sqlite3.Connection) -> tuple[int, str]:
    """The number and hash of the last record, or what stands before the first one."""
    row = connection.execute("select seq, hash from audit order by seq desc limit 1").fetchone()
    if row is not None:
        return int(row[0]), str(row[1])
    world = connection.execute("select value from meta where key = 'world'").fetchone()
    return 0, first_link(str(world[0]))


def _now() -> str:
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return f"{_second(seconds)}.{nanoseconds // 1000:06d}Z"


@lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
