"""A state folder -> the world's one SQLite file, open and up to date; nothing more."""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
import time
import weakref
from contextlib import contextmanager, suppress
from pathlib import Path

from skillkit.core.exceptions import ConfigurationError, StateUnavailableError
from skillkit.core.paths import require_own_file, require_own_folder
from skillkit.core.store.base import ChangeMark, Head, Moment, Row, moment_now
from skillkit.core.store.schema import MIGRATIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["BUSY_TIMEOUT_SECONDS", "FILE_NAME", "MIGRATIONS", "STATE_VARIABLE", "StateStore", "state_folder"]

STATE_VARIABLE = "SKILLKIT_STATE_DIR"
FILE_NAME = "state.sqlite3"
BUSY_TIMEOUT_SECONDS = 5.0

# Files that SQLite keeps beside its own.
_BESIDE = ("-wal", "-shm", "-journal")
_SCRUB_MILLISECONDS = 250
_SWITCH_PAUSE_SECONDS = 0.005
_PRIMARY_CODE = 0xFF
# What happened and what to do, by SQLite's primary result code.
_FAULTS = {
    sqlite3.SQLITE_BUSY: ("is locked by another process", "Wait for that process or end it"),
    sqlite3.SQLITE_LOCKED: ("is locked by another connection", "Close the program that holds it"),
    sqlite3.SQLITE_FULL: ("cannot grow: the disk is full", "Free some space"),
    sqlite3.SQLITE_READONLY: ("is read-only", "Make file and folder writable for this user"),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "Make file and folder readable and writable for this user"),
    sqlite3.SQLITE_IOERR: ("cannot be read or written by the system", "Check the disk and its free space"),
    sqlite3.SQLITE_CORRUPT: ("is damaged", "Move it away and keep it as evidence; a new one is made"),
    sqlite3.SQLITE_NOTADB: ("is not a SQLite file", "Move it away; a new one is made"),
}
_UNEXPECTED = ("does not look as skillkit made it", "Move it away and keep it as evidence; a new one is made")
_NEWER = ("was made by a newer skillkit", "Use that version")
_APPEND = "insert into audit (seq, timestamp, kind, fields, previous, hash) values (?, ?, ?, ?, ?, ?)"
# Mistakes in a caller's statement are not the state's unavailability.
_CALLER_FAULTS = (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.DataError)


class _NewerError(sqlite3.DatabaseError):
    """A file that only a later version can read."""


def state_folder(state_dir: str | Path | None = None) -> Path:
    """The folder that makes a world: as given, else `$SKILLKIT_STATE_DIR`, else the platform's."""
    chosen = state_dir or os.environ.get(STATE_VARIABLE)
    if not chosen:
        # Most callers name a folder and need not pay for this import.
        import platformdirs

        chosen = platformdirs.user_state_dir("skillkit", appauthor=False)
    return _usable_folder(chosen)


def _usable_folder(folder: str | Path) -> Path:
    """Absolute, and with a name that the system can be told."""
    try:
        absolute = Path(folder).expanduser().absolute()
        is_usable = b"\0" not in os.fsencode(absolute)
    except (OSError, RuntimeError, ValueError) as error:  # `~nobody`; no current folder; half a character
        raise ConfigurationError(f"The state folder {str(folder)!r} cannot be used: {error}. Name another.") from error
    if not is_usable:
        raise ConfigurationError(f"The state folder {str(folder)!r} cannot be used: it holds a NUL. Name another.")
    return absolute


class StateStore:
    """One connection per process to a world's file, made at first use and shared by all threads."""

    is_shared = False

    def __init__(self, folder: str | Path, *, busy_timeout: float = BUSY_TIMEOUT_SECONDS) -> None:
        self.folder = _usable_folder(folder)
        self.path = self.folder / FILE_NAME
        self._file_name = str(self.path)
        self._busy_timeout = busy_timeout
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._let_go: weakref.finalize[[sqlite3.Connection, int], StateStore] | None = None
        self._identity: tuple[int, int, int] | None = None
        self._connections = 0
        self._durable = False
        self._world = ""
        self._last: tuple[sqlite3.Connection, Head] | None = None
        """Where the log ended when we last wrote to it, and through which connection."""

    @property
    def place(self) -> str:
        return self._file_name

    @property
    def local(self) -> StateStore:
        return self

    def exists(self) -> bool:
        """Whether there is a file; where nobody can tell, an error: silence would read as an empty world."""
        try:
            os.stat(self._file_name)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise self._unavailable(error) from error
        return True

    def now(self) -> Moment:
        return moment_now()

    def world(self) -> str:
        """The random id this world was given when its file was made."""
        with self.connection():
            return self.connected_world

    @property
    def connected_world(self) -> str:
        """The same for who has the connection."""
        return self._world

    @contextmanager
    def connection(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """The connection, for this thread alone; what is not committed at the end is rolled back.

        `durable` makes commits survive a power cut, which costs milliseconds. The caller begins and commits.
        """
        # A generator gives the lock back wherever an interrupt strikes; a class with __exit__ does not.
        with self._lock:
            connection = self._ready(durable)
            try:
                yield connection
            except _CALLER_FAULTS:
                raise
            except sqlite3.Error as error:
                self._roll_back(connection)
                raise self._unavailable(error) from error
            finally:
                if connection.in_transaction:
                    self._roll_back(connection)

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """The same with all other writers waiting; committed at the end, unless something was raised."""
        with self.connection(durable=durable) as connection:
            connection.execute("begin immediate")
            yield connection
            if connection.in_transaction:
                connection.execute("commit")

    def change_mark(self) -> ChangeMark:
        """Another value after every commit to the file, whoever made it; reads no table, and makes no file."""
        if not self.exists():
            return 0, 0, 0
        with self.connection() as connection:
            version = connection.execute("pragma data_version").fetchone()[0]
            # Counts of two connections cannot be compared.
            return self._connections, version, connection.total_changes

    def hear(self, wake: Callable[[], None]) -> None:
        """A file tells nothing."""

    def append(self, next_row: Callable[[Head], Row]) -> Row:
        """Writes the record that follows whatever is last."""
        with self.connection() as connection:
            row = self._follow(connection, next_row) or self._append(connection, next_row)
            self._last = connection, Head(self._world, row[0], row[5])
        return row

    def _follow(self, connection: sqlite3.Connection, next_row: Callable[[Head], Row]) -> Row | None:
        """Behind our own last row, in one step; None when another writer came between, or the file is another one.

        A trigger of the table refuses a number that is not the next one, so nobody can have come between.
        """
        if self._last is None or self._last[0] is not connection:
            return None
        row = next_row(self._last[1])
        try:
            written = connection.execute(_APPEND, row).rowcount
        except sqlite3.IntegrityError:
            return None
        self._require_kept(written)
        return row

    def _append(self, connection: sqlite3.Connection, next_row: Callable[[Head], Row]) -> Row:
        """Behind the last row of the file, with all other writers waiting."""
        connection.execute("begin immediate")
        last = connection.execute("select seq, hash from audit order by seq desc limit 1").fetchone()
        row = next_row(Head(self._world, *(last or (0, None))))
        self._require_kept(connection.execute(_APPEND, row).rowcount)
        connection.execute("commit")
        return row

    def _require_kept(self, rows: int) -> None:
        """A trigger that someone planted can swallow a record without an error."""
        if rows != 1:
            raise StateUnavailableError(
                f"Something in the state file {self.path} swallows records. Move it away and keep it as evidence."
            )

    def scrub(self) -> None:
        """Empties the file of late changes, so that what was removed is nowhere on disk.

        It costs a write of the disk, so only those who remove something ask for it. While somebody else reads, it
        waits a moment; after that the next call or the end of the last connection does it.
        """
        with suppress(StateUnavailableError), self.connection() as connection:
            connection.execute(f"pragma busy_timeout = {_SCRUB_MILLISECONDS}")
            try:
                connection.execute("pragma wal_checkpoint(truncate)")
            finally:
                connection.execute(f"pragma busy_timeout = {round(self._busy_timeout * 1000)}")

    def _ready(self, durable: bool) -> sqlite3.Connection:
        try:
            connection = self._current()
            if durable != self._durable:
                connection.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
                self._durable = durable
        except BaseException as error:
            self._disconnect()  # nobody knows how far it came
            if isinstance(error, (OSError, sqlite3.Error)):
                raise self._unavailable(error) from error
            raise
        return connection

    def close(self) -> None:
        """Let go of the file; the next use opens it again."""
        with self._lock:
            self._disconnect()

    def _current(self) -> sqlite3.Connection:
        """The open connection, if it is this process's and its file is still the one at the path."""
        if self._connection is not None:
            if self._identity == self._identity_now():
                return self._connection
            self._disconnect()
        connection = self._open()
        try:
            self._world = _set_up(connection, busy_timeout=self._busy_timeout)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self._connections += 1
        # A store that nobody holds any more closes its file; at exit the system does.
        self._let_go = weakref.finalize(self, _let_go_of, connection, os.getpid())
        self._let_go.atexit = False
        self._identity = self._identity_now()
        self._durable = False
        _close_before_forks(self)
        return connection

    def _open(self) -> sqlite3.Connection:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_own_folder(self.folder, may_be_link=True)
        # Opened only to be made: closing a second descriptor of a file drops this process's locks on it.
        with suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        if not stat.S_ISREG(self.path.stat().st_mode):
            raise OSError(f"{FILE_NAME} is not a regular file")
        for suffix in ("", *_BESIDE):
            require_own_file(f"{self._file_name}{suffix}")
        return sqlite3.connect(self.path, timeout=self._busy_timeout, isolation_level=None, check_same_thread=False)

    def _identity_now(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self._file_name)
        except FileNotFoundError:
            return None
        return os.getpid(), status.st_dev, status.st_ino

    def _disconnect(self) -> None:
        let_go, self._connection, self._let_go = self._let_go, None, None
        if let_go is not None:
            let_go()

    def _roll_back(self, connection: sqlite3.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("rollback")
        except sqlite3.Error:
            self._disconnect()

    def _unavailable(self, error: OSError | sqlite3.Error) -> StateUnavailableError:
        """What is wrong with which file, and what to do about it."""
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            return StateUnavailableError(
                f"The state file {self.path} cannot be used: {reason}. "
                f"Make {self.folder} a folder this user can write to, or name another with {STATE_VARIABLE}."
            )
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE
        what, remedy = _NEWER if isinstance(error, _NewerError) else _FAULTS.get(code, _UNEXPECTED)
        return StateUnavailableError(
            f"The state file {self.path} {what} ({error}). {remedy}, or name another folder with {STATE_VARIABLE}."
        )


def _let_go_of(connection: sqlite3.Connection, opened_by: int) -> None:
    """SQLite forbids even closing a connection that came through a fork: it would act for the parent."""
    if opened_by != os.getpid():
        _ABANDONED.append(connection)
        return
    with suppress(sqlite3.Error):
        connection.close()


def _set_up(connection: sqlite3.Connection, *, busy_timeout: float) -> str:
    """Set the connection up, bring the file up to date, and give the world's id."""
    connection.execute("pragma foreign_keys = on")
    # Builds differ in whether they overwrite what is removed.
    connection.execute("pragma secure_delete = on")
    _switch_to_wal(connection, patience=busy_timeout)
    connection.execute("pragma synchronous = normal")
    _migrate(connection)
    row = connection.execute("select value from meta where key = 'world'").fetchone()
    if row is None:
        raise sqlite3.DatabaseError("the world's id is missing")
    return str(row[0])


def _switch_to_wal(connection: sqlite3.Connection, *, patience: float) -> None:
    """SQLite does not wait when two processes switch a new file together, so the waiting is done here."""
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("pragma journal_mode = wal")
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & _PRIMARY_CODE == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() > deadline:
                raise
            time.sleep(_SWITCH_PAUSE_SECONDS)
        else:
            return


def _migrate(connection: sqlite3.Connection) -> None:
    if _version(connection) == len(MIGRATIONS):
        return
    connection.execute("begin immediate")
    try:
        # Read again: another process may have migrated while this one waited for the lock.
        version = _version(connection)
        if version > len(MIGRATIONS):
            raise _NewerError(f"version {version}, known {len(MIGRATIONS)}")
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"pragma user_version = {len(MIGRATIONS)}")
        connection.execute("commit")
    finally:
        if connection.in_transaction:
            connection.execute("rollback")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("pragma user_version").fetchone()[0])


# A child shares SQLite's memory of locks that it does not hold, so no connection may be open during a fork.
_OPENED: weakref.WeakSet[StateStore] = weakref.WeakSet()
_HELD: list[StateStore] = []
_ABANDONED: list[sqlite3.Connection] = []
_HOOKS_ARE_SET = threading.Event()


def _close_before_forks(store: StateStore) -> None:
    if hasattr(os, "register_at_fork") and not _HOOKS_ARE_SET.is_set():
        _HOOKS_ARE_SET.set()
        os.register_at_fork(before=_hold_all, after_in_parent=_release_all, after_in_child=_release_all)
    _OPENED.add(store)


def _hold_all() -> None:
    for store in tuple(_OPENED):
        store._lock.acquire()  # noqa: SLF001 - the hooks belong to the class
        _HELD.append(store)
        store._disconnect()  # noqa: SLF001 - as above


def _release_all() -> None:
    while _HELD:
        _HELD.pop()._lock.release()  # noqa: SLF001 - as above
