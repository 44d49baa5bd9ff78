"""Network by host: programs reach the hosts that were opened, and a script finds no other way out."""

from __future__ import annotations

import contextlib
import http.server
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trustme
from support.network import ProxyOutside, echo, listening

from skillkit import STANDARD, SandboxUnavailableError, ScriptExecutionResult, SkillManager
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import MAKERS, Choice
from skillkit.testing import skill_folder

NAME = "api.example.com"
POLICY = replace(STANDARD, sandbox="required", allowed_hosts=(NAME,))
URL = f"https://{NAME}/hello.txt"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these walls are of Linux")


class World:
    """A machine behind a proxy, and hosts of our own behind that."""

    def __init__(self, folder: Path, outside: ProxyOutside) -> None:
        self.folder = folder
        self.outside = outside
        self.python = os.path.dirname(sys.executable)

    def run(self, script: str, text: str, *argv: str, **changes: object) -> ScriptExecutionResult:
        skill_folder(self.folder / "skills", "net", files={f"scripts/{script}": text})
        policy = replace(POLICY, **changes)  # type: ignore[arg-type]
        with SkillManager(
            self.folder / "skills", "", [], [], policy=policy, state_dir=self.folder / "state"
        ) as manager:
            return manager.execute_skill_script("net", script, argv=argv, timeout=60)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    served = tmp_path / "served"
    served.mkdir()
    (served / "hello.txt").write_text("hello")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    with https_server(served, authority) as port:
        outside = ProxyOutside({f"{NAME}:443": port, "evil.example.com:443": port})
        with listening(outside) as proxy:
            for variable in ("http_proxy", "https_proxy"):
                monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy}")
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
            monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
            yield World(tmp_path, outside)


@contextlib.contextmanager
def https_server(folder: Path, authority: trustme.CA) -> Iterator[int]:
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(NAME, "evil.example.com").configure_cert(context)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join(10)


CLIENTS = {
    "urllib": ("client.py", f"import urllib.request\nprint(urllib.request.urlopen({URL!r}).read().decode())\n"),
    "requests": ("client.py", f"import requests\nprint(requests.get({URL!r}).text)\n"),
    "httpx": ("client.py", f"import httpx\nprint(httpx.get({URL!r}).text)\n"),
    "curl": ("client.sh", f"curl -sS --fail {URL}\n"),
    "wget": ("client.sh", f'wget -q -O - --ca-certificate "$SSL_CERT_FILE" {URL}\n'),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_programs_reach_the_host_that_was_opened(client: str, world: World) -> None:
    if client in ("curl", "wget") and not shutil.which(client):
        pytest.skip(f"{client} is not here")
    script, text = CLIENTS[client]
    result = world.run(script, text)
    assert result.stdout.strip() == "hello", result.stderr
    (use,) = result.hosts
    assert (use.host, use.refused, use.connections) == (f"{NAME}:443", "", 1)
    assert use.sent > 0
    assert use.received > 0


@pytest.mark.parametrize("client", CLIENTS)
def test_they_reach_no_other_and_the_hint_says_what_would_open_it(client: str, world: World) -> None:
    if client in ("curl", "wget") and not shutil.which(client):
        pytest.skip(f"{client} is not here")
    script, text = CLIENTS[client]
    result = world.run(script, text.replace(NAME, "evil.example.com"))
    assert result.exit_code != 0
    assert "hello" not in result.stdout
    assert world.outside.asked == []
    assert result.hosts[0].refused
    assert "skillkit grant net --host evil.example.com" in result.hint


def test_a_granted_host_is_open_to_the_skill_it_was_granted_to_and_to_that_content(world: World) -> None:
    text = CLIENTS["urllib"][1]
    for name in ("net", "other"):
        skill_folder(world.folder / "skills", name, files={"scripts/client.py": text})
    policy = replace(POLICY, allowed_hosts=(), grantable=("host",))
    with SkillManager(world.folder / "skills", "", [], [], policy=policy, state_dir=world.folder / "state") as manager:
        assert not manager.execute_skill_script("net", "client.py").success
        manager.grant("net", hosts=[NAME])
        assert manager.execute_skill_script("net", "client.py").stdout.strip() == "hello"
        assert not manager.execute_skill_script("other", "client.py").success
        (world.folder / "skills/net/scripts/client.py").write_text(text + "# changed\n")
        assert not manager.execute_skill_script("net", "client.py").success


def test_git_fetches_from_the_host_that_was_opened(world: World) -> None:
    repository = world.folder / "served/repo"
    git = partial(subprocess.run, check=True, capture_output=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    git(["git", "init", "-q", "-b", "main", repository])
    git(
        [
            "git",
            "-C",
            repository,
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "first",
        ]
    )
    git(["git", "-C", repository, "update-server-info"])
    result = world.run(
        "clone.sh",
        f'cd "$SKILL_WORK_DIR" && git clone -q https://{NAME}/repo/.git copy && git -C copy log --format=%s\n',
    )
    assert result.stdout.strip() == "first", result.stderr


def test_node_without_support_for_the_variables_finds_no_network(world: World) -> None:
    """From version 24 on it looks at them, and reaches the host; before, it fails closed."""
    text = f"fetch({URL!r}).then(r => r.text()).then(t => console.log('got', t), e => {{ console.error(e.cause?.code); process.exit(3) }})\n"
    result = world.run("client.mjs", text)
    assert result.stdout.strip() in ("got hello", "")
    assert bool(result.hosts) == bool(result.stdout)


OTHER_WAYS = """
import socket, sys
kind, target, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
try:
    if kind == "tcp":
        family = socket.AF_INET6 if ":" in target else socket.AF_INET
        s = socket.socket(family, socket.SOCK_STREAM)
        s.settimeout(5)
        s.connect((target, port))
    elif kind == "udp":
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.sendto(b"hello", (target, port))
    elif kind == "name":
        print(socket.getaddrinfo(target, port)[0][4])
    elif kind == "raw":
        socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
    print("OUT")
except OSError as error:
    print("closed", error)
"""


@contextlib.contextmanager
def listener_on_loopback() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("tcp", "127.0.0.1"),
        ("tcp", "93.184.216.34"),
        ("tcp", "169.254.169.254"),
        ("tcp", "10.0.0.1"),
        ("tcp", "::1"),
        ("tcp", "2606:2800:220:1::1"),
        ("udp", "93.184.216.34"),
        ("udp", "8.8.8.8"),
        ("tcp", "8.8.8.8"),
        ("name", NAME),
    ],
)
def test_whatever_goes_past_the_proxy_finds_no_network(kind: str, target: str, world: World) -> None:
    with listener_on_loopback() as port:
        result = world.run("out.py", OTHER_WAYS, kind, target, str(port))
    assert "OUT" not in result.stdout
    assert "closed" in result.stdout


def test_control_without_walls_the_listener_is_reached(world: World) -> None:
    with listener_on_loopback() as port:
        result = world.run(
            "out.py",
            OTHER_WAYS,
            "tcp",
            "127.0.0.1",
            str(port),
            sandbox="off",
            allow_network=True,
            allow_filesystem=True,
        )
    assert "OUT" in result.stdout


def test_a_redirect_to_another_host_is_refused(world: World) -> None:
    def redirect(connection: socket.socket) -> None:
        connection.recv(1 << 16)
        connection.sendall(
            b"HTTP/1.1 302 Found\r\nLocation: https://evil.example.com/hello.txt\r\nContent-Length: 0\r\n\r\n"
        )

    with listening(redirect) as port:
        world.outside.hosts[f"{NAME}:80"] = port
        result = world.run("client.py", CLIENTS["urllib"][1].replace("https", "http"))
    assert result.exit_code != 0
    assert world.outside.asked == [f"{NAME}:80"]
    assert any(each.refused for each in result.hosts if "evil" in each.host)


def test_the_machines_own_services_are_not_reached_through_the_proxy(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a proxy of the machine, names are resolved here: one that leads here is refused."""
    monkeypatch.delenv("http_proxy")
    monkeypatch.delenv("https_proxy")
    with listener_on_loopback() as port:
        text = f"import urllib.request\nprint(urllib.request.urlopen('http://localhost.:{port}/').read())\n"
        result = world.run("client.py", text, allowed_hosts=(f"localhost:{port}",))
    assert result.exit_code != 0
    assert "not a public address" in result.hosts[0].refused


def test_a_flood_of_connections_ends_with_its_run(world: World) -> None:
    text = f"""
import socket
held = []
for _ in range(150):
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(b"CONNECT {NAME}:443 HTTP/1.1\\r\\n\\r\\n")
    held.append(s)
print(sum(b" 200 " in s.recv(100) for s in held))
"""
    with listening(echo) as port:
        world.outside.hosts[f"{NAME}:443"] = port
        before = threading.active_count()
        assert world.run("flood.py", text).stdout.strip() == "150"
    until = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.05)
    assert threading.active_count() <= before


def test_the_record_says_what_was_reached(world: World) -> None:
    world.run("client.py", CLIENTS["urllib"][1])
    from skillkit.core.record import AuditLog
    from skillkit.core.store.state import StateStore

    (ended,) = AuditLog(StateStore(world.folder / "state")).records(kind="finished")
    hosts: Any = ended.fields["hosts"]
    assert [each["host"] for each in hosts] == [f"{NAME}:443"]
    assert hosts[0]["received_bytes"] > 0


def test_landlock_opens_no_host_and_says_so(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "this_machines", Choice({"landlock": MAKERS["linux"]["landlock"]}))
    with pytest.raises(SandboxUnavailableError, match=NAME):
        world.run("client.py", CLIENTS["urllib"][1])
    result = world.run("client.py", CLIENTS["urllib"][1], sandbox="preferred")
    assert result.exit_code != 0
    assert any("cannot open" in each for each in result.isolation.degraded)


KILLED = """
import os, sys
from dataclasses import replace
from pathlib import Path
from skillkit import STANDARD, SkillManager
folder = Path(sys.argv[1])
policy = replace(STANDARD, sandbox="required", allowed_hosts=("api.example.com",))
with SkillManager(folder / "skills", "", [], [], policy=policy, state_dir=folder / "state") as manager:
    manager.execute_skill_script("net", "wait.sh", on_output=lambda *_: os.write(1, b"started\\n"))
"""


def test_nothing_is_left_when_the_caller_is_killed(world: World) -> None:
    mark = f"sleep 54.{os.getpid()}"
    skill_folder(world.folder / "skills", "net", files={"scripts/wait.sh": f"echo begun\n{mark}\n"})
    caller = subprocess.Popen([sys.executable, "-c", KILLED, str(world.folder)], stdout=subprocess.PIPE)
    assert caller.stdout is not None
    assert caller.stdout.readline() == b"started\n"
    helpers = processes_with(f" 0 3128 {caller.pid} ")
    assert helpers
    caller.send_signal(signal.SIGKILL)
    caller.wait()
    caller.stdout.close()
    until = time.monotonic() + 20
    while (any_alive(helpers) or processes_with(mark)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not any_alive(helpers)
    assert not processes_with(mark)


def processes_with(text: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                if text.encode() in words and entry.name != str(os.getpid()):
                    found.append(int(entry.name))
    return found


def any_alive(pids: list[int]) -> bool:
    return any(Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)
