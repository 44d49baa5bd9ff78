"""More programs that reach the host that was opened and no other: packages of Node, installers, WebSockets."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme
from support.network import NAME, HostWorld, answer_http, host_world, listening
from support.package_index import node_package, wheel
from support.running import needs
from websockets.sync.server import ServerConnection, serve

from skillkit import ScriptExecutionResult
from skillkit.testing import skill_folder

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these walls are of Linux")

EVIL = "evil.example.com"
# As anybody would write it; the version of Node is below the one whose own `fetch` looks at the variables.
NODE_CLIENTS = {
    "undici": "import { EnvHttpProxyAgent, fetch, setGlobalDispatcher } from 'undici'\n"
    "setGlobalDispatcher(new EnvHttpProxyAgent())\n"
    "console.log(await (await fetch('https://HOST/hello.txt')).text())\n",
    "axios": "import axios from 'axios'\nconsole.log((await axios.get('https://HOST/hello.txt')).data)\n",
}
NODE_PACKAGES = ("undici@6.29.1", "axios@1.21.1")
NODE_FETCH = """
const answer = await fetch(process.argv[2])
if (!answer.ok) throw new Error(await answer.text())
console.log(process.versions.node, process.env.NODE_USE_ENV_PROXY, await answer.text())
"""
PAST_THE_PROXY = """
import { spawnSync } from 'node:child_process'
const { NODE_USE_ENV_PROXY, ...rest } = process.env
const ended = spawnSync(process.execPath, ['-e', `fetch('${process.argv[2]}').then(() => console.log('got'))`], { env: rest, stdio: 'inherit' })
process.exit(ended.status)
"""
FETCHING_NODE = "24.21.0"  # the first whose own `fetch` looks at the variables is 24
NODE_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
WEBSOCKET = """
import secrets, sys
from websockets.sync.client import connect
with connect(sys.argv[1], open_timeout=20) as there:
    for word in ("one", secrets.token_hex(150_000)):
        there.send(word)
        assert there.recv() == word
print("talked")
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HostWorld]:
    with host_world(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture(scope="session")
def node_modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("npm")
    folder = tmp_path_factory.mktemp("node")
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    subprocess.run(["npm", "install", "--prefix", folder, *options, *NODE_PACKAGES], check=True, cwd=folder)
    return folder / "node_modules"


@pytest.fixture(scope="session")
def fetching_node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a newer Node than systems have; npm has it as a package for each kind of machine."""
    needs("npm")
    folder = tmp_path_factory.mktemp("newer-node")
    package = f"node-linux-{NODE_MACHINES.get(platform.machine(), platform.machine())}"
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    got = subprocess.run(
        ["npm", "install", "--prefix", folder, *options, f"{package}@{FETCHING_NODE}"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if got.returncode != 0:
        reason = f"npm gives no Node {FETCHING_NODE}: {got.stderr[-500:]}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return folder / "node_modules" / package / "bin"


def require_refused(world: HostWorld, result: ScriptExecutionResult) -> None:
    assert result.exit_code != 0
    assert world.outside.asked == []
    assert [use.refused != "" for use in result.hosts] == [True] * len(result.hosts)
    assert any(EVIL in use.host for use in result.hosts), "it asked, and was told no"


@pytest.mark.slow
@pytest.mark.parametrize("client", NODE_CLIENTS)
def test_clients_of_node_reach_the_host_that_was_opened_and_no_other(
    client: str, node_modules: Path, world: HostWorld
) -> None:
    skill = skill_folder(world.folder / "skills", "net", files={})
    shutil.copytree(node_modules, skill / "node_modules", symlinks=True)
    result = world.run("client.mjs", NODE_CLIENTS[client].replace("HOST", NAME))
    assert result.stdout.strip() == "hello", result.stderr
    assert [use.host for use in result.hosts] == [f"{NAME}:443"]
    world.outside.asked.clear()
    require_refused(world, world.run("client.mjs", NODE_CLIENTS[client].replace("HOST", EVIL)))


@pytest.mark.slow
@pytest.mark.timeout(600)  # a hundred megabytes come first
def test_the_fetch_of_node_itself_reaches_the_host_that_was_opened_and_no_other(
    fetching_node: Path, world: HostWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{fetching_node}:{os.environ['PATH']}")
    with listening(answer_http([])) as plain:
        world.outside.hosts |= {f"{NAME}:80": plain, f"{EVIL}:80": plain}
        for address, port in (("https://HOST/hello.txt", 443), ("http://HOST/hello.txt", 80)):
            world.outside.asked.clear()
            result = world.run("fetch.mjs", NODE_FETCH, address.replace("HOST", NAME))
            assert result.stdout.split() == [FETCHING_NODE, "1", "hello"], result.stderr
            assert [use.host for use in result.hosts] == [f"{NAME}:{port}"]
            world.outside.asked.clear()
            require_refused(world, world.run("fetch.mjs", NODE_FETCH, address.replace("HOST", EVIL)))
            result = world.run("past.mjs", PAST_THE_PROXY, address.replace("HOST", NAME))
            assert (result.success, result.stdout, result.hosts) == (False, "", ()), (
                "who unsets the variable finds nothing"
            )


def publish_wheel(served: Path) -> None:
    """An index of one package, as files."""
    name, content = wheel("zebra", "1.0.0")
    for folder, text in (("simple/zebra", f'<a href="../../files/{name}">{name}</a>'), ("simple", "")):
        (served / folder).mkdir(parents=True, exist_ok=True)
        (served / folder / "index.html").write_text(f"<!doctype html><html><body>{text}</body></html>")
    (served / "files").mkdir()
    (served / "files" / name).write_bytes(content)


@pytest.mark.slow
def test_uv_installs_from_the_host_that_was_opened_and_from_no_other(world: HostWorld) -> None:
    publish_wheel(world.folder / "served")
    text = """
uv pip install --no-config --no-cache --target "$SKILL_WORK_DIR/here" --default-index "https://$1/simple/" zebra &&
ls "$SKILL_WORK_DIR/here" | grep -c '^zebra'
"""
    result = world.run("install.sh", text, NAME)
    assert result.exit_code == 0, result.stderr
    assert int(result.stdout.split()[-1]) >= 1
    assert [use.host for use in result.hosts] == [f"{NAME}:443"]
    world.outside.asked.clear()
    require_refused(world, world.run("install.sh", text, EVIL))


@pytest.mark.slow
def test_npm_installs_from_the_host_that_was_opened_and_from_no_other(world: HostWorld) -> None:
    needs("npm")
    packed = node_package("true")
    (world.folder / "served/zebra.tgz").write_bytes(packed)
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
    dist = {"tarball": f"https://{NAME}/zebra.tgz", "integrity": integrity}
    page = {
        "name": "zebra",
        "dist-tags": {"latest": "1.0.0"},
        "versions": {"1.0.0": {"name": "zebra", "version": "1.0.0", "dist": dist}},
    }
    (world.folder / "served/zebra").write_text(json.dumps(page))
    text = """
cd "$SKILL_WORK_DIR" && npm install --no-audit --no-fund --ignore-scripts --fetch-retries=0 --registry "https://$1/" zebra &&
node -p 'require("zebra")'
"""
    result = world.run("install.sh", text, NAME)
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split()[-1] == "striped"
    assert {use.host for use in result.hosts} == {f"{NAME}:443"}
    world.outside.asked.clear()
    require_refused(world, world.run("install.sh", text, EVIL))


@contextmanager
def websocket_server(secured: ssl.SSLContext | None) -> Iterator[int]:
    def repeat(connection: ServerConnection) -> None:
        for message in connection:
            connection.send(message)

    with serve(repeat, "127.0.0.1", 0, ssl=secured) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.socket.getsockname()[1]
        server.shutdown()
        thread.join(10)


@pytest.mark.parametrize("scheme", ["wss", "ws"])
def test_websockets_reach_the_host_that_was_opened_and_no_other(
    scheme: str, world: HostWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(NAME, EVIL).configure_cert(context)
    authority.cert_pem.write_to_path(str(world.folder / "other.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(world.folder / "other.pem"))
    port = 443 if scheme == "wss" else 80
    with websocket_server(context if scheme == "wss" else None) as there:
        world.outside.hosts |= {f"{NAME}:{port}": there, f"{EVIL}:{port}": there}
        result = world.run("talk.py", WEBSOCKET, f"{scheme}://{NAME}/")
        assert result.stdout.strip() == "talked", result.stderr
        (use,) = result.hosts
        assert use.sent > 150_000
        assert use.received > 150_000
        world.outside.asked.clear()
        require_refused(world, world.run("talk.py", WEBSOCKET, f"{scheme}://{EVIL}/"))
