"""A program of the user's listens on a socket in a folder that scripts may use; no script reaches it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.running import made_manager

from skillkit import STANDARD, TRUSTED, ScriptPolicy

WALLS = replace(STANDARD, sandbox="required")
# Waits for a mark if it is told to, binds, renames, and says when somebody comes.
SERVER = """
import os, socket, sys, time
bound, final, mark, kind = sys.argv[1:]
print("started", flush=True)
until = time.monotonic() + 20
while mark and not os.path.exists(mark) and time.monotonic() < until:
    time.sleep(0.01)
server = socket.socket(socket.AF_UNIX, getattr(socket, kind))
os.chdir(os.path.dirname(bound))
server.bind(os.path.basename(bound))
if kind != "SOCK_DGRAM":
    server.listen()
os.rename(bound, final)
print("listening", flush=True)
server.settimeout(20)
server.recv(1) if kind == "SOCK_DGRAM" else server.accept()
print("reached", flush=True)
"""
# A stream, a datagram from a socket of its own, and one from a pair, which needs no connection.
CLIENT = """
import os, socket, sys, time
path, mark = sys.argv[1:3]
if mark:
    open(mark, "w").close()
until = time.monotonic() + 10
while not os.path.exists(path) and time.monotonic() < until:
    time.sleep(0.01)
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
    for make in (socket.socket, lambda *a: socket.socketpair(*a)[0]):
        try:
            made = make(socket.AF_UNIX, kind)
            made.sendto(b"x", path) if kind == socket.SOCK_DGRAM else made.connect(path)
            print("got in")
        except OSError as error:
            print(type(error).__name__)
"""
ANOTHER_NETWORK = ("--unshare-user", "--unshare-net", "--die-with-parent", "--dev-bind", "/", "/")
CASES = {
    "there before": ("SOCK_STREAM", "socket", "", ()),
    "renamed in": ("SOCK_STREAM", "../other", "", ()),
    "made during the run": ("SOCK_STREAM", "socket", "mark", ()),
    "of packets": ("SOCK_SEQPACKET", "../other", "mark", ()),
    "of datagrams": ("SOCK_DGRAM", "../other", "mark", ()),
    "of another network": ("SOCK_STREAM", "socket", "", ANOTHER_NETWORK),
}


@contextmanager
def serving(folder: Path, name: str) -> Iterator[subprocess.Popen[str]]:
    """A program that listens on `folder/socket`, by the way that the case names."""
    kind, bound, mark, apart = CASES[name]
    if apart and shutil.which("bwrap") is None:
        pytest.skip("no bubblewrap to make another network with")
    words = [sys.executable, "-I", "-c", SERVER, str((folder / bound).resolve()), str(folder / "socket")]
    words += [str(folder / mark) if mark else "", kind]
    started = subprocess.Popen(["bwrap", *apart, *words] if apart else words, stdout=subprocess.PIPE, text=True)
    try:
        assert started.stdout is not None
        assert started.stdout.readline() == "started\n"
        if not mark:
            assert started.stdout.readline() == "listening\n"
        yield started
    finally:
        started.kill()
        started.communicate()


def was_reached(folder: Path, name: str, policy: ScriptPolicy, **settings: Any) -> bool:
    """Whether a script that knows the way got in; said by the server, not by the script."""
    shared = folder / "shared"
    shared.mkdir()
    mark = str(shared / "mark") if CASES[name][2] else ""
    files = {"scripts/run.py": CLIENT}
    with serving(shared, name) as server, made_manager(folder, files, policy=policy, **settings) as manager:
        result = manager.execute_skill_script("demo", "run", argv=[str(shared / "socket"), mark])
        assert result.stdout, result.stderr
        says_so = "got in" in result.stdout
        if says_so:  # then it has somebody to tell of, and ends by itself
            server.wait(20)
        server.kill()
        assert server.stdout is not None
        assert ("reached" in server.stdout.read()) == says_so
        return says_so


@pytest.mark.parametrize("name", CASES)
def test_control_without_walls_the_socket_answers(tmp_path: Path, name: str) -> None:
    assert was_reached(tmp_path, name, TRUSTED)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("tier")
def test_a_socket_in_the_workspace_does_not_answer(tmp_path: Path, name: str) -> None:
    assert not was_reached(tmp_path, name, WALLS, workspace=tmp_path / "shared")


@pytest.mark.parametrize("name", ["there before", "renamed in"])
@pytest.mark.parametrize("key", ["readable_paths", "writable_paths"])
@pytest.mark.usefixtures("tier")
def test_a_socket_in_a_folder_of_the_policy_does_not_answer(tmp_path: Path, name: str, key: str) -> None:
    paths: Mapping[str, Any] = {key: (tmp_path / "shared",)}
    assert not was_reached(tmp_path, name, replace(WALLS, **paths))


@pytest.mark.usefixtures("tier")
def test_a_socket_that_an_argument_names_does_not_answer(tmp_path: Path) -> None:
    assert not was_reached(tmp_path, "renamed in", WALLS)


def test_where_no_folder_of_the_users_is_open_a_script_may_use_sockets_of_its_own(tmp_path: Path) -> None:
    script = "import socket, os\ns = socket.socket(socket.AF_UNIX); s.bind(os.environ['SKILL_WORK_DIR'] + '/s')\n"
    with made_manager(tmp_path, {"scripts/run.py": script}, policy=WALLS) as manager:
        result = manager.execute_skill_script("demo", "run")
    is_open = result.isolation.tier == "bubblewrap"
    assert (result.exit_code == 0) == is_open
    assert ("unix sockets inside the walls" in result.isolation.network) == is_open
