"""A private PostgreSQL of the system's packages, on a socket in a folder of its own: started, killed, started again.

It stands on no port, and goes with its block.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

__all__ = ["Server", "is_installed", "running_server"]

FOLDER = Path("/usr/lib/postgresql")
ACCOUNTS = ("postgres", "nobody")
TRIES, LOOKS, LOOK_SECONDS = 50, 600, 0.1


def _program(name: str) -> str:
    found = sorted(FOLDER.glob(f"*/bin/{name}"), key=lambda path: float(path.parts[-3]))
    return str(found[-1]) if found else shutil.which(name) or ""


def is_installed() -> bool:
    return bool(_program("initdb") and _program("postgres"))


class Server:
    """One server; worlds are schemas in it."""

    def __init__(self, folder: Path, account: str | None) -> None:
        self._folder = folder
        self._settings: dict[str, Any] = {"user": account, "cwd": folder, "stdin": subprocess.DEVNULL}
        words = ["-D", "data", "-U", "owner", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        subprocess.run([_program("initdb"), *words], check=True, capture_output=True, **self._settings)
        self._process = self._start()

    def address(self, world: str = "") -> str:
        return f"postgresql://owner@/postgres?host={self._folder}{f'&world={world}' if world else ''}"

    def make_world(self, name: str) -> str:
        from skillkit.core.store.shared.postgres import WorldAddress, make_world

        make_world(WorldAddress.from_text(self.address(name)))
        return self.address(name)

    def kill_and_start(self) -> None:
        """As when the machine's memory runs out: every process of it at once, and it comes back by itself."""
        for process in (self._process.pid, *_children_of(self._process.pid)):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self._process.wait()
        self._process = self._start()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)  # does not wait for who is connected
        self._process.wait(60)

    def _start(self) -> subprocess.Popen[bytes]:
        """Again and again while something of the one before is not gone yet."""
        for _ in range(TRIES):
            process = self._try()
            if process is not None:
                return process
            time.sleep(LOOK_SECONDS)
        raise RuntimeError((self._folder / "log").read_text(errors="replace")[-2000:])

    def _try(self) -> subprocess.Popen[bytes] | None:
        options = {"listen_addresses": "", "unix_socket_directories": str(self._folder)}
        words = [word for each in options.items() for word in ("-c", "=".join(each))]
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [_program("postgres"), "-D", "data", *words],
                stdout=log,
                stderr=log,
                **self._settings,
            )
        import psycopg

        for _ in range(LOOKS):
            with suppress(psycopg.OperationalError):
                psycopg.connect(self.address()).close()
                return process
            if process.poll() is not None:
                return None
            time.sleep(LOOK_SECONDS)
        process.kill()
        return None


def _children_of(process: int) -> list[int]:
    """Each has a session of its own."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == process:
                found.append(int(entry.name))
    return found


@contextmanager
def running_server() -> Iterator[Server]:
    """It refuses to be root's."""
    known = {each.pw_name for each in pwd.getpwall()}
    account = next(name for name in ACCOUNTS if name in known) if os.getuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="skillkit-pg-", ignore_cleanup_errors=True) as name:
        if account is not None:
            os.chmod(name, 0o755)
            shutil.chown(name, account)
        server = Server(Path(name), account)
        try:
            yield server
        finally:
            server.stop()
