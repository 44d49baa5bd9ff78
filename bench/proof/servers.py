"""Doors behind a process or a socket: the approval page, and the MCP server over stdio and over HTTP."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.proof.inputs import mutated
from skillkit import GUARDED, SkillManager, World

__all__ = ["Call", "mcp", "mcp_over_http", "page", "write_skill"]

Call = Callable[[random.Random], None]
_SCRIPTS = {"run.sh": "echo hi\n", "more.py": "print(1)\n"}
_BATCH = 50
_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "fuzz", "version": "1"}}
_MESSAGES: tuple[tuple[str, dict[str, object]], ...] = (
    ("tools/list", {}), ("resources/list", {}), ("prompts/list", {}), ("ping", {}),
    ("tools/call", {"name": "load_skill", "arguments": {"skill_name": "fuzz"}}),
    ("tools/call", {"name": "read_skill_file", "arguments": {"skill_name": "fuzz", "path": "SKILL.md"}}),
    ("resources/read", {"uri": "skill://fuzz/SKILL.md"}), ("completion/complete", {"ref": {}}),
)  # fmt: skip


def _line(number: object, method: str, parameters: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}).encode()


def write_skill(folder: Path, text: bytes = b"---\nname: fuzz\ndescription: d\n---\nRun `scripts/run.sh`.\n") -> Path:
    skill = folder / "skills" / "fuzz"
    (skill / "scripts").mkdir(parents=True, exist_ok=True)
    (skill / "SKILL.md").write_bytes(text)
    for name, script in _SCRIPTS.items():
        (skill / "scripts" / name).write_text(script)
    return skill


@contextmanager
def page(folder: Path) -> Iterator[Call]:
    """Raw requests to the approval page, signed in and not; it answers, never with its own failure."""
    import httpx

    from skillkit.web.server import PageServer

    with World(folder / "state") as world, PageServer(world) as server, httpx.Client(base_url=server.address) as client:
        client.get(server.login_url().removeprefix(server.address))
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        head = f"Host: 127.0.0.1:{server.port}\r\nCookie: {cookie}\r\nOrigin: {server.address}\r\n"
        paths = (
            "/",
            "/requests/x",
            "/history",
            "/audit?after=3&q=%00",
            "/api/requests",
            "/static/page.css",
            "/events",
            "/login?token=x",
        )
        seeds = [
            f"GET {path} HTTP/1.1\r\n{head}Connection: close\r\n\r\n".encode() for path in paths if path != "/events"
        ]
        form = "token=x&option=yes_once&grants=a"
        seeds += [
            f"POST {path}/answer HTTP/1.1\r\n{head}Content-Length: {len(form)}\r\n\r\n{form}".encode()
            for path in paths[:2]
        ]

        def call(chance: random.Random) -> None:
            with socket.create_connection(("127.0.0.1", server.port), 10) as peer:
                with suppress(ConnectionError):
                    peer.sendall(mutated(chance, seeds))
                    peer.shutdown(socket.SHUT_WR)
                _require_answer(peer)

        yield call
        if client.get("/").status_code != httpx.codes.OK:
            raise AssertionError("the page does not answer any more")


@contextmanager
def mcp(folder: Path) -> Iterator[Call]:
    """Many lines to one MCP server over stdio; it lives, says no traceback, and answers what is right."""
    write_skill(folder)
    seeds = [_line(7, *message) for message in _MESSAGES]
    words = [
        sys.executable,
        "-m",
        "skillkit",
        "mcp",
        "--skills",
        str(folder / "skills"),
        "--state-dir",
        str(folder / "state"),
        "--run-on-load",
        "never",
    ]

    def call(chance: random.Random) -> None:
        noise = [mutated(chance, seeds).replace(b"\n", b" ").replace(b"\r", b" ") for _ in range(_BATCH)]
        known = [_line(0, "initialize", _HELLO), b'{"jsonrpc":"2.0","method":"notifications/initialized"}']
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
            said, complaint = server.communicate(
                b"\n".join([*known, *noise, _line("last", "tools/list", {}), b""]), timeout=120
            )
        if b'"last"' not in said or b"Traceback" in complaint:
            raise AssertionError(f"the server gave up: {complaint[-2000:].decode('utf-8', 'replace')}")

    yield call


def _require_answer(peer: socket.socket) -> None:
    """Whatever it says, it is not that it failed itself."""
    said = b""
    with suppress(ConnectionError, TimeoutError):  # half a request has no answer
        said = peer.recv(12)
    if said.startswith(b"HTTP/1.1 5") and not said.startswith(b"HTTP/1.1 501"):
        raise AssertionError(f"the server failed: {said!r}")


@contextmanager
def mcp_over_http(folder: Path) -> Iterator[Call]:
    """Posts to one MCP server, their heads and bodies changed; the token is right most of the time."""
    import anyio

    from skillkit.integrations.mcp.http import PATH, http_app, listen_on
    from skillkit.integrations.mcp.server import create_server
    from skillkit.listening import LimitedServer, server_config

    write_skill(folder)
    with (
        SkillManager(folder / "skills", "", [], [], state_dir=folder / "state", policy=GUARDED) as manager,
        listen_on("127.0.0.1", 0) as listening,
    ):
        port = listening.getsockname()[1]
        app = http_app(create_server(manager, approval_wait=0.1), "127.0.0.1", port, "token")
        server = LimitedServer(server_config(app, timeout_graceful_shutdown=1))
        thread = threading.Thread(target=anyio.run, args=(server.serve, [listening]))
        thread.start()
        head = (
            f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer token\r\nConnection: close\r\n"
            "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
        ).encode()
        bodies = [_line(0, "initialize", _HELLO), *(_line(7, *message) for message in _MESSAGES)]

        def call(chance: random.Random) -> None:
            is_head = chance.random() < 0.3
            body = chance.choice(bodies) if is_head else mutated(chance, bodies, is_inside=chance.random() < 0.5)
            whole = head + b"Content-Length: %d\r\n\r\n" % len(body)
            with socket.create_connection(("127.0.0.1", port), 10) as peer:
                with suppress(ConnectionError):
                    peer.sendall((mutated(chance, [whole]) if is_head else whole) + body)
                    peer.shutdown(socket.SHUT_WR)
                _require_answer(peer)

        try:
            yield call
            with socket.create_connection(("127.0.0.1", port), 10) as peer:
                peer.sendall(head + b"Content-Length: %d\r\n\r\n" % len(bodies[0]) + bodies[0])
                if not peer.recv(100).startswith(b"HTTP/1.1 200"):
                    raise AssertionError("the server does not answer any more")
        finally:
            server.should_exit = True
            thread.join(20)
