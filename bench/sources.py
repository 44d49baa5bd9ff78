"""How long it takes to add a repository of many skills, against git's own shallow clone of it, both over loopback."""

from __future__ import annotations

import contextlib
import http.server
import itertools
import os
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import trustme

from bench.folders import make_skills
from bench.runner import Row, measure

SKILLS = 1_000
ROUNDS = 3
IDENTITY = {f"GIT_{who}_{what}": "bench" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
WHY = "Python starts, reads every SKILL.md, hashes every file, and notes each skill in lock and state"


class _Handler(http.server.BaseHTTPRequestHandler):
    """Gives every request to git's own server program."""

    def __init__(self, root: Path, *given: object) -> None:
        self._root = root
        super().__init__(*given)  # type: ignore[arg-type]  # the server's own

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        environment = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(self._root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        done = subprocess.run(["git", "http-backend"], env=environment, input=body, capture_output=True, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        length = f"\r\nContent-Length: {len(content)}\r\n\r\n".encode()
        self.wfile.write(b"HTTP/1.0 200 OK\r\n" + head + length + content)

    do_POST = do_GET  # noqa: N815 - the library's name

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def _served(root: Path, authority: trustme.CA) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, root)) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"https://localhost:{server.server_address[1]}/skills.git"
        server.shutdown()
        thread.join()


def _repository(work: Path) -> Path:
    """Bare, with one commit."""
    made = work / "repository"
    make_skills(made / "skills", SKILLS)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "skills"], ["repack", "-adq"]):
        subprocess.run(["git", *words], cwd=made, env={**os.environ, **IDENTITY}, check=True)
    (work / "served").mkdir()
    (made / ".git").rename(work / "served/skills.git")
    return work / "served"


def rows(work: Path) -> list[Row]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(work / "authority.pem"))
    environment = {
        **os.environ,
        "GIT_SSL_CAINFO": str(work / "authority.pem"),
        "SKILLKIT_STATE_DIR": str(work / "state"),
    }
    numbers = itertools.count()

    def run(*argv: str) -> None:
        folder = work / f"target-{next(numbers)}"
        folder.mkdir()
        subprocess.run(argv, cwd=folder, env=environment, check=True, capture_output=True)

    def forget() -> None:
        for folder in work.glob("target-*"):
            shutil.rmtree(folder)

    with _served(_repository(work), authority) as url:
        candidates = {
            "add": partial(run, sys.executable, "-m", "skillkit", "add", url),
            "clone": partial(run, "git", "clone", "-q", "--depth", "1", url, "copy"),
        }
        timings = measure(candidates, ROUNDS, prepare=forget)
    what = f"`skillkit add` of {SKILLS:,} skills against `git clone --depth 1`, https on loopback"
    ratio, detail = timings.ratio("add", "clone"), timings.detail("add", "clone")
    return [Row(what, ratio, must=1.5, goal=1.2, detail=detail, why=WHY)]
