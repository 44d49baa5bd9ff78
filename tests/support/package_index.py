"""An index of packages on loopback: wheels that tests make, served as JSON or HTML, or not at all."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import ssl
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from support.node_registry import packed, serving_node_packages

DAY = 86_400


def wheel(
    name: str,
    version: str,
    code: str = "",
    needs: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
    build: str = "",
) -> tuple[str, bytes]:
    """File name and content of a wheel with one module of the package's own name, and `files` beside it."""
    module, info = name.replace("-", "_"), f"{name.replace('-', '_')}-{version}.dist-info"
    requires = "".join(f"Requires-Dist: {each}\n" for each in needs)
    files = {
        **(files or {}),
        f"{module}.py": code or f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        + (f"Build: {build}\n" if build else ""),
    }
    rows = [f"{path},sha256={_digest(text)},{len(text)}" for path, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join((*rows, f"{info}/RECORD,,", ""))
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path, text in files.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return f"{module}-{version}{f'-{build}' if build else ''}-py3-none-any.whl", content.getvalue()


BUILD = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def source_package(name: str, version: str, backend: str) -> tuple[str, bytes]:
    """Whoever builds it imports `backend`."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for path, text in (
            ("backend.py", backend),
            ("pyproject.toml", BUILD),
            ("PKG-INFO", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"),
        ):
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return f"{name}-{version}.tar.gz", content.getvalue()


def _digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


@dataclass
class PackageIndex:
    """What it has, how old that is, and what it was asked for."""

    address: str = ""
    port: int = 0
    packages: dict[str, dict[str, bytes]] = field(default_factory=dict)
    age_days: float = 100
    ages: dict[str, float] = field(default_factory=dict)
    """Of single files."""
    tells_times: bool = True
    hangs: bool = False
    hangs_at: str = "/"
    """Only what begins with this hangs."""
    hangs_after: str = ""
    """It begins to hang when it is asked for this."""
    is_hanging: threading.Event = field(default_factory=threading.Event)
    swapped: dict[str, bytes] = field(default_factory=dict)
    """Content that is served under a file's name instead of what its page says."""
    asked: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def add(self, name: str, version: str, code: str = "", needs: Sequence[str] = (), **more: Any) -> str:
        """Its file's name."""
        file, content = wheel(name, version, code, needs, **more)
        self.packages.setdefault(name, {})[file] = content
        return file

    def add_source(self, name: str, version: str, backend: str) -> None:
        self.packages.setdefault(name, {}).update([source_package(name, version, backend)])

    def page(self, name: str) -> bytes:
        files = [
            {
                "filename": file,
                "url": f"../../files/{file}",
                "hashes": {"sha256": hashlib.sha256(content).hexdigest()},
                **({"size": len(content), "upload-time": self._moment(file)} if self.tells_times else {}),
            }
            for file, content in self.packages[name].items()
        ]
        return json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": files}).encode()

    def _moment(self, file: str) -> str:
        then = time.time() - self.ages.get(file, self.age_days) * DAY
        return datetime.fromtimestamp(then, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def answer(self, path: str) -> tuple[int, str, bytes]:
        self.asked.append(path)
        kind, _, name = path.strip("/").partition("/")
        if kind == "simple" and name in self.packages:
            return 200, "application/vnd.pypi.simple.v1+json", self.page(name)
        for files in self.packages.values():
            if kind == "files" and name in files:
                return 200, "application/octet-stream", self.swapped.get(name, files[name])
        return (200 if path == self.hangs_after else 404), "text/plain", b"no such thing"


@contextmanager
def serving_index(secured: ssl.SSLContext | None = None) -> Iterator[PackageIndex]:
    """On loopback; with a certificate where `secured` has one."""
    index = PackageIndex()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.hangs = index.hangs or self.path == index.hangs_after
            if index.hangs and self.path.startswith(index.hangs_at):
                index.is_hanging.set()
                index.stopping.wait(60)
                if index.hangs:
                    return
            status, kind, content = index.answer(self.path)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if secured is not None:
        server.socket = secured.wrap_socket(server.socket, server_side=True)
    index.port = server.server_port
    index.address = f"http://127.0.0.1:{server.server_port}/simple/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        index.stopping.set()
        server.shutdown()
        server.server_close()
        thread.join()


def node_package(install: str) -> bytes:
    """`zebra` 1.0.0, with a script that npm runs when it is installed."""
    manifest = {"name": "zebra", "version": "1.0.0", "main": "i.js", "scripts": {"install": install}}
    return packed(manifest, {"i.js": "module.exports = 'striped'"})


@contextmanager
def serving_registry(install: str) -> Iterator[str]:
    """A registry of Node packages that has `zebra` with that script and nothing else; its address."""
    with serving_node_packages() as registry:
        registry.add("zebra", "1.0.0", "'striped'", scripts={"install": install}, hasInstallScript=True)
        yield registry.address


@contextmanager
def only_index(monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    """The one that packages come from, whatever the settings of this machine say."""
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    with serving_index() as served:
        monkeypatch.setenv("UV_DEFAULT_INDEX", served.address)
        yield served
