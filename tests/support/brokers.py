"""Private Redis and RabbitMQ servers of Debian's packages on loopback: killed, started again, wiped, and gone at the end."""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

__all__ = ["KINDS", "Broker", "rabbitmq", "redis"]

RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")  # the one on PATH wants root or an account of its own
# Below those that connections going out take: a port stays free while its server is down.
PORTS = range(20000, 32000)
PATIENCE = 90.0
QUIET: Mapping[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Broker:
    """One server: its address stays the same, and a test may kill it, wipe it and start it again."""

    def __init__(
        self, url: str, data: Path, words: list[str], is_ready: Callable[[], bool], environment: Mapping[str, str]
    ) -> None:
        self.url, self._data, self._words, self._is_ready = url, data, words, is_ready
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None

    def __str__(self) -> str:
        return self.url

    @property
    def folder(self) -> Path:
        """All that it writes; gone with it."""
        return self._data.parent

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Returns when it answers."""
        self._data.mkdir(exist_ok=True)
        log = self.folder / "log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                self._words,
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        end = time.monotonic() + PATIENCE
        while not self._is_ready():
            if not self.is_running or time.monotonic() > end:
                raise RuntimeError(log.read_text(errors="replace"))
            time.sleep(0.05)

    def kill(self) -> None:
        """As kill -9: nothing is said to anybody, nothing is written any more."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(30)
        self._process = None
        _end_all(self.folder, only=self._environment.get("OF_BROKER", ""))

    def restart(self, *, with_data: bool = True) -> None:
        """Killed and started again at the same address; without its data it has forgotten every message."""
        self.kill()
        if not with_data:
            shutil.rmtree(self._data)
        self.start()


def _end_all(folder: Path, only: str = "") -> None:
    """Kills whatever still runs with this folder as its home: Erlang's helpers are in sessions of their own."""
    mark = f"HOME={folder}\0".encode()
    end = time.monotonic() + 10
    while time.monotonic() < end:
        left = False
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                found = b"\0" + (entry / "environ").read_bytes()
                if b"\0" + mark in found and (not only or f"\0OF_BROKER={only}\0".encode() in found):
                    os.kill(int(entry.name), signal.SIGKILL)
                    left = True
        if not left:
            return
        time.sleep(0.02)
    raise RuntimeError(f"something of {folder} does not end")


def _free_port() -> int:
    while True:
        port = random.SystemRandom().choice(PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _says(port: int, asked: bytes, expected: bytes, host: str = "127.0.0.1") -> bool:
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=2) as connection:
        connection.settimeout(2)
        connection.sendall(asked)
        return connection.recv(64).startswith(expected)
    return False


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="skillkit-broker-", ignore_cleanup_errors=True) as name:
        try:
            yield Path(name)
        finally:
            _end_all(Path(name))


def _environment(folder: Path, **more: str) -> dict[str, str]:
    return {"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "HOME": str(folder), "LANG": "C.UTF-8", **more}


@contextlib.contextmanager
def redis(addresses: Sequence[str] = ("127.0.0.1",)) -> Iterator[Broker]:
    """A Redis that keeps its messages in a file, as one in use does; its url is that of the first address."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("Redis is not installed: tools/system-packages")
    with _folder() as folder:
        port, data = _free_port(), folder / "data"
        settings = {
            "port": port,
            "bind": " ".join(addresses),
            "protected-mode": "no",
            "dir": data,
            "appendonly": "yes",
            "save": "",
            "daemonize": "no",
        }
        words = [program]
        for name, value in settings.items():
            words += [f"--{name}", *(str(value).split() or [""])]
        broker = Broker(
            f"redis://{addresses[0]}:{port}/0",
            data,
            words,
            lambda: _says(port, b"PING\r\n", b"+PONG", addresses[0]),
            _environment(folder),
        )
        try:
            broker.start()
            yield broker
        finally:
            broker.kill()


@contextlib.contextmanager
def rabbitmq() -> Iterator[Broker]:
    """A RabbitMQ node with a cookie, a name server and ports of its own."""
    if not RABBITMQ.exists():
        pytest.skip("RabbitMQ is not installed: tools/system-packages")
    with _folder() as folder:
        port, names, between = _free_port(), str(_free_port()), str(_free_port())
        data, token = folder / "data", secrets.token_hex(4)
        cookie = folder / ".erlang.cookie"
        cookie.write_text(secrets.token_hex(20))
        cookie.chmod(0o400)
        (folder / "rabbitmq.conf").write_text(f"listeners.tcp.local = 127.0.0.1:{port}\n")
        (folder / "plugins").write_text("[].\n")
        common = _environment(folder, ERL_EPMD_PORT=names, ERL_EPMD_ADDRESS="127.0.0.1")
        own = {
            "OF_BROKER": token,
            "RABBITMQ_NODENAME": f"skillkit-{token}@localhost",
            "RABBITMQ_DIST_PORT": between,
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
            "RABBITMQ_MNESIA_BASE": str(data),
            "RABBITMQ_LOG_BASE": str(folder),
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RUNNING_UNDER_SYSTEMD": "true",  # no shell stays in between
            # The links between nodes: there are none, and nobody else is to reach them.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 2:2 -kernel inet_dist_use_interface {127,0,0,1}",
        }
        broker = Broker(
            f"amqp://guest:guest@127.0.0.1:{port}//",
            data,
            [str(RABBITMQ)],
            lambda: _says(port, b"AMQP\0\0\x09\x01", b"\x01"),
            {**common, **own},
        )
        # Started first, so that the node does not leave one of its own behind.
        with subprocess.Popen(["epmd"], env=common, cwd=folder, **QUIET) as name_server:
            try:
                while not _is_open(int(names)):
                    assert name_server.poll() is None
                    time.sleep(0.02)
                broker.start()
                yield broker
            finally:
                broker.kill()
                name_server.kill()


def _is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        return True
    return False


KINDS: Mapping[str, Callable[[], contextlib.AbstractContextManager[Broker]]] = {"redis": redis, "rabbitmq": rabbitmq}
