"""Packages of Node, with a registry of our own on loopback, in either kind of walls."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from support.running import needs

from skillkit.core.manager import SkillManager
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import Choice
from skillkit.core.run.tiers import machine_tiers
from skillkit.packages.prepare import prepare_packages
from skillkit.testing import ScriptedApprover, skill_folder

REQUIRE, IMPORT = "console.log(require('zebra'))", "import zebra from 'zebra'; console.log(zebra)"


def package(mark: Path) -> bytes:
    """Its install script would leave a mark."""
    packed = io.BytesIO()
    manifest = {"name": "zebra", "version": "1.0.0", "main": "i.js", "scripts": {"install": f"touch {mark}"}}
    with tarfile.open(fileobj=packed, mode="w:gz") as file:
        for path, text in (("package.json", json.dumps(manifest)), ("i.js", "module.exports = 'striped'")):
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size = len(text)
            file.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


@contextmanager
def registry(mark: Path) -> Iterator[str]:
    packed = package(mark)

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
            dist = {"tarball": f"{address}/zebra/-/zebra-1.0.0.tgz", "integrity": integrity, "unpackedSize": 4321}
            version = {"name": "zebra", "version": "1.0.0", "dist": dist, "hasInstallScript": True}
            page = {"name": "zebra", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
            page["time"] = {"1.0.0": "2020-01-01T00:00:00.000Z"}
            body = packed if self.path.endswith(".tgz") else json.dumps(page).encode()
            self.send_response(200 if self.path.startswith("/zebra") else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_packages_of_node_are_found_by_require_and_import_and_their_install_scripts_do_not_run(
    manager: SkillManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("npm")
    files = {"package.json": '{"dependencies": {"zebra": "^1.0.0"}}', "scripts/a.js": REQUIRE, "scripts/b.mjs": IMPORT}
    skill_folder(manager.roots[0].path, "animals", files)
    with registry(tmp_path / "ran") as address:
        monkeypatch.setenv("npm_config_registry", address)
        approver = ScriptedApprover("yes_once")
        prepare_packages(manager, "animals", approver=approver)
    assert "zebra 1.0.0, 4 kB" in approver.requests[0].message
    assert "declared in package.json:1" in approver.requests[0].message
    assert not (tmp_path / "ran").exists()
    for script in ("a.js", "b.mjs"):
        result = manager.execute_skill_script("animals", script)
        assert result.stdout == "striped\n", result.stderr
    landlock = next((each.sandbox for each in machine_tiers() if each.tier == "landlock"), None)
    if landlock is not None:
        monkeypatch.setattr(tiers, "this_machines", Choice({"landlock": lambda: landlock}))
        with SkillManager(
            "", "", [], [tmp_path / "skills"], policy=manager.policy, state_dir=tmp_path / "state"
        ) as other:
            found = other.execute_skill_script("animals", "a.js")
            assert found.stdout == "striped\n", found.stderr
            assert any("require() alone" in note for note in found.isolation.degraded)
            assert not other.execute_skill_script("animals", "b.mjs").success
