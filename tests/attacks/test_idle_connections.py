"""Callers that connect and say nothing, so that nobody else gets through and no script finds a descriptor."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from support.running import wait_for
from support.skill_folders import skill_folder

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits and owners as Linux has them")

DESCRIPTORS = 200
IDLE = 400
SYSTEM_PYTHON = "/usr/bin/python3"  # which another user can run
NOBODY = 65534

SERVER = """
import resource, sys, threading
from pathlib import Path
from skillkit import TRUSTED, SkillManager, World

kind, folder, descriptors = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
manager = SkillManager(folder / "skills", "", [], [], policy=TRUSTED, state_dir=folder / "state")
print(manager.execute_skill_script("demo", "run.sh").stdout.strip(), flush=True)

if kind == "page":
    from skillkit.web.server import PageServer
    server = PageServer(World(folder / "state"), manager).start()
    print(server.login_url(), flush=True)
elif kind == "mcp":
    from skillkit.integrations.mcp.http import serve_http
    from skillkit.integrations.mcp.server import create_server
    say = lambda address: print(address, flush=True)
    serve = lambda: serve_http(create_server(manager), "127.0.0.1", 0, "a-token-for-the-test", say)
    threading.Thread(target=serve, daemon=True).start()
else:
    import socket, uvicorn
    from skillkit.web import create_app
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(World(folder / "state")), log_config=None))
    threading.Thread(target=server.run, args=([listening],), daemon=True).start()
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)

for line in sys.stdin:
    try:
        print(manager.execute_skill_script("demo", "run.sh").stdout.strip(), flush=True)
    except Exception as error:
        print(f"{type(error).__name__}: {error}".replace(chr(10), " "), flush=True)
"""

# Opens the connections, says half of a request on some, and keeps coming back where it is turned away.
CALLERS = """
import resource, socket, sys, time
host, port, many = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (many + 50, many + 50))
held = []
for number in range(many):
    try:
        held.append(socket.create_connection((host, port), timeout=2))
        held[-1].sendall((b"", b"GET / HTTP/1.1\\r\\n", b"POST / HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 9\\r\\n\\r\\n")[number % 3])
    except OSError:
        pass
print("there", flush=True)
sys.stdin.read()
"""


class Served(NamedTuple):
    """A server in a process of its own, with few descriptors."""

    process: subprocess.Popen[str]
    host: str
    port: int
    path: str
    """Of the first request: on the page, the link that logs in."""

    def ran(self) -> str:
        """What a script says that the server starts now."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def answers(self, path: str = "/", seconds: float = 30) -> int:
        """The status that a caller of our own gets; 0 for none."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=seconds)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()


@contextmanager
def served(folder: Path, kind: str) -> Iterator[Served]:
    skill_folder(folder / "skills", "demo", files={"scripts/run.sh": "echo ran\n"})
    command = [sys.executable, "-c", SERVER, kind, str(folder), str(DESCRIPTORS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ran\n"
            address = urlsplit(process.stdout.readline().strip())
            server = Served(process, address.hostname or "", address.port or 0, f"{address.path}?{address.query}")
            assert wait_for(lambda: server.answers(seconds=1))
            yield server
        finally:
            process.kill()


@contextmanager
def idle_callers(server: Served, user: int | None = None) -> Iterator[None]:
    python = SYSTEM_PYTHON if user else sys.executable
    command = [python, "-I", "-c", CALLERS, server.host, str(server.port), str(IDLE)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=user, cwd="/", text=True
    ) as callers:
        try:
            assert callers.stdout is not None
            assert callers.stdout.readline() == "there\n"
            yield
        finally:
            callers.kill()


USERS = [
    pytest.param(None, id="own user"),
    pytest.param(
        NOBODY,
        id="another user",
        marks=pytest.mark.skipif(
            os.geteuid() != 0 or not os.path.exists(SYSTEM_PYTHON), reason="only root can be somebody else"
        ),
    ),
]


def test_control_a_plain_server_is_dead_and_starts_no_script(tmp_path: Path) -> None:
    with served(tmp_path, "plain") as server, idle_callers(server):
        assert server.answers(seconds=2) == 0
        assert server.ran() != "ran"


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("kind", ["page", "mcp"])
def test_the_owner_gets_through_and_scripts_start(tmp_path: Path, kind: str, user: int | None) -> None:
    with served(tmp_path, kind) as server:
        before = server.answers()
        with idle_callers(server, user):
            assert wait_for(lambda: server.descriptors() < DESCRIPTORS // 2)
            for _ in range(5):
                assert server.answers() == before != 0
                assert server.ran() == "ran"


def test_who_follows_the_page_is_not_sent_away_for_them(tmp_path: Path) -> None:
    with served(tmp_path, "page") as server:
        logged_in = http.client.HTTPConnection(server.host, server.port, timeout=30)
        logged_in.request("GET", server.path)
        cookie = (logged_in.getresponse().headers["set-cookie"] or "").partition(";")[0]
        logged_in.close()
        with socket.create_connection((server.host, server.port), timeout=30) as following:
            host = f"{server.host}:{server.port}"
            following.sendall(f"GET /events HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n".encode())
            assert b"200 OK" in following.recv(4096)
            with idle_callers(server):
                assert server.ran() == "ran"
                assert server.answers() != 0
                assert not is_closed(following)


def is_closed(connection: socket.socket) -> bool:
    """Whether the other end has hung up."""
    connection.setblocking(False)
    try:
        while connection.recv(4096):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    else:
        return True
    finally:
        connection.setblocking(True)
