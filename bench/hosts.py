"""What network by host adds to a run, and how fast bytes pass through its proxy."""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.runner import Row, measure
from bench.walls import REQUIRED
from skillkit import SkillManager
from skillkit.core.run.hosts import proxy as proxies
from skillkit.core.values.hosts import HostRule

MEGABYTES = 256
ROUNDS = 9
AT_ONCE = 200
WHY_ADDED = "a process in the background enters the run's network before the script starts, and a thread waits for it"
WHY_RATE = "every byte passes one more process, on cores that server and client keep busy"
# A server that sends zeros, and a client that counts them; with a certificate, over TLS.
SERVER = """
import socket, ssl, sys, threading
certificate, megabytes = sys.argv[1], int(sys.argv[2])
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
if certificate:
    context.load_cert_chain(certificate)
server = socket.create_server(("127.0.0.1", 0), backlog=512)
print(server.getsockname()[1], flush=True)
def send(connection):
    connection = context.wrap_socket(connection, server_side=True) if certificate else connection
    block = bytes(1 << 20)
    for _ in range(megabytes):
        connection.sendall(block)
    connection.close()
while True:
    threading.Thread(target=send, args=(server.accept()[0],), daemon=True).start()
"""
CLIENT = """
import socket, ssl, sys, time
port, is_proxied, is_tls = int(sys.argv[1]), sys.argv[2] == "yes", sys.argv[3] == "yes"
began = time.perf_counter()
connection = socket.create_connection(("127.0.0.1", port))
if is_proxied:
    connection.sendall(b"CONNECT bench.example.com:443 HTTP/1.1\\r\\n\\r\\n")
    while not connection.recv(1) == b"\\n" or not connection.recv(2) == b"\\r\\n":
        pass
if is_tls:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = context.wrap_socket(connection, suppress_ragged_eofs=True)
buffer = bytearray(1 << 20)
total = 0
while count := connection.recv_into(buffer):
    total += count
print(total / (time.perf_counter() - began) / 1e6)
"""


def rows(work: Path) -> list[Row]:
    if os.uname().sysname != "Linux":
        return []
    return [added(work), rate(work, is_tls=True), rate(work, is_tls=False), at_once(work)]


def added(work: Path) -> Row:
    folder = work / "skills" / "runs"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: runs\ndescription: Scripts to measure.\n---\n")
    (folder / "scripts" / "noop.sh").write_text(":\n")
    cold = replace(REQUIRED, warm="off")  # like against like: what hosts add to walls that go up
    policies = {"walls": cold, "hosts": replace(cold, allowed_hosts=("api.example.com",))}
    with contextlib.ExitStack() as held:
        managers = {
            name: held.enter_context(
                SkillManager("", "", [], [work / "skills"], policy=policy, state_dir=work / "state")
            )
            for name, policy in policies.items()
        }
        timings = measure({name: partial(run, each) for name, each in managers.items()}, 40)
    more = timings.p50("hosts") - timings.p50("walls")
    return Row("added by hosts to a walled run, p50", more, 5, 5, "ms", timings.detail("hosts", "walls"), why=WHY_ADDED)


def run(manager: SkillManager) -> None:
    manager.execute_skill_script("runs", "noop.sh")


def rate(work: Path, *, is_tls: bool) -> Row:
    """Server, proxy and client in processes of their own, as in a run; each pair of rounds is compared for itself."""
    with serving(work, is_tls=is_tls) as server, proxying(server) as proxy:
        direct, proxied = [], []
        for _ in range(ROUNDS):
            direct.append(megabytes_a_second(server, is_proxied=False, is_tls=is_tls))
            proxied.append(megabytes_a_second(proxy, is_proxied=True, is_tls=is_tls))
    ratio = statistics.median(through / by_itself for through, by_itself in zip(proxied, direct, strict=True))
    must = 0.7 if is_tls else 0.35
    what = f"{'TLS' if is_tls else 'plain'} through the proxy / direct, on loopback"
    detail = f"{statistics.median(proxied):.0f} MB/s against {statistics.median(direct):.0f} MB/s"
    return Row(what, ratio, must, must, detail=detail, at_least=True, why=WHY_RATE)


def at_once(work: Path) -> Row:
    """All are open before the first is read to its end."""
    with serving(work, is_tls=False, megabytes=1) as server, proxying(server) as proxy, contextlib.ExitStack() as held:
        connections = [held.enter_context(socket.create_connection(("127.0.0.1", proxy))) for _ in range(AT_ONCE)]
        for each in connections:
            each.sendall(b"CONNECT bench.example.com:443 HTTP/1.1\r\n\r\n")
        whole = sum(_count(each) >= 1 << 20 for each in connections)
    return Row("connections at once, each answered whole", whole, AT_ONCE, AT_ONCE, "", at_least=True)


def _count(connection: socket.socket) -> int:
    total = 0
    while data := connection.recv(1 << 18):
        total += len(data)
    return total


def megabytes_a_second(port: int, *, is_proxied: bool, is_tls: bool) -> float:
    words = [sys.executable, "-c", CLIENT, str(port), *("yes" if each else "no" for each in (is_proxied, is_tls))]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


@contextlib.contextmanager
def serving(work: Path, *, is_tls: bool, megabytes: int = MEGABYTES) -> Iterator[int]:
    certificate = ""
    if is_tls:
        import trustme

        certificate = str(work / "server.pem")
        issued = trustme.CA().issue_cert("bench.example.com")
        Path(certificate).write_bytes(issued.private_key_pem.bytes() + issued.cert_chain_pems[0].bytes())
    words = [sys.executable, "-c", SERVER, certificate, str(megabytes)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield int(server.stdout.readline() if server.stdout else 0)
        finally:
            server.kill()


@contextlib.contextmanager
def proxying(server: int) -> Iterator[int]:
    """A name that leads to the server: this machine's own addresses are closed to runs, so it is said here."""
    before = getattr(proxies, "allowed_addresses")  # noqa: B009
    setattr(proxies, "allowed_addresses", lambda *_, **__: [("127.0.0.1", server)])  # noqa: B010
    proxy = proxies.Proxy([HostRule.parse("bench.example.com")])
    try:
        with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
            thread = threading.Thread(target=proxy.serve, args=(listener,))
            thread.start()
            yield listener.getsockname()[1]
            proxy.close()
            thread.join(10)
    finally:
        setattr(proxies, "allowed_addresses", before)  # noqa: B010
