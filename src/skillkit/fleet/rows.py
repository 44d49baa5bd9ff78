"""Runs elsewhere, as rows of the shared world: each step of one is one call of the database's own functions."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

from skillkit.core.exceptions import ConfigurationError, ScriptRefusedError, StateUnavailableError
from skillkit.core.record.fields import shown_fields
from skillkit.core.store.base import Connection, Store
from skillkit.core.store.shared.postgres import SharedStore
from skillkit.core.values.questions import OptionAnswer
from skillkit.core.values.records import JSON, canonical_json, exact_fields
from skillkit.fleet.orders import Order, id_of

__all__ = ["OVER", "Answered", "Row", "Rows", "patiently", "shared"]

OVER = frozenset(("finished", "refused", "lost", "cancelled", "expired"))
OUTAGE_SECONDS = 20.0
RETRY_SECONDS = 0.25
_COLUMNS = (
    "select id::text, order_id, content, session, queue, state, started_seq, finished_seq, result, is_streamed, "
    "is_cancelled from"
)

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Row:
    """One run, as the database has it."""

    id: str
    order_id: str
    content: str
    session: str
    queue: str
    state: str
    started_seq: int | None
    finished_seq: int | None
    result: str | None
    is_streamed: bool
    is_cancelled: bool

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    def order(self) -> Order:
        if id_of(self.content) != self.order_id:
            raise ScriptRefusedError.because("The order is not the one that its id names", "Run it again.")
        return Order.from_text(self.content)


class Answered(NamedTuple):
    """A person's answer to the question about an order, not used by any run yet."""

    seq: int
    answer: OptionAnswer
    ticks: tuple[str, ...]


def shared(store: Store) -> SharedStore:
    if not isinstance(store, SharedStore):
        raise ConfigurationError(
            "Runs on workers need a shared world. Name one: SkillManager(state='postgresql://host/db?world=NAME')."
        )
    return store


def patiently(act: Callable[[], Result], seconds: float = OUTAGE_SECONDS) -> Result:
    """Again and again while the database is away; each act may be done twice, and is the same then."""
    until = time.monotonic() + seconds
    while True:
        try:
            return act()
        except StateUnavailableError:
            if time.monotonic() >= until:
                raise
            time.sleep(RETRY_SECONDS)


class Rows:
    """The runs of one world, by this login's rights."""

    def __init__(self, store: SharedStore) -> None:
        self.store = store

    def record_text(self, fields: Mapping[str, Any]) -> str:
        """The fields of a record as the chain has them: masked, cut, with world and login."""
        with self.store.connection():
            content: dict[str, JSON] = shown_fields(exact_fields(fields))
            content["world"], content["login"] = self.store.connected_world, self.store.login
        return canonical_json(content)

    def _one(self, sql: str, *values: object) -> Any:  # noqa: ANN401 - a row has what was asked for
        with self.store.connection() as connection:
            return connection.execute(sql, values).fetchone()

    def _all(self, sql: str, *values: object) -> list[Any]:
        with self.store.connection() as connection:
            return connection.execute(sql, values).fetchall()

    # What a front does.

    def order(
        self, run: str, order: Order, queue: str, *, waiting: float, patience: float, needs_answer: bool, streams: bool
    ) -> tuple[str, list[str]]:
        text = order.to_text()
        said, missing = self._one(
            "select said, missing from order_run(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            *(UUID(run), id_of(text), text, order.digest, queue, list(order.blobs)),
            *(float(waiting), float(patience), needs_answer, streams),
        )
        return said, list(missing or ())

    def queue(self, run: str) -> bool:
        return bool(self._one("select queue_run(?)", UUID(run))[0])

    def cancel(self, run: str) -> str | None:
        state: str | None = self._one("select cancel_run(?)", UUID(run))[0]
        return state

    def record_end(self, run: str, fields: Mapping[str, Any]) -> int | None:
        number: int | None = self._one("select record_end(?, ?)", UUID(run), self.record_text(fields))[0]
        return number

    # What anybody may look at.

    def find(self, run: str) -> Row | None:
        try:
            found = self._one(f"{_COLUMNS} runs where id = ?", UUID(run))
        except ValueError:
            return None
        return None if found is None else Row(*found)

    def order_with(self, digest: str) -> Order | None:
        """Of the newest run with a skill of this content."""
        found = self._one("select content from runs where digest = ? order by created_at desc limit 1", digest)
        return None if found is None else Order.from_text(found[0])

    def states(self, runs: Iterable[str], connection: Connection) -> dict[str, str]:
        found = connection.execute("select id::text, state from runs where id = any(?)", ([*map(UUID, runs)],))
        return dict(found.fetchall())

    def output(self, run: str, after: int) -> list[tuple[int, str, bytes]]:
        found = self._all("select n, stream, data from output where run = ? and n > ? order by n", UUID(run), after)
        return [(n, stream, bytes(data)) for n, stream, data in found]

    def blob(self, digest: str) -> bytes | None:
        """Whose bytes are what it is called by; the database sees to that, and so do we."""
        found = self._one("select content from blobs where digest = ?", digest)
        if found is None:
            return None
        content = bytes(found[0])
        if id_of_bytes(content) != digest:
            raise ScriptRefusedError.because("The shared world gave other bytes than were asked for", "Look who did.")
        return content

    def ship(self, content: bytes) -> str:
        digest = id_of_bytes(content)
        with self.store.connection() as connection:
            connection.execute(
                "insert into blobs (digest, size, content) values (?, ?, ?) on conflict do nothing",
                (digest, len(content), content),
            )
        return digest

    # What a worker does.

    def claim(self, run: str, worker: str, seconds: float) -> Row | None:
        found = self._one(f"{_COLUMNS} claim_run(?, ?, ?)", UUID(run), worker, seconds)
        return None if found is None else Row(*found)

    def answered(self, order_id: str, run: str | None = None) -> Answered | None:
        """To who ordered the run, without one to us: others may ask under any id, and their answers are their own."""
        found = self._one(
            "select seq, option_id, channel, answered_at, grants, reason from requests "
            "where id = ? and login = coalesce((select login from runs where id = ?), session_user::text) "
            "and state = 'answered' and spent_by is null order by seq desc limit 1",
            order_id,
            None if run is None else UUID(run),
        )
        if found is None:
            return None
        seq, option, channel, answered_at, grants, reason = found
        ticks = tuple(json.loads(grants))
        return Answered(seq, OptionAnswer(option, channel, answered_at, order_id, ticks, reason), ticks)

    def start(self, run: str, worker: str, fields: Mapping[str, Any], answered: int | None) -> int | None:
        with self.store.connection():
            given = (UUID(run), worker, self.record_text(fields), answered)
            number: int | None = self._one("select start_run(?, ?, ?, ?)", *given)[0]
        return number

    def finish(self, run: str, worker: str, state: str, fields: Mapping[str, Any], result: str) -> int | None:
        with self.store.connection():
            given = (UUID(run), worker, state, self.record_text(fields), result)
            number: int | None = self._one("select finish_run(?, ?, ?, ?, ?)", *given)[0]
        return number

    def unpublish(self, run: str) -> None:
        self._one("select unpublish_run(?)", UUID(run))

    def to_publish(self, run: str | None, again: float, most: int = 100) -> list[tuple[str, str]]:
        wanted = None if run is None else UUID(run)
        return self._all("select run::text, in_queue from runs_to_publish(?, ?, ?)", wanted, float(again), most)

    def add_output(self, run: str, chunks: Iterable[tuple[int, str, bytes]]) -> None:
        with self.store.connection() as connection:
            connection.executemany(
                "insert into output (run, n, stream, data) values (?, ?, ?, ?) on conflict do nothing",
                [(UUID(run), *chunk) for chunk in chunks],
            )


def id_of_bytes(content: bytes) -> str:
    from hashlib import sha256

    return sha256(content).hexdigest()
