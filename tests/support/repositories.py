"""Real git repositories, a real https server for them with a certificate of the test's own, and a server that hangs."""

from __future__ import annotations

import contextlib
import http.server
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Self

import trustme

__all__ = ["Repository", "hanging_port", "https_site", "skill_text"]

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "somebody@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def skill_text(name: str, body: str = "Do it.") -> str:
    return f"---\nname: {name}\ndescription: Skill {name}. Use it in tests.\n---\n{body}\n"


class Repository:
    """One with a work tree, as an author has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main", ".")
        self.git("config", "uploadpack.allowAnySHA1InWant", "true")

    @classmethod
    def at(cls, folder: Path) -> Self:
        """One that is there already."""
        made = cls.__new__(cls)
        made.folder = folder
        return made

    @property
    def url(self) -> str:
        return f"file://{self.folder}"

    def git(self, *words: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.folder, env=ENVIRONMENT, input=stdin, capture_output=True, check=True
        )
        return done.stdout.decode().strip()

    def commit(self, files: Mapping[str, str | bytes] | None = None, *, message: str = "more") -> str:
        """Writes these, and takes everything in; the commit's name."""
        for path, text in (files or {}).items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode() if isinstance(text, str) else text)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def add_skill(self, name: str, files: Mapping[str, str | bytes] | None = None, *, body: str = "Do it.") -> str:
        inside = {f"skills/{name}/{path}": text for path, text in (files or {}).items()}
        return self.commit({f"skills/{name}/SKILL.md": skill_text(name, body), **inside})

    def commit_entries(self, entries: list[tuple[str, str, bytes]]) -> str:
        """Mode, path and content, whatever a work tree could not hold."""
        listing = b""
        for mode, path, content in entries:
            name = content.decode() if mode == "160000" else self.git("hash-object", "-w", "--stdin", stdin=content)
            listing += f"{mode} {name}\t".encode() + os.fsencode(path) + b"\0"
        self.git("update-index", "--add", "-z", "--index-info", stdin=listing)
        commit = self.git("commit-tree", self.git("write-tree"), "-m", "made", stdin=b"")
        self.git("update-ref", "refs/heads/main", commit)
        return commit


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Files as they are; what lies below a `.git` is given to git's own server program."""

    def do_GET(self) -> None:
        self._by_git() if ".git/" in self.path else super().do_GET()

    def do_POST(self) -> None:
        self._by_git()

    def _by_git(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if b"command=fetch" in body and self.server.before_pack:  # type: ignore[attr-defined]
            self.server.before_pack()  # type: ignore[attr-defined]
        environment = {
            **ENVIRONMENT,
            **self.server.variables,  # type: ignore[attr-defined]
            "GIT_PROJECT_ROOT": str(self.directory),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], env=environment, input=body, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def https_site(
    folder: Path,
    authority: trustme.CA,
    before_pack: Callable[[], None] | None = None,
    variables: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Its address, with what lies in the folder.

    `before_pack` is called when a client that was told the refs asks for what is in them; `variables` are for git.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost", "skills.example.com").configure_cert(context)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder))) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.before_pack, server.variables = before_pack, variables or {}  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"https://localhost:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join(10)


@contextlib.contextmanager
def hanging_port() -> Iterator[int]:
    """Connections are taken, and nothing is ever said."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]
