"""An address such as `postgresql://host/db?world=acme` -> the world that many machines share.

Theory of operation. A world is a schema; `postgres.sql` holds its tables, its one function that appends to the audit,
and what each role may do. Every process has one pool of connections for each address, whichever stores use it; a
thread that has a connection keeps it for all it does inside. A transaction takes the world's lock, so that all other
writers wait, as they do with a file. Time is the database's: what sleeps here goes by this machine's clock, but
whether a lease or a question is over is judged by the one clock that all machines see. Nothing is made by looking:
`make_world` (`skillkit fleet init`) makes the schema and its roles, and brings an older one up to date.
"""

from __future__ import annotations

import os
import platform
import re
import select
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillkit.core.exceptions import ConfigurationError, StateUnavailableError
from skillkit.core.store.base import ChangeMark, Cursor, Head, Moment, Row, boot_id
from skillkit.core.store.shared.addresses import WorldAddress
from skillkit.core.store.shared.notices import Notices
from skillkit.core.store.state import StateStore

if TYPE_CHECKING:
    import psycopg
    from psycopg_pool import ConnectionPool

__all__ = ["ROLES", "SharedStore", "WorldAddress", "connect", "make_world", "set_limits"]

ROLES = ("worker", "front", "approver")
DATABASE_CLOCK = "database"
CONNECT_SECONDS = 5
WAIT_SECONDS = 30.0
"""For a connection of the pool, which many threads of a process may want at once."""
MOST_CONNECTIONS = 8

_MARKED = re.compile(r"^-- version \d+$", re.MULTILINE)
_VERSION = "select key, value from meta where key in ('world', 'version')"
_LOCK = "select pg_advisory_xact_lock(hashtext('skillkit ' || current_schema()), 2)"
_APPEND = "select seq, moment, previous, hash from append(?, ?)"
_MISSING = ("42P01", "3F000")  # no such table, no such schema
_FORBIDDEN = "42501"
_LOCKED = "55P03"


@cache
def _statement(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


class _Connection:
    """What the statements of this folder need, over psycopg's connection."""

    total_changes = 0
    """Nobody has to scrub a file."""

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw

    @property
    def in_transaction(self) -> bool:
        return bool(self.raw.info.transaction_status.name != "IDLE")

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Cursor:
        cursor: Cursor = self.raw.execute(_statement(sql), parameters)  # ours, with values bound
        return cursor

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Cursor:
        cursor = self.raw.cursor()
        cursor.executemany(_statement(sql), list(parameters))
        done: Cursor = cursor
        return done


class SharedStore:
    """One world of many machines; each machine has a state folder of its own beside it."""

    is_shared = True

    def __init__(self, address: WorldAddress, folder: str | Path) -> None:
        self.address = address
        self.local = StateStore(folder)
        self.folder = self.local.folder
        self._held = threading.local()
        self._pools: dict[int, tuple[ConnectionPool[Any], weakref.finalize[..., SharedStore]]] = {}
        self._lock = threading.Lock()
        self._world = self.login = ""

    def __repr__(self) -> str:
        return f"SharedStore({self.place!r})"

    @property
    def place(self) -> str:
        return self.address.shown

    @property
    def connected_world(self) -> str:
        return self._world

    def exists(self) -> bool:
        return True

    def world(self) -> str:
        """As the database says now: who verifies must not believe what was read before."""
        with self.connection() as connection:
            return str(connection.execute("select value from meta where key = 'world'").fetchone()[0])

    @contextmanager
    def connection(self) -> Iterator[_Connection]:
        held: _Connection | None = getattr(self._held, "connection", None)
        if held is not None:
            yield held
            return
        with self._available(), self._pool().connection(timeout=WAIT_SECONDS) as raw:
            connection = self._held.connection = _Connection(raw)
            try:
                self._require_world(connection)
                yield connection
            finally:
                self._held.connection = None
                if not raw.closed and connection.in_transaction:
                    raw.rollback()

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[_Connection]:  # noqa: ARG002 - here every commit is
        with self.connection() as connection:
            if connection.in_transaction:
                yield connection
                return
            connection.execute("begin")
            connection.execute(_LOCK)
            yield connection
            if connection.in_transaction:
                connection.execute("commit")

    def now(self) -> Moment:
        with self.connection() as connection:
            seconds = float(connection.execute("select seconds_now()").fetchone()[0])
        return Moment(DATABASE_CLOCK, seconds, seconds, boot_id() or platform.node())

    def change_mark(self) -> ChangeMark:
        """What a reader of this moment would see changes with every commit."""
        with self.connection() as connection:
            return (str(connection.execute("select pg_current_snapshot()::text").fetchone()[0]),)

    def append(self, next_row: Callable[[Head], Row]) -> Row:
        """The server numbers it, says when, and puts it behind the last one."""
        with self.connection() as connection:
            _, _, kind, fields, _, _ = next_row(Head(self._world, 0, None, self.login))
            seq, moment, previous, digest = connection.execute(_APPEND, (kind, fields)).fetchone()
        return int(seq), moment, kind, fields, previous, digest

    def hear(self, wake: Callable[[], None]) -> Notices:
        channel = f"skillkit_{self.address.world}_answers"

        def say(word: str) -> None:
            with self.connection() as connection:
                connection.execute("select pg_notify(?, ?)", (channel, word))

        return Notices(channel, connect=lambda: connect(self.address), say=say, wake=wake)

    def scrub(self) -> None:
        """The database's own vacuum does it."""

    def close(self) -> None:
        with self._lock:
            _, let_go = self._pools.pop(os.getpid(), (None, None))
        if let_go is not None:
            let_go()
        self.local.close()

    def _pool(self) -> ConnectionPool[Any]:
        process = os.getpid()
        with self._lock:
            if process not in self._pools:
                pool = _POOLS.of(self.address)
                self._pools[process] = pool, weakref.finalize(self, _POOLS.let_go, process, self.address)
            return self._pools[process][0]

    def _require_world(self, connection: _Connection) -> None:
        """Once for each store: a world that is there, and of a version that this one knows."""
        if self._world:
            return
        found = dict(connection.execute(_VERSION).fetchall())
        _require_version(self.address, int(found["version"]))
        self.login = str(connection.execute("select session_user").fetchone()[0])
        self._world = str(found["world"])

    @contextmanager
    def _available(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise _unavailable(self.address, error) from error


class _Pools:
    """One pool for each address in this process, as long as a store uses it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[int, WorldAddress], tuple[ConnectionPool[Any], int]] = {}
        self._left: deque[tuple[int, WorldAddress]] = deque()

    def of(self, address: WorldAddress) -> ConnectionPool[Any]:
        key = (os.getpid(), address)
        with self._lock:
            pool, users = self._open.get(key) or (_new_pool(address), 0)
            self._open[key] = pool, users + 1
        self._settle()
        return pool

    def let_go(self, process: int, address: WorldAddress) -> None:
        if process == os.getpid():
            self._left.append((process, address))
            self._settle()

    def _settle(self) -> None:
        """Whoever has the lock does it when they are done; the collector may call us while this thread has it."""
        while self._left and self._lock.acquire(blocking=False):
            try:
                unused = self._release(self._left.popleft()) if self._left else None
            finally:
                self._lock.release()
            if unused:
                unused.close()

    def _release(self, key: tuple[int, WorldAddress]) -> ConnectionPool[Any] | None:
        """The pool, where this was its last user."""
        pool, users = self._open.pop(key)
        if users > 1:
            self._open[key] = pool, users - 1
            return None
        return pool

    def forget_lock(self) -> None:
        """In a child of a fork: the parent's connections are kept, never closed, since they are the parent's."""
        self._lock = threading.Lock()
        self._left.clear()


_POOLS = _Pools()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOLS.forget_lock)


def _new_pool(address: WorldAddress) -> ConnectionPool[Any]:
    connect(address).close()  # says at once, and plainly, what is wrong
    from psycopg_pool import ConnectionPool

    settings = {"autocommit": True, "options": _options(address)}
    return ConnectionPool(
        address.conninfo,
        kwargs=settings,
        min_size=0,
        max_size=MOST_CONNECTIONS,
        num_workers=1,
        open=True,
        check=_require_alive,
        name="skillkit",
    )


def _require_alive(connection: psycopg.Connection[Any]) -> None:
    """Asks the server only where it said something unasked, as it does before it goes: to ask is a round trip."""
    from psycopg_pool import ConnectionPool

    if hasattr(select, "poll"):
        waiting = select.poll()
        waiting.register(connection.fileno(), select.POLLIN)
        if not waiting.poll(0):
            return
    ConnectionPool.check_connection(connection)


def connect(address: WorldAddress) -> psycopg.Connection[Any]:
    try:
        import psycopg
    except ImportError as error:
        raise ConfigurationError(
            "A shared state needs the extra 'postgres': pip install 'skillkit-runtime[postgres]'."
        ) from error
    return psycopg.connect(
        address.conninfo, autocommit=True, connect_timeout=CONNECT_SECONDS, options=_options(address)
    )


def _options(address: WorldAddress) -> str:
    """What was removed must not come back after a crash, so a commit waits for the disk whatever the database says."""
    settings = {"search_path": address.world, "lock_timeout": "20s", "synchronous_commit": "on", "timezone": "UTC"}
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


def _unavailable(address: WorldAddress, error: psycopg.Error) -> StateUnavailableError:
    said = str(error).strip().splitlines() or ["no reason given"]
    if error.sqlstate in _MISSING:
        what, remedy = "is not there", "Make it with 'skillkit fleet init', or name another world"
    elif error.sqlstate == _FORBIDDEN:
        what, remedy = "does not let this login do that", "Use a login with the role that may; 'fleet init' lists them"
    elif error.sqlstate == _LOCKED:
        what, remedy = "is locked by another for long", "Wait for it, or look at what holds it in pg_stat_activity"
    else:
        what, remedy = "cannot be used", "Check that the database runs and lets this login in"
    return StateUnavailableError(f"The shared world {address.shown} {what} ({said[0]}). {remedy}.")


def _require_version(address: WorldAddress, version: int) -> None:
    if version > len(_migrations()):
        raise StateUnavailableError(
            f"The shared world {address.shown} was made by a newer skillkit (version {version}, known "
            f"{len(_migrations())}). Use that version."
        )
    if version < len(_migrations()):
        raise StateUnavailableError(
            f"The shared world {address.shown} is of an older skillkit (version {version}, needed "
            f"{len(_migrations())}). Let its owner run 'skillkit fleet init', which brings it up to date."
        )


@cache
def _migrations() -> tuple[str, ...]:
    text = files("skillkit.core.store.shared").joinpath("postgres.sql").read_text(encoding="utf-8")
    return tuple(_MARKED.split(text)[1:])


def make_world(address: WorldAddress) -> int:
    """Makes schema and roles where they are missing, and brings an older world up to date; gives its version before."""
    import psycopg
    from psycopg import sql

    names = {"world": address.world, **{role: address.role(role) for role in ROLES}}
    try:
        with connect(address) as connection, connection.transaction():
            connection.execute("select pg_advisory_xact_lock(hashtext(%s), 0)", (f"skillkit {address.world}",))
            for role in ROLES:
                _make_role(connection, address.role(role))
            name = sql.Identifier(address.world)
            connection.execute(sql.SQL("create schema if not exists {}").format(name))
            version = _version_in(connection)
            _require_known(address, version)
            for statements in _migrations()[version:]:
                connection.execute(_filled(statements, names, connection))
            connection.execute(
                "insert into meta (key, value) values ('version', %s) "
                "on conflict (key) do update set value = excluded.value",
                (str(len(_migrations())),),
            )
            return version
    except psycopg.Error as error:
        raise _unavailable(address, error) from error


def set_limits(address: WorldAddress, limits: Mapping[str, int]) -> None:
    """How many runs of the world go on and wait at most; its owner says so."""
    with connect(address) as connection:
        for name, number in limits.items():
            connection.execute(
                "insert into meta (key, value) values (%s, %s) on conflict (key) do update set value = excluded.value",
                (name, str(number)),
            )


def _require_known(address: WorldAddress, version: int) -> None:
    if version > len(_migrations()):
        _require_version(address, version)


def _make_role(connection: psycopg.Connection[Any], name: str) -> None:
    from psycopg import sql

    if connection.execute("select 1 from pg_roles where rolname = %s", (name,)).fetchone() is None:
        connection.execute(sql.SQL("create role {} nologin").format(sql.Identifier(name)))


def _version_in(connection: psycopg.Connection[Any]) -> int:
    found = connection.execute("select to_regclass('meta')").fetchone()
    if found is None or found[0] is None:
        return 0
    row = connection.execute("select value from meta where key = 'version'").fetchone()
    return 0 if row is None else int(row[0])


def _filled(statements: str, names: dict[str, str], connection: psycopg.Connection[Any]) -> str:
    from psycopg import sql

    for name, value in names.items():
        statements = statements.replace(f"@{name}@", sql.Identifier(value).as_string(connection))
        statements = statements.replace(f"@{name}_text@", sql.Literal(value).as_string(connection))
    return statements
