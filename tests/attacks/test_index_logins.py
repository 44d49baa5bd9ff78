"""The login of an index, or of the machine's proxy: whoever an index sends us on to gets none of it."""

from __future__ import annotations

import socket
import ssl
import urllib.request
from base64 import b64encode
from pathlib import Path

import pytest
import trustme
from support.network import Handle, ProxyOutside, answer_http, listening

from skillkit.core.exceptions import SkillKitError
from skillkit.packages.index import files_of_package
from skillkit.packages.pages import read_address
from skillkit.sources.index import download

LOGIN = f"Authorization: Basic {b64encode(b'me:s3cret').decode()}".lower()
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
PAGE = b'<a href="zebra-1.0-py3-none-any.whl">zebra</a>'


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def sending_on(place: str, seen: list[str], elsewhere: str = "/end") -> Handle:
    """Sends whoever asks for anything but `elsewhere` to another place."""

    def handle(connection: socket.socket) -> None:
        head = connection.recv(1 << 16).decode()
        seen.append(head.lower())
        words = f"HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        if head.split(" ")[1].endswith(elsewhere):
            words = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(PAGE), PAGE)
        connection.sendall(words)

    return handle


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"], ids=["another port", "another name"])
def test_the_login_of_an_index_does_not_go_to_the_host_that_it_redirects_to(host: str) -> None:
    asked: list[str] = []
    seen: list[bytes] = []
    with (
        listening(answer_http(seen, PAGE)) as other,
        listening(sending_on(f"http://{host}:{other}/zebra/", asked)) as port,
    ):
        files_of_package("zebra", [f"http://me:s3cret@127.0.0.1:{port}/simple/"])
        assert LOGIN in asked[0]
        assert b"authorization" not in seen[0].lower()
        plain = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"Authorization": "Basic plain"})
        urllib.request.build_opener().open(plain, timeout=10).close()
        assert b"authorization: basic plain" in seen[1].lower(), "the library hands it on"


def test_the_login_stays_where_the_index_sends_to_another_page_of_its_own() -> None:
    asked: list[str] = []
    with listening(sending_on("/other/end", asked)) as port:
        content, _, final = read_address(f"http://me:s3cret@127.0.0.1:{port}/simple/zebra/", "*/*")
    assert (content, final) == (PAGE, f"http://127.0.0.1:{port}/other/end")
    assert [LOGIN in each for each in asked] == [True, True]


@pytest.fixture
def secured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "127.0.0.1", "skills.example.com").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    return context


def over_tls(context: ssl.SSLContext, handle: Handle) -> Handle:
    def handle_secured(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as inner:
            handle(inner)

    return handle_secured


@pytest.mark.parametrize("scheme", ["http", "ftp", "file"])
def test_an_index_that_was_asked_by_https_cannot_send_to_anything_else(secured: ssl.SSLContext, scheme: str) -> None:
    asked: list[str] = []
    seen: list[bytes] = []
    with (
        listening(answer_http(seen, PAGE)) as other,
        listening(over_tls(secured, sending_on(f"{scheme}://127.0.0.1:{other}/zebra/", asked))) as port,
    ):
        with pytest.raises(SkillKitError, match="does not answer: "):
            files_of_package("zebra", [f"https://me:s3cret@127.0.0.1:{port}/simple/"])
        assert (len(asked), seen) == (1, [])
        with listening(over_tls(secured, sending_on("/other/end", asked))) as own:
            assert files_of_package("zebra", [f"https://127.0.0.1:{own}/simple/"])


@pytest.mark.parametrize("kind", ["packages", "sources"])
def test_the_login_of_the_machines_proxy_goes_to_no_host_that_a_redirect_names(
    secured: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The library keeps it among the headers that it sends on; the next host may be one that no proxy leads to."""
    asked: list[str] = []
    seen: list[bytes] = []
    scheme = "https" if kind == "sources" else "http"

    def secure(handle: Handle) -> Handle:
        return over_tls(secured, handle) if kind == "sources" else handle

    with listening(secure(answer_http(seen, PAGE))) as inner:
        first = sending_on(f"{scheme}://127.0.0.1:{inner}/end", asked)
        with listening(secure(first)) as behind:
            outside = ProxyOutside({f"skills.example.com:{443 if kind == 'sources' else 80}": behind})
            with listening(outside) as proxy:
                monkeypatch.setenv(f"{scheme}_proxy", f"http://me:s3cret@127.0.0.1:{proxy}")
                monkeypatch.setenv("no_proxy", "127.0.0.1")
                address = f"{scheme}://skills.example.com/simple/"
                if kind == "sources":
                    assert download(address, 1000, seconds=10) == PAGE
                else:
                    assert read_address(address, "*/*")[0] == PAGE
                urllib.request.build_opener().open(address, timeout=10).close()
    assert LOGIN in outside.heads[0].decode().lower(), "the proxy itself is told"
    assert b"authorization" not in seen[0].lower()
    assert f"proxy-{LOGIN}" in seen[1].decode().lower(), "the library hands it on"
