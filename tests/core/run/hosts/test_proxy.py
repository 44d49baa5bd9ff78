"""The proxy of a run: which hosts it reaches, whatever a client says to it, and that it stands under load and abuse."""

from __future__ import annotations

import contextlib
import resource
import socket
import threading
import time
from pathlib import Path

import pytest
from support.network import answer_http, echo, listening, many_open_files
from support.proxies import ALLOWED, dial, outside, reaching, read_all, said_to, serving, tunnel
from support.running import wait_for

from skillkit.core.run.hosts.proxy import MOST_AT_ONCE, OTHERS, Proxy
from skillkit.core.run.hosts.upstream import Upstream, Upstreams
from skillkit.core.values.hosts import HostRule, HostUse


def test_a_listed_host_is_reached_and_counted() -> None:
    with reaching(echo, "api.example.com:443") as (there, proxy, port):
        with tunnel(port, "api.example.com:443") as connection:
            connection.sendall(b"hello")
            connection.shutdown(socket.SHUT_WR)
            assert read_all(connection) == b"hello"
        proxy.close()
        assert there.asked == ["api.example.com:443"]
        (use,) = proxy.used()
        assert use == HostUse("api.example.com:443", "", 1, 5, 5, via=use.via)
        assert use.via.startswith("127.0.0.1:"), "whose proxy resolved the name is on record"


@pytest.mark.parametrize(
    "authority",
    [
        *(
            "evil.example.com:443",
            "api.example.com:22",
            "api.example.com:8443",
            "example.org:443",
            "xapi.example.com:443",
        ),
        *("other.example.com:443", "127.0.0.1:443", "[::1]:443", "localhost:443", "169.254.169.254:80", "10.0.0.1:443"),
        *("api.example.com.evil.test:443", "0.0.0.0:443", "[::ffff:127.0.0.1]:443", "metadata.google.internal:80"),
    ],
)
def test_another_host_or_port_is_refused_by_name(authority: str) -> None:
    with outside({}) as (there, upstreams), serving(*ALLOWED, upstreams=upstreams) as (proxy, port):
        answer = said_to(port, f"CONNECT {authority} HTTP/1.1\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403 ")
        assert b"is not among the hosts that this run may reach" in answer
        assert there.asked == []
        (use,) = proxy.used()
        assert use.refused
        assert (use.connections, use.sent) == (1, 0)


@pytest.mark.parametrize(
    "line",
    [
        *("CONNECT user@api.example.com:443 HTTP/1.1", "CONNECT api.example.com HTTP/1.1", "CONNECT :443 HTTP/1.1"),
        *("CONNECT api.example.com:443@evil.test:443 HTTP/1.1", "CONNECT evil.test:443#api.example.com:443 HTTP/1.1"),
        *("CONNECT api%2eexample.com:443 HTTP/1.1", "CONNECT api.example.com:0443x HTTP/1.1", "GET / HTTP/1.1"),
        *("CONNECT api.example.com:443 evil.test:443 HTTP/1.1", "CONNECT api.example.com:99999 HTTP/1.1", ""),
        *("CONNECT http://api.example.com:443 HTTP/1.1", "CONNECT api.example.com:443 HTTP/2.0", "GARBAGE"),
        *("GET https://api.example.com/ HTTP/1.1", "GET ftp://api.example.com/ HTTP/1.1", "GET http:///x HTTP/1.1"),
        *("GET http://evil.test@api.example.com/ HTTP/1.1", "GET http://api.example.com\\@evil.test/ HTTP/1.1"),
        *(
            "GET http://ex%61mple.org/ HTTP/1.1",
            "GET http://b\u00fccher.example.org/ HTTP/1.1",
            "GET http://0x7f.1/ HTTP/1.1",
        ),
    ],
)
def test_what_can_be_read_in_two_ways_goes_nowhere(line: str) -> None:
    with outside({}) as (there, upstreams), serving(*ALLOWED, upstreams=upstreams) as (_, port):
        answer = said_to(port, f"{line}\r\n\r\n".encode())
        assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 403 "))
        assert there.asked == []


@pytest.mark.parametrize("authority", ["API.Example.COM:443", "api.example.com.:443", "a.b.example.org:443"])
def test_other_spellings_of_a_listed_host_are_that_host(authority: str) -> None:
    known = {"api.example.com:443": 0, "a.b.example.org:443": 0}
    with reaching(echo, *known) as (there, _, port):
        tunnel(port, authority).close()
        assert there.asked[0] in known


def test_a_name_that_leads_to_this_machine_is_refused() -> None:
    with serving("localhost", "127.0.0.1") as (_, port):
        for name in ("localhost", "127.0.0.1"):
            answer = said_to(port, f"CONNECT {name}:443 HTTP/1.1\r\n\r\n".encode())
            assert answer.startswith(b"HTTP/1.1 403 ")
            assert b"not a public address" in answer


def test_a_private_rule_opens_neither_this_machine_nor_its_link_nor_the_place_of_keys() -> None:
    with serving("localhost", "127.0.0.1", "169.254.169.254", "0.0.0.0", is_private=True) as (_, port):
        for name in ("localhost", "127.0.0.1", "169.254.169.254", "0.0.0.0"):
            assert said_to(port, f"CONNECT {name}:443 HTTP/1.1\r\n\r\n".encode()).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "name", ["intranet", "printer.local", "box.home.arpa", "metadata.google.internal", "localhost", "10.0.0.1"]
)
def test_any_host_means_public_ones_where_another_proxy_resolves_too(name: str) -> None:
    with outside({}) as (there, upstreams), serving("*", upstreams=upstreams) as (_, port):
        assert said_to(port, f"CONNECT {name}:443 HTTP/1.1\r\n\r\n".encode()).startswith(b"HTTP/1.1 403 ")
        assert there.asked == []


@pytest.mark.parametrize("name", ["metadata.google.internal", "instance-data.ec2.internal", "a.localhost"])
def test_where_another_proxy_resolves_no_rule_opens_the_place_of_keys_or_this_machine_by_their_names(name: str) -> None:
    rules = (name, "*.google.internal", "*.ec2.internal", "git.team.internal")
    hosts = {f"{name}:80": 1, "git.team.internal:80": 1}
    with outside(hosts) as (there, upstreams), serving(*rules, upstreams=upstreams, is_private=True) as (_, port):
        assert said_to(port, f"CONNECT {name}:80 HTTP/1.1\r\n\r\n".encode()).startswith(b"HTTP/1.1 403 ")
        assert there.asked == []
        said_to(port, b"CONNECT git.team.internal:80 HTTP/1.1\r\n\r\n")
        assert there.asked == ["git.team.internal:80"], "the control"


def test_a_plain_request_goes_to_the_host_of_its_address_whatever_its_host_header_says() -> None:
    seen: list[bytes] = []
    with reaching(answer_http(seen), "api.example.com:80") as (there, _, port):
        request = (
            b"GET http://api.example.com/a?b HTTP/1.1\r\nHost: evil.test\r\nProxy-Authorization: x\r\nX-A: b\r\n\r\n"
        )
        assert said_to(port, request).endswith(b"hello")
        assert there.asked == ["api.example.com:80"]
        assert seen[0].startswith(b"GET /a?b HTTP/1.1\r\nHost: api.example.com\r\nX-A: b\r\n")
        assert b"evil" not in seen[0]
        assert b"Proxy-" not in seen[0]


def test_a_second_request_behind_the_first_goes_nowhere() -> None:
    seen: list[bytes] = []
    with reaching(answer_http(seen), "api.example.com:80") as (_, _, port):
        hidden = b"GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n"
        first = b"POST http://api.example.com/ HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"
        assert b"200 OK" in said_to(port, first + hidden)
        chunked = b"POST http://api.example.com/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n"
        assert b"200 OK" in said_to(port, chunked + hidden)
    assert wait_for(lambda: all(b"body" in each for each in seen)), "a host may answer before it has read all"
    assert all(b"evil" not in each for each in seen)
    assert len(seen) == 2


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked",
        b"Content-Length: 4\r\nContent-Length: 5",
        b"Transfer-Encoding: gzip, chunked",
        b"Content-Length: +4",
        b"Content-Length: 4\r\n folded: x",
        b"Bad Header: x",
        b"X: a\x00b",
        b"no colon",
    ],
)
def test_a_request_whose_length_has_two_readings_goes_nowhere(headers: bytes) -> None:
    with outside({}) as (there, upstreams), serving(*ALLOWED, upstreams=upstreams) as (_, port):
        answer = said_to(port, b"POST http://api.example.com/ HTTP/1.1\r\n" + headers + b"\r\n\r\nbody")
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert there.asked == []


def test_the_machines_own_proxy_gets_its_login_and_the_host_does_not() -> None:
    seen: list[bytes] = []
    with listening(answer_http(seen)) as host, outside({"api.example.com:80": host}) as (there, upstreams):
        login = Upstream("127.0.0.1", upstreams.plain.port if upstreams.plain else 0, b"Basic c2VjcmV0")
        with serving(*ALLOWED, upstreams=Upstreams(login, login)) as (_, port):
            said_to(port, b"GET http://api.example.com/ HTTP/1.1\r\n\r\n")
    assert b"Proxy-Authorization: Basic c2VjcmV0" in there.heads[0]


def test_a_host_that_cannot_be_reached_is_told_apart_from_one_that_may_not() -> None:
    with outside({}) as (_, upstreams), serving(*ALLOWED, upstreams=upstreams) as (proxy, port):
        assert said_to(port, b"CONNECT api.example.com:443 HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 502 ")
        assert "does not lead to" in proxy.used()[0].refused


def test_two_hundred_connections_at_once_each_get_their_own_bytes() -> None:
    with (
        many_open_files(),
        reaching(echo, "api.example.com:443") as (_, proxy, port),
        contextlib.ExitStack() as held,
    ):
        connections = [held.enter_context(tunnel(port, "api.example.com:443")) for _ in range(200)]
        for number, each in enumerate(connections):
            each.sendall(b"%05d" % number * 2000)
        for number, each in enumerate(connections):
            each.shutdown(socket.SHUT_WR)
            assert read_all(each) == b"%05d" % number * 2000
        assert sum(each.connections for each in proxy.used()) == 200


def test_clients_that_say_nothing_hold_up_nobody() -> None:
    with reaching(echo, "api.example.com:443") as (_, _, port), contextlib.ExitStack() as held:
        for _ in range(MOST_AT_ONCE // 2):
            held.enter_context(dial(port)).sendall(b"CONNECT api")
        tunnel(port, "api.example.com:443").close()


def test_one_side_may_be_over_before_the_other() -> None:
    def late(connection: socket.socket) -> None:
        read_all(connection)
        connection.sendall(b"all of it")

    with reaching(late, "api.example.com:443") as (_, _, port), tunnel(port, "api.example.com:443") as connection:
        connection.sendall(b"question")
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection) == b"all of it"


def test_what_a_script_asks_for_in_masses_is_told_in_a_bounded_list() -> None:
    with serving(*ALLOWED) as (proxy, port):
        for number in range(300):
            said_to(port, f"CONNECT host{number}.test:443 HTTP/1.1\r\n\r\n".encode())
        used = proxy.used()
        assert len(used) < 150
        assert used[-1].host == OTHERS
        assert sum(each.connections for each in used) == 300


def test_closing_ends_every_connection_and_thread() -> None:
    before = threading.active_count()
    with reaching(echo, "api.example.com:443") as (_, proxy, port), contextlib.ExitStack() as held:
        connections = [held.enter_context(tunnel(port, "api.example.com:443")) for _ in range(20)]
        proxy.close()
        for each in connections:
            with contextlib.suppress(OSError):
                assert each.recv(1) == b""
    until = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < until:  # the hosts of the test end by themselves
        time.sleep(0.02)
    assert threading.active_count() <= before


@pytest.mark.slow
def test_a_gigabyte_passes_with_flat_memory() -> None:
    total = 1 << 30

    def flood(connection: socket.socket) -> None:
        block = bytes(1 << 20)
        for _ in range(total >> 20):
            connection.sendall(block)

    with reaching(flood, "api.example.com:443") as (_, _, port), tunnel(port, "api.example.com:443") as connection:
        buffer = bytearray(1 << 20)
        for _ in range(16):
            connection.recv_into(buffer)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        while connection.recv_into(buffer):
            pass
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 32 * 1024
    assert Path("/proc/self").exists()


def test_a_service_of_the_users_own_settings_is_reached_on_loopback_and_its_neighbour_is_not() -> None:
    with listening(echo) as service, listening(echo) as neighbour:
        proxy = Proxy([HostRule("127.0.0.1", neighbour, is_private=True)], own_services={("127.0.0.1", service)})
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=proxy.serve, args=(listener,))
            thread.start()
            port = listener.getsockname()[1]
            with tunnel(port, f"127.0.0.1:{service}") as connection:
                connection.sendall(b"hello")
                connection.shutdown(socket.SHUT_WR)
                assert read_all(connection) == b"hello"
            for closed in (f"127.0.0.1:{neighbour}", f"localhost:{service}", "169.254.169.254:80"):
                assert b" 403 " in said_to(port, f"CONNECT {closed} HTTP/1.1\r\n\r\n".encode())
            proxy.close()
            thread.join(10)
