"""Network by host: programs reach the hosts that were opened, and a script finds no other way out."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
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
from support.network import NAME, POLICY, HostWorld, echo, host_world, listening

from skillkit import SandboxUnavailableError, SkillManager
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import MAKERS, Choice
from skillkit.testing import skill_folder

URL = f"https://{NAME}/hello.txt"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these walls are of Linux")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostWorld]:
    with host_world(tmp_path, monkeypatch) as made:
        yield made


CLIENTS = {
    "urllib": ("client.py", f"import urllib.request\nprint(urllib.request.urlopen({URL!r}).read().decode())\n"),
    "requests": ("client.py", f"import requests\nprint(requests.get({URL!r}).text)\n"),
    "httpx": ("client.py", f"import httpx\nprint(httpx.get({URL!r}).text)\n"),
    "curl": ("client.sh", f"curl -sS --fail {URL}\n"),
    "wget": ("client.sh", f'wget -q -O - --ca-certificate "$SSL_CERT_FILE" {URL}\n'),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_programs_reach_the_host_that_was_opened(client: str, world: HostWorld) -> None:
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
def test_they_reach_no_other_and_the_hint_says_what_would_open_it(client: str, world: HostWorld) -> None:
    if client in ("curl", "wget") and not shutil.which(client):
        pytest.skip(f"{client} is not here")
    script, text = CLIENTS[client]
    result = world.run(script, text.replace(NAME, "evil.example.com"))
    assert result.exit_code != 0
    assert "hello" not in result.stdout
    assert world.outside.asked == []
    assert result.hosts[0].refused
    assert "skillkit grant net --host evil.example.com" in result.hint


def test_a_granted_host_is_open_to_the_skill_it_was_granted_to_and_to_that_content(world: HostWorld) -> None:
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


def test_git_fetches_from_the_host_that_was_opened(world: HostWorld) -> None:
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


def test_node_without_support_for_the_variables_finds_no_network(world: HostWorld) -> None:
    """From version 24 on it looks at them, and reaches the host; before, it fails closed."""
    text = f"fetch({URL!r}).then(r => r.text()).then(t => console.log('got', t), e => {{ console.error(e.cause?.code); process.exit(3) }})\n"
    result = world.run("client.mjs", text)
    assert result.stdout.strip() in ("got hello", "")
    assert bool(result.hosts) == bool(result.stdout)


@contextlib.contextmanager
def listener_on_loopback() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_redirect_to_another_host_is_refused(world: HostWorld) -> None:
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
    world: HostWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a proxy of the machine, names are resolved here: one that leads here is refused."""
    monkeypatch.delenv("http_proxy")
    monkeypatch.delenv("https_proxy")
    with listener_on_loopback() as port:
        text = f"import urllib.request\nprint(urllib.request.urlopen('http://localhost.:{port}/').read())\n"
        result = world.run("client.py", text, allowed_hosts=(f"*:{port}",))
    assert result.exit_code != 0
    assert "not a public address" in result.hosts[0].refused


def test_a_flood_of_connections_ends_with_its_run(world: HostWorld) -> None:
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


def test_the_record_says_what_was_reached(world: HostWorld) -> None:
    world.run("client.py", CLIENTS["urllib"][1])
    from skillkit.core.record import AuditLog
    from skillkit.core.store.state import StateStore

    (ended,) = AuditLog(StateStore(world.folder / "state")).records(kind="finished")
    hosts: Any = ended.fields["hosts"]
    assert [each["host"] for each in hosts] == [f"{NAME}:443"]
    assert hosts[0]["received_bytes"] > 0


def test_landlock_opens_no_host_and_says_so(world: HostWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "this_machines", Choice({"landlock": MAKERS["linux"]["landlock"]}))
    with pytest.raises(SandboxUnavailableError, match=NAME):
        world.run("client.py", CLIENTS["urllib"][1])
    result = world.run("client.py", CLIENTS["urllib"][1], sandbox="preferred")
    assert result.exit_code != 0
    assert any("cannot open" in each for each in result.isolation.degraded)
