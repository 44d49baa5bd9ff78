"""A private PostgreSQL of Debian's packages for one session of tests, and worlds in it; gone at the end of the session."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

__all__ = ["Database", "database", "databases", "each_database"]

BINARIES = "/usr/lib/postgresql"
ACCOUNTS = ("postgres", "nobody")
HBA = """local all passworded scram-sha-256
local all all trust
"""


class Database:
    """One running server on a socket of its own; nothing but the file system's rights guards it."""

    def __init__(self, folder: Path, start: Callable[[], subprocess.Popen[bytes]] | None = None) -> None:
        self.folder = folder
        self._start = start
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns when it answers; of one that was killed, the last ones may still have to end."""
        assert self._start is not None
        for _ in range(50):
            self._process = self._start()
            with contextlib.suppress(RuntimeError):
                _wait_for(self.folder, self._process)
                return
            self._process.wait(30)
            time.sleep(0.1)
        raise RuntimeError((self.folder / "log").read_text(errors="replace"))

    def kill(self) -> None:
        """As kill -9: all of its processes at once, and nothing is said to anybody."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for pid in (self._process.pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(30)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)  # does not wait for who is connected
            self._process.wait(30)

    def address(self, world: str = "", *, login: str = "owner", more: str = "") -> str:
        name = f"&world={world}" if world else ""
        return f"postgresql://{login}@/postgres?host={self.folder}{name}{more}"

    def connect(self, world: str = "public", *, login: str = "owner") -> Any:
        import psycopg

        return psycopg.connect(self.address(login=login), autocommit=True, options=f"-c search_path={world}")

    def new_world(self) -> str:
        """One that nobody uses yet."""
        from skillkit.core.store.shared.postgres import WorldAddress, make_world

        world = f"w{secrets.token_hex(6)}"
        make_world(WorldAddress.from_text(self.address(world)))
        return world

    def new_login(self, world: str, *roles: str) -> str:
        """One that may log in and has these roles of the world."""
        name = f"login_{secrets.token_hex(6)}"
        with self.connect() as connection:
            connection.execute(f"create role {name} login")
            for role in roles:
                connection.execute(f"grant {world}_{role} to {name}")
        return name

    def drop_world(self, world: str) -> None:
        with self.connect() as connection:
            connection.execute(f"drop schema {world} cascade")
            for role in ("worker", "front", "approver"):
                connection.execute(f"drop role {world}_{role}")


def _program(name: str) -> str:
    found = sorted(Path(BINARIES).glob(f"*/bin/{name}")) if Path(BINARIES).is_dir() else []
    return str(found[-1]) if found else shutil.which(name) or ""


def _account() -> str | None:
    """The server refuses root."""
    if os.getuid() != 0:
        return None
    known = {each.pw_name for each in pwd.getpwall()}
    return next(name for name in ACCOUNTS if name in known)


@contextlib.contextmanager
def running_server(addresses: Sequence[str] = ()) -> Iterator[Database]:
    """On a socket in a folder; on addresses of this machine too, for those of their networks, if any are named."""
    initdb, server, account = _program("initdb"), _program("postgres"), _account()
    with tempfile.TemporaryDirectory(prefix="skillkit-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if account is not None:
            os.chmod(folder, 0o755)
            shutil.chown(folder, account)
        data = folder / "data"
        settings: dict[str, Any] = {"user": account, "cwd": folder, "stdin": subprocess.DEVNULL}
        subprocess.run(
            [initdb, "-D", data, "-U", "owner", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"],
            check=True,
            capture_output=True,
            **settings,
        )
        (data / "pg_hba.conf").write_text(HBA + "".join(f"host all all {each}/24 trust\n" for each in addresses))
        options = {"listen_addresses": ",".join(addresses), "unix_socket_directories": str(folder), "fsync": "off"}
        words = [word for each in options.items() for word in ("-c", "=".join(each))]

        def start() -> subprocess.Popen[bytes]:
            with (folder / "log").open("ab") as log:
                return subprocess.Popen([server, "-D", data, *words], stdout=log, stderr=log, **settings)

        database = Database(folder, start)
        try:
            database.start()
            yield database
        finally:
            database.stop()


def _wait_for(folder: Path, process: subprocess.Popen[bytes]) -> None:
    import psycopg

    for _ in range(300):
        with contextlib.suppress(psycopg.OperationalError):
            Database(folder).connect().close()
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError((folder / "log").read_text(errors="replace"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is about SQLite's file is asked of no other database, and the other way round."""
    only = {"own_file": "[postgresql", "shared_world": "[sqlite"}
    items[:] = [
        each
        for each in items
        if not any(each.get_closest_marker(mark) and not_in in each.name for mark, not_in in only.items())
    ]


@pytest.fixture(scope="session")
def databases() -> Iterator[Database]:
    """The server; tests that need it are skipped where it is not installed."""
    if not _program("postgres"):
        pytest.skip("PostgreSQL is not installed: tools/system-packages")
    with running_server() as database:
        yield database


@pytest.fixture
def database(databases: Database) -> Database:
    """Started before anything of a test's own."""
    return databases


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def each_database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The same test on a folder's own file, and in a new world of a shared database."""
    if request.param == "sqlite":
        yield "sqlite"
        return
    server: Database = request.getfixturevalue("databases")
    world = server.new_world()
    monkeypatch.setenv("SKILLKIT_STATE", server.address(world))
    yield "postgresql"
    monkeypatch.delenv("SKILLKIT_STATE")
    server.drop_world(world)
