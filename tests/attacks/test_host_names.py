"""Names that lie and ways past the proxy: a run reaches public hosts or what was opened, whatever it tries.

Each case stands in a small network of its own (`support.small_internet`) with hosts at real addresses, the machine's own
services and the places where clouds keep keys; the control beside it is a plain connection, which reaches them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from support import small_internet
from support.small_internet import HOSTS, HOSTS_6, METADATA, OWN_6, OWN_PUBLIC, PRIVATE, PUBLIC, PUBLIC_6, RESOLVER

from skillkit.testing import skill_folder

WALLS = ("unshare", "--user", "--map-root-user", "--net", "--mount")
PROGRAM = Path(small_internet.__file__)
WAYS = """
import socket, sys
kind, target, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
try:
    if kind == "proxied":
        s = socket.create_connection(("127.0.0.1", 3128), 10)
        s.sendall(f"CONNECT {target}:{port} HTTP/1.1\\r\\n\\r\\n".encode())
        lines = s.makefile().read().splitlines()
        print(lines[-1])
    elif kind == "tcp":
        print(socket.create_connection((target, port), 5).makefile().readline())
    elif kind == "udp":
        s = socket.socket(socket.AF_INET6 if ":" in target else socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(3)
        s.sendto(b"hello", (target, port))
        print(s.recv(100).decode())
    elif kind == "name":
        print("at", socket.getaddrinfo(target, port)[0][4][0])
except OSError as error:
    print("closed:", error)
"""
TRANSLATED = "64:ff9b::a14:1e28"
NAMES: dict[str, list[list[str]]] = {
    "public": [[PUBLIC]],
    "public6": [[PUBLIC_6]],
    "private": [[PRIVATE]],
    "private6": [["fc00::40"]],
    "mixed": [[PRIVATE, "127.0.0.1", PUBLIC]],
    "alias": [[f"=inner.corp.internal,{PRIVATE}"]],
    "mapped": [[f"::ffff:{PRIVATE}"]],
    "translated": [[TRANSLATED]],
    "loopback": [["127.0.0.1"]],
    "other-loopback": [["127.9.9.9"]],
    "loopback6": [["::1"]],
    "mapped-loopback": [["::ffff:127.0.0.1"]],
    "zero": [["0.0.0.0"]],
    "own": [[OWN_PUBLIC]],
    "own6": [[OWN_6]],
    "metadata": [[METADATA]],
    **{f"keys{number}": [[address]] for number, address in enumerate((*HOSTS[2:], *HOSTS_6[1:4]))},
    # Public when it is judged, and something else for who asks again; and the other way round.
    "turns": [[PUBLIC], [PRIVATE]],
    "turned": [[PRIVATE], [PUBLIC]],
}
CLOSED = [
    *("loopback", "other-loopback", "loopback6", "mapped-loopback", "zero", "own", "own6", "metadata"),
    *(name for name in NAMES if name.startswith("keys")),
]


def can_build() -> bool:
    if sys.platform != "linux":
        return False
    probe = [*WALLS, "ip", "link", "add", "near", "type", "veth", "peer", "name", "far"]
    try:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


pytestmark = pytest.mark.skipif(not can_build(), reason="no network of one's own can be made here")


class Internet:
    """Asks one question after the other."""

    def __init__(self, program: subprocess.Popen[str]) -> None:
        assert program.stdin is not None
        assert program.stdout is not None
        self._in: IO[str] = program.stdin
        self._out: IO[str] = program.stdout

    def ask(self, *words: object) -> list[str]:
        print(json.dumps(words), file=self._in, flush=True)
        found: list[str] = json.loads(self._out.readline())
        return found

    def plainly(self, authority: str) -> str:
        return self.ask([], authority)[0]

    def run(self, rules: list[str], *argv: str) -> list[str]:
        return self.ask(rules, "", *argv)

    def through(self, rule: str, authority: str) -> list[str]:
        return self.ask([rule], authority)


@pytest.fixture(scope="module")
def internet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Internet]:
    folder = tmp_path_factory.mktemp("internet")
    skill_folder(folder / "skills", "net", files={"scripts/out.py": WAYS})
    words = [*WALLS, sys.executable, str(PROGRAM), str(folder)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin is not None
        print(
            json.dumps({f"{name}.example.com": found for name, found in NAMES.items()}), file=program.stdin, flush=True
        )
        yield Internet(program)
        program.stdin.close()
        assert program.wait(30) == 0


def host(name: str, port: int = 443) -> str:
    return f"{name}.example.com:{port}"


def test_public_names_are_reached_and_private_ones_where_that_was_opened(internet: Internet) -> None:
    assert internet.through("public.example.com", host("public")) == [f"at {PUBLIC}", ""]
    assert internet.through("*", host("public6")) == [f"at {PUBLIC_6}", ""]
    assert internet.through("private.example.com private", host("private")) == [f"at {PRIVATE}", ""]
    assert internet.through("*.example.com private", host("private6")) == ["at fc00::40", ""]
    assert internet.through("public.example.com:8443", host("public", 8443)) == [f"at {PUBLIC}", ""]
    assert internet.through("public.example.com", host("public", 8443))[0] == "403"
    assert internet.through("public.example.com:8443", host("public"))[0] == "403"
    assert internet.plainly(host("public", 8443)) == f"at {PUBLIC}", "the control"


@pytest.mark.parametrize("rule", ["*", "*.example.com", "{}.example.com"])
def test_a_name_that_leads_into_a_private_network_is_refused(internet: Internet, rule: str) -> None:
    for name in ("private", "private6", "alias", "mapped", "translated"):
        said, refused = internet.through(rule.format(name), host(name))
        assert said == "403", name
        assert "is not a public address" in refused
        assert internet.plainly(host(name)).startswith("at "), "the control"


@pytest.mark.parametrize("rule", ["*", "*.example.com", "{}.example.com", "{}.example.com private"])
def test_nothing_leads_to_this_machine_or_to_where_clouds_keep_keys(internet: Internet, rule: str) -> None:
    for name in CLOSED:
        assert internet.through(rule.format(name), host(name))[0] == "403", name
        assert internet.plainly(host(name)).startswith("at "), f"the control: {name}"


@pytest.mark.parametrize("address", [OWN_PUBLIC, f"[{OWN_6}]", METADATA, "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"])
def test_nor_does_an_address_that_is_named_itself(internet: Internet, address: str) -> None:
    for private in ("", " private"):
        assert internet.through(f"{address}{private}", f"{address}:443")[0] == "403"
    assert internet.plainly(f"{address}:443").startswith("at "), "the control"


def test_a_name_with_many_addresses_leads_to_its_public_ones_only(internet: Internet) -> None:
    for _ in range(5):
        assert internet.through("mixed.example.com", host("mixed")) == [f"at {PUBLIC}", ""]


def test_a_name_that_changes_between_the_look_and_the_connection_changes_nothing(internet: Internet) -> None:
    assert internet.through("turns.example.com", host("turns")) == [f"at {PUBLIC}", ""]
    assert internet.plainly(host("turns")) == f"at {PRIVATE}", "the control: who asks again is led elsewhere"
    assert internet.through("turns.example.com", host("turns"))[0] == "403", "each connection is judged for itself"
    assert internet.through("turned.example.com", host("turned"))[0] == "403"


def test_a_script_is_not_told_what_the_names_of_this_network_lead_to(internet: Internet) -> None:
    said, refused = internet.through("*", host("private"))
    assert PRIVATE in refused, "people are"
    assert PRIVATE not in said


@pytest.mark.parametrize(
    ("kind", "target", "port"),
    [
        ("tcp", PUBLIC, 443),
        ("tcp", PUBLIC, 8443),
        ("tcp", PUBLIC_6, 443),
        ("tcp", "public.example.com", 443),
        ("tcp", METADATA, 80),
        ("tcp", "fd00:ec2::254", 80),
        ("tcp", PRIVATE, 443),
        ("tcp", "fc00::40", 443),
        ("tcp", "127.0.0.1", 443),
        ("tcp", "::1", 443),
        ("tcp", OWN_PUBLIC, 443),
        ("tcp", "0.0.0.0", 443),
        ("tcp", RESOLVER, 53),
        ("udp", RESOLVER, 53),
        ("udp", PUBLIC, 53),
        ("udp", PUBLIC_6, 53),
        ("name", "public.example.com", 443),
    ],
)
def test_whatever_goes_past_the_proxy_finds_no_network(internet: Internet, kind: str, target: str, port: int) -> None:
    said = internet.run(["public.example.com", "*"], kind, target, str(port))
    assert said[0].startswith("closed: "), said
    control = internet.run([], kind, target, str(port))
    assert control[0].startswith(("at ", "heard ")), f"the control: {control}"


def test_a_whole_run_reaches_the_name_that_was_opened_and_no_other(internet: Internet) -> None:
    rules = ["public.example.com"]
    assert internet.run(rules, "proxied", "public.example.com", "443") == [f"at {PUBLIC}", "", ""]
    for target, port in (("public6.example.com", "443"), ("public.example.com", "8443"), (PUBLIC, "443")):
        said, _, refused = internet.run(rules, "proxied", target, port)
        assert "is not among the hosts" in said
        assert "is not among the hosts" in refused
