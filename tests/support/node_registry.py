"""A registry of Node packages on loopback: what tests put there, and what it was asked for."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

__all__ = ["NodeRegistry", "integrity_of", "packed", "serving_node_packages", "shrinkwrap"]

DAY = 86_400


def packed(manifest: Mapping[str, object], files: Mapping[str, str]) -> bytes:
    """As npm packs it."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for path, text in {"package.json": json.dumps(manifest), **files}.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return content.getvalue()


def integrity_of(content: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


def shrinkwrap(needs: Mapping[str, str], entries: Mapping[str, Mapping[str, str]]) -> str:
    """What a package may carry to say which others it gets."""
    top = {"name": "wrapper", "version": "1.0.0", "dependencies": needs}
    inside = {f"node_modules/{name}": entry for name, entry in entries.items()}
    return json.dumps({"lockfileVersion": 3, "requires": True, "packages": {"": top, **inside}})


@dataclass
class NodeRegistry:
    """What it has, how old that is, and where it says that its files are."""

    address: str = ""
    port: int = 0
    files_at: str = ""
    """Begins the addresses of its files; its own address where it is empty."""
    place: str = ""
    """The path that it lies below."""
    asked: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    pages: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(
        self,
        name: str,
        version: str,
        says: str,
        *,
        needs: Mapping[str, str] | None = None,
        age_days: float = 1000,
        size: int = 4321,
        shrinkwrapped: str = "",
        **manifest: object,
    ) -> str:
        """A package that gives what `says` says in JavaScript; its integrity."""
        described = {"name": name, "version": version, "main": "i.js", "dependencies": dict(needs or {}), **manifest}
        files = {"i.js": f"module.exports = {says}"}
        content = packed(described, files | ({"npm-shrinkwrap.json": shrinkwrapped} if shrinkwrapped else {}))
        path = f"/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"
        self.files[path] = content
        page = self.pages.setdefault(name, {"name": name, "dist-tags": {}, "versions": {}, "time": {}})
        dist = {"tarball": path, "integrity": integrity_of(content), "unpackedSize": size}
        flags = {"_hasShrinkwrap": True} if shrinkwrapped else {}
        page["versions"][version] = {**described, "dist": dist, **flags}
        page["dist-tags"]["latest"] = version
        moment = datetime.fromtimestamp(time.time() - age_days * DAY, UTC)
        page["time"][version] = moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        return str(dist["integrity"])

    def answer(self, path: str) -> tuple[int, bytes]:
        self.asked.append(path)
        if not path.startswith(self.place):
            return 404, b"{}"
        path = path.removeprefix(self.place)
        if path in self.files:
            return 200, self.files[path]
        if (page := self.pages.get(path.strip("/"))) is None:
            return 404, b"{}"
        told = json.loads(json.dumps(page))
        for version in told["versions"].values():
            version["dist"]["tarball"] = f"{self.files_at or self.address}{version['dist']['tarball']}"
        return 200, json.dumps(told).encode()


@contextmanager
def serving_node_packages() -> Iterator[NodeRegistry]:
    registry = NodeRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content = registry.answer(unquote(self.path))
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    registry.port = server.server_port
    registry.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
