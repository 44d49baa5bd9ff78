"""Which index is asked, and which hosts that opens: the user's own word counts, a page's word hardly."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.package_index import PackageIndex

from skillkit.packages.index import Index, files_of_package, hosts_for, python_index
from skillkit.packages.values import PackagesError


@pytest.fixture
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)


@pytest.mark.usefixtures("nothing_set")
def test_what_is_set_for_uv_comes_before_what_is_set_for_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://pip.example.com/simple")
    assert python_index(tmp_path).addresses == ("https://pip.example.com/simple",)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://me:word@uv.example.com/simple")
    monkeypatch.setenv("UV_INDEX", "https://more.example.com/simple")
    index = python_index(tmp_path)
    assert set(index.addresses) == {"https://me:word@uv.example.com/simple", "https://more.example.com/simple"}
    assert not any("word" in name for name in index.names)


@pytest.mark.usefixtures("nothing_set")
def test_the_users_file_for_pip_counts(tmp_path: Path) -> None:
    file = Path.home() / ".config" / "pip" / "pip.conf"
    file.parent.mkdir(parents=True)
    file.write_text("[global]\nindex-url = https://company.example.com/simple\n")
    assert python_index(tmp_path).names == ("company.example.com",)


def test_a_page_cannot_open_another_service_of_this_machine() -> None:
    index = Index(("http://127.0.0.1:8080/simple",))
    pages = [
        "http://127.0.0.1:8080/files/a.whl",
        "http://127.0.0.1:6379/",
        "http://localhost:8080/x",
        "http://[::1]:1/",
    ]
    opened = hosts_for(index, [*pages, "https://files.example.com/a.whl"])
    assert opened.own_services == {("127.0.0.1", 8080)}
    assert opened.rules == ("files.example.com:443",)


def test_a_page_in_html_tells_files_and_hashes(index: PackageIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    index.add("zebra", "1.0")
    text = f'<a href="/files/zebra-1.0-py3-none-any.whl#sha256={"a" * 64}">zebra</a>'.encode()
    monkeypatch.setattr(index, "answer", lambda _: (200, "text/html", text))
    (file,) = files_of_package("zebra", [index.address])
    assert (file.name, file.sha256, file.size) == ("zebra-1.0-py3-none-any.whl", "a" * 64, None)
    monkeypatch.setattr(index, "answer", lambda _: (200, "application/vnd.pypi.simple.v1+json", b"{"))
    with pytest.raises(PackagesError, match="cannot be read"):
        files_of_package("zebra", [index.address])


def test_what_the_pages_of_a_private_index_name_is_elsewhere() -> None:
    """The index itself may be on this machine, since the user named it."""
    index = Index(("http://10.1.2.3:8081/simple",))
    opened = hosts_for(index, ["http://10.1.2.3:8081/files/a.whl", "http://10.1.2.4:8082/a.whl", "http://localhost/a"])
    assert opened.own_services == {("10.1.2.3", 8081)}
    assert opened.other_services == {("10.1.2.4", 8082)}
    assert opened.rules == ()
