"""How a world's programs find the page that serves it."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from skillkit.core.exceptions import ConfigurationError
from skillkit.web.approver import LocalPage
from skillkit.web.presence import announce, kept_port, running_page

ADDRESS = "http://127.0.0.1:1"


def test_a_page_is_found_while_it_serves(tmp_path: Path) -> None:
    assert running_page(tmp_path) is None
    with announce(tmp_path, ADDRESS, "token"):
        found = running_page(tmp_path)
        assert found is not None
        assert (found.address, found.pid, found.token) == (ADDRESS, os.getpid(), "token")
    assert list(tmp_path.iterdir()) == []


def test_only_the_owner_can_read_its_token(tmp_path: Path) -> None:
    with announce(tmp_path / "state", ADDRESS, "token"):
        (file,) = (tmp_path / "state").iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert "token" not in repr(running_page(tmp_path / "state"))[:-1].replace("token=", "")


def test_one_whose_process_died_is_none(tmp_path: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from skillkit.web.presence import announce
with announce(Path(sys.argv[1]), "http://127.0.0.1:1", "token"):
    os._exit(0)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=30, env=environment)
    assert (tmp_path / "page.json").exists()
    assert running_page(tmp_path) is None


def test_a_later_process_with_the_same_number_is_not_taken_for_it(tmp_path: Path) -> None:
    with announce(tmp_path, ADDRESS, "token"):
        fields = json.loads((tmp_path / "page.json").read_text())
        (tmp_path / "page.json").write_text(json.dumps({**fields, "started": "1"}))
        assert running_page(tmp_path) is None


def test_a_damaged_file_is_none(tmp_path: Path) -> None:
    for text in ("", "[]", "{}", '{"address": 1}', "\0"):
        (tmp_path / "page.json").write_text(text)
        assert running_page(tmp_path) is None


def test_who_came_later_keeps_its_file_when_the_first_ends(tmp_path: Path) -> None:
    with announce(tmp_path, ADDRESS, "first"):
        first = (tmp_path / "page.json").read_text()
        (tmp_path / "page.json").write_text(first.replace("first", "second"))
    assert (tmp_path / "page.json").exists()


def test_a_page_that_ends_leaves_those_that_live_found(tmp_path: Path) -> None:
    with announce(tmp_path, f"{ADDRESS}1", "first"):
        second, third = announce(tmp_path, f"{ADDRESS}2", "second"), announce(tmp_path, f"{ADDRESS}3", "third")
        second.__enter__()
        third.__enter__()
        assert [_token(tmp_path), _token(tmp_path, 12)] == ["third", "second"]
        second.__exit__(None, None, None)
        assert [_token(tmp_path), _token(tmp_path, 12)] == ["third", ""]
        third.__exit__(None, None, None)
        assert _token(tmp_path) == "first", "and not who ended before"
    assert list(tmp_path.iterdir()) == []


def _token(folder: Path, port: int = 0) -> str:
    found = running_page(folder, port)
    return found.token if found else ""


def test_the_page_that_lives_on_is_found_when_one_with_a_named_port_ended(tmp_path: Path) -> None:
    with LocalPage(tmp_path) as first, LocalPage(tmp_path) as late:
        address = first.address()
        with LocalPage(tmp_path) as between:
            assert between.serve().address != address
        assert late.address() == address
        assert late.link().startswith(address)
        assert not late.is_ours


def test_a_page_that_does_not_answer_gives_no_link(tmp_path: Path) -> None:
    with announce(tmp_path, ADDRESS, "token"):
        found = running_page(tmp_path)
        assert found is not None
        assert found.new_link() == ""


def test_a_page_comes_back_where_it_was(tmp_path: Path) -> None:
    addresses = []
    for _ in range(2):
        with LocalPage(tmp_path) as page:
            addresses.append(page.address())
    assert addresses[0] == addresses[1]


def test_where_another_program_took_its_port_it_goes_elsewhere(tmp_path: Path) -> None:
    with LocalPage(tmp_path) as page:
        before = page.address()
    with socket.create_server(("127.0.0.1", kept_port(tmp_path))), LocalPage(tmp_path) as page:
        assert page.address() != before
        assert page.address().endswith(f":{kept_port(tmp_path)}")


def test_a_named_port_is_kept_too_and_never_given_up_for_another(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with LocalPage(tmp_path, port=port) as page, pytest.raises(ConfigurationError, match="Nothing can listen"):
            page.serve()


def test_a_damaged_port_is_none(tmp_path: Path) -> None:
    for text in ("", "x", "0", "-1", "65536", "\u00b2"):
        (tmp_path / "page-port").write_text(text)
        assert kept_port(tmp_path) == 0
