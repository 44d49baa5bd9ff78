"""Inside walls with a network of their own: a run reaches what it starts itself, and nothing else."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from support.running import made_manager

from skillkit import STANDARD, TRUSTED, ScriptExecutionResult

WALLS = replace(STANDARD, sandbox="required")
OPEN = replace(WALLS, allow_network=True)
SERVER = """
import http.server, threading, urllib.request
for host in ("localhost", "127.0.0.1"):
    server = http.server.ThreadingHTTPServer((host, 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(urllib.request.urlopen(f"http://{host}:{server.server_port}/SKILL.md").status)
"""
# What connects is said; what is not allowed says why.
REACHING = """
import socket, sys
kinds = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}
for target in sys.argv[1:]:
    kind, host, port = target.split(",")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.socket(family, kinds[kind])
        made.settimeout(5)
        made.connect((host, int(port)))
        made.send(b"hello")
        print(target, "sent")
    except OSError as error:
        print(target, type(error).__name__, error.errno)
"""
NAMES = """
import socket, sys
for name in sys.argv[1:]:
    try:
        print(name, socket.getaddrinfo(name, 80)[0][4][0])
    except OSError as error:
        print(name, "unknown")
"""
KINDS = """
import socket
for family, kind, protocol in (
    (socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET, socket.SOCK_DGRAM, 1), (socket.AF_PACKET, socket.SOCK_RAW, 3),
    (socket.AF_NETLINK, socket.SOCK_RAW, 0), (40, socket.SOCK_STREAM, 0), (socket.AF_INET, socket.SOCK_SEQPACKET, 132),
    (socket.AF_INET, socket.SOCK_STREAM, 262),
):
    try:
        socket.socket(family, kind, protocol)
        print("made", family, kind, protocol)
    except OSError as error:
        print(error.errno)
"""


def run(folder: Path, text: str, *words: str, policy: object = WALLS) -> ScriptExecutionResult:
    with made_manager(folder, {"scripts/run.py": text}, policy=policy) as manager:  # type: ignore[arg-type]
        return manager.execute_skill_script("demo", "run", argv=words)


@pytest.fixture
def only_bubblewrap(tier: str) -> None:
    if tier != "bubblewrap":
        pytest.skip("only walls with a network of their own")


@contextmanager
def listeners() -> Iterator[tuple[list[str], list[bytes]]]:
    """On the host's loopback, by TCP and UDP: where they are, and what came."""
    came: list[bytes] = []
    tcp, udp = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))

    def take() -> None:
        udp.settimeout(0.2)
        tcp.settimeout(0.2)
        while not done.is_set():
            with suppress(OSError):
                came.append(udp.recv(9))
            with suppress(OSError), tcp.accept()[0] as caller:
                came.append(caller.recv(9))

    done = threading.Event()
    thread = threading.Thread(target=take)
    thread.start()
    try:
        yield [f"tcp,127.0.0.1,{tcp.getsockname()[1]}", f"udp,127.0.0.1,{udp.getsockname()[1]}"], came
    finally:
        done.set()
        thread.join()
        tcp.close()
        udp.close()


@pytest.mark.usefixtures("only_bubblewrap")
def test_a_server_that_a_script_starts_is_reached_by_the_same_run(tmp_path: Path) -> None:
    result = run(tmp_path, SERVER)
    assert result.stdout.split() == ["200", "200"], result.stderr
    assert result.isolation.network.startswith("its own loopback")


def test_the_landlock_tier_keeps_loopback_closed_and_says_so(tmp_path: Path, tier: str) -> None:
    if tier != "landlock":
        pytest.skip("only walls without a network of their own")
    result = run(tmp_path, SERVER)
    assert not result.success
    assert any("loopback is closed" in each for each in result.isolation.degraded)


@pytest.mark.usefixtures("tier")
def test_a_listener_of_the_host_hears_nothing(tmp_path: Path) -> None:
    with listeners() as (targets, came):
        said = run(tmp_path, REACHING, *targets).stdout
    assert "tcp" in said
    assert "sent" not in said.splitlines()[0]
    assert came == []


@pytest.mark.usefixtures("tier")
def test_control_with_a_network_the_listener_hears_it(tmp_path: Path) -> None:
    with listeners() as (targets, came):
        said = run(tmp_path, REACHING, *targets, policy=OPEN).stdout
    assert said.count("sent") == 2
    assert came == [b"hello", b"hello"]


@pytest.mark.usefixtures("only_bubblewrap")
def test_no_other_address_is_there(tmp_path: Path) -> None:
    addresses = (
        "192.0.2.1",
        "10.0.0.1",
        "169.254.169.254",
        "255.255.255.255",
        "224.0.0.1",
        "::2",
        "fe80::1",
        "2001:db8::1",
    )
    targets = [f"{kind},{address},53" for kind in ("tcp", "udp") for address in addresses]
    result = run(tmp_path, REACHING, *targets)
    lines = result.stdout.splitlines()
    assert len(lines) == len(targets), result.stderr
    assert not [line for line in lines if line.endswith("sent")]


@pytest.mark.usefixtures("only_bubblewrap")
def test_only_one_name_is_known_and_others_are_refused_at_once(tmp_path: Path) -> None:
    lines = run(tmp_path, NAMES, "localhost", "example.com", "metadata.google.internal").stdout.splitlines()
    assert lines[0] in ("localhost 127.0.0.1", "localhost ::1")
    assert lines[1:] == ["example.com unknown", "metadata.google.internal unknown"]


@pytest.mark.usefixtures("only_bubblewrap")
def test_no_other_kind_of_socket_is_made(tmp_path: Path) -> None:
    assert set(run(tmp_path, KINDS).stdout.split()) == {"13"}


@pytest.mark.slow
@pytest.mark.usefixtures("only_bubblewrap")
def test_two_runs_do_not_share_a_loopback(tmp_path: Path) -> None:
    serving = (
        "import socket, time\ns = socket.create_server(('127.0.0.1', 45871))\nprint('up', flush=True)\ntime.sleep(3)"
    )
    files = {"scripts/serve.py": serving, "scripts/run.py": REACHING}
    up = threading.Event()
    with made_manager(tmp_path, files, policy=WALLS) as manager:
        thread = threading.Thread(
            target=lambda: manager.execute_skill_script("demo", "serve", on_output=lambda *_: up.set())
        )
        thread.start()
        assert up.wait(20)
        said = manager.execute_skill_script("demo", "run", argv=["tcp,127.0.0.1,45871"]).stdout
        thread.join()
    assert "ConnectionRefusedError" in said


UNIX = """
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind("/tmp/x.sock")
server.listen()
client = socket.socket(socket.AF_UNIX)
client.connect("/tmp/x.sock")
print("own")
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    for make in (socket.socket, lambda *words: socket.socketpair(*words)[0]):
        try:
            made = make(socket.AF_UNIX, kind)
            made.sendto(b"x", sys.argv[1].replace("@", "\\0")) if kind == socket.SOCK_DGRAM else made.connect(
                sys.argv[1].replace("@", "\\0"))
            print("REACHED")
        except OSError as error:
            print(error.errno)
"""


@pytest.mark.usefixtures("only_bubblewrap")
@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_with_a_network_unix_sockets_work_among_themselves_only(tmp_path: Path, kind: socket.SocketKind) -> None:
    with socket.socket(socket.AF_UNIX, kind) as host:
        host.bind(f"\0skillkit-{tmp_path.name}")
        if kind == socket.SOCK_STREAM:
            host.listen()
        result = run(tmp_path, UNIX, f"@skillkit-{tmp_path.name}", policy=OPEN)
        script = UNIX.replace("/tmp/x.sock", str(tmp_path / "x.sock"))
        control = run(tmp_path / "control", script, f"@skillkit-{tmp_path.name}", policy=TRUSTED)
    if "without unix sockets" in result.isolation.network:
        pytest.skip("this kernel cannot tell whose abstract sockets are whose")
    assert "own" in result.stdout, result.stderr
    assert "REACHED" not in result.stdout
    assert "REACHED" in control.stdout, control.stderr
