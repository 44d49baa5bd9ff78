"""The world that every runtime is put into: skills whose scripts try things, a home folder, a secret, a server."""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers.scripts import SCRIPTS

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))
from support.package_index import PackageIndex, serving_index

__all__ = ["FIRSTS", "GRANTED", "LASTS_SECONDS", "OTHER", "OUTPUT_BYTES", "Stage", "staged"]

LASTS_SECONDS = 10
OUTPUT_BYTES = 50_000_000
SECRET_NAME = "DEMO_API_KEY"
SKILL = "---\nname: {name}\ndescription: Scripts to measure a runtime with.\n---\n\nRun the scripts.\n"
GRANTED, OTHER = "granted.example.com", "other.example.com"
FIRSTS = 9
"""How many skills there are with a script that nobody has run, each the same."""


@dataclass(slots=True)
class Stage:
    """What scripts can reach, and whether they did."""

    folder: Path
    index: PackageIndex
    port: int
    programs: Path
    """Where the caller's python3 is."""
    nonce: str = field(default_factory=lambda: f"{secrets.randbelow(10**9):09d}")
    calls: int = 0
    hosts: list[str] = field(default_factory=list)
    """What was asked of the proxy, in order."""

    @property
    def skills(self) -> Path:
        return self.folder / "skills"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def environment(self) -> dict[str, str]:
        """The caller's: no version manager's shim in front of python3, and a secret to find."""
        path = f"{self.programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        # Workers are killed in the end: what they leave goes with the stage.
        places = {"PATH": path, "HOME": str(self.home), "TMPDIR": str(self.folder)}
        outside = {"HTTP_PROXY": f"http://127.0.0.1:{self.port}", "NO_PROXY": "127.0.0.1"}
        return {**places, **outside, "LANG": "C.UTF-8", SECRET_NAME: f"key-{self.nonce}"}

    def lengths(self) -> dict[str, str]:
        """How long each kind of child sleeps: as good as a name, and it is on its command line."""
        kinds = ("foreground", "child", "own_session")
        return {kind: f"{LASTS_SECONDS}.{self.nonce}{number}" for number, kind in enumerate(kinds)}

    def left_behind(self) -> Mapping[int, str]:
        """Processes of scripts that are alive, by id, and which kind of child each is."""
        kinds = {length.encode(): kind.replace("_", " ") for kind, length in self.lengths().items()}
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if words[0] == b"sleep" and (kind := kinds.get(b"".join(words[1:]))):
                    found[int(entry.name)] = kind
        return found

    def clear(self) -> None:
        """Until none is seen: one that is killed is there for a moment longer."""
        until = time.monotonic() + LASTS_SECONDS
        while (found := self.left_behind()) and time.monotonic() < until:
            for process in found:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.01)


@contextmanager
def staged(folder: Path, programs: Path = Path(sys.base_prefix) / "bin") -> Iterator[Stage]:
    """Everything in `folder`, with a server and an index on loopback; no process is left when it ends."""
    with socket.create_server(("127.0.0.1", 0)) as server, serving_index() as index:
        index.add("zebra", "1.0")
        stage = Stage(folder, index, server.getsockname()[1], programs)
        stage.home.mkdir(parents=True)
        (stage.home / "private.txt").write_text(f"private-{stage.nonce}\n")
        make_skills(stage)
        answering = threading.Thread(target=answer_calls, args=(server, stage), daemon=True)
        answering.start()
        try:
            yield stage
        finally:
            stage.clear()
            server.shutdown(socket.SHUT_RDWR)
            answering.join()


def make_skills(stage: Stage) -> None:
    places = {
        "home": stage.home,
        "port": stage.port,
        "index": stage.index.address,
        "secret": SECRET_NAME,
        "output": OUTPUT_BYTES,
        "lasts": LASTS_SECONDS,
        "granted": GRANTED,
        "other": OTHER,
        **stage.lengths(),
    }
    firsts = {f"first-{number}": SCRIPTS["unseen"] for number in range(FIRSTS)}
    for skill, scripts in (SCRIPTS | firsts).items():
        folder = stage.skills / skill
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL.format(name=skill))
        for name, text in scripts.items():
            path = folder / "scripts" / name
            path.write_text(text.format(**places))
            path.chmod(0o755)


def answer_calls(server: socket.socket, stage: Stage) -> None:
    """As a proxy would that has every page there is; whoever says nothing is counted all the same."""
    while True:
        try:
            connection, _ = server.accept()
        except OSError:  # closed: the stage has ended
            return
        stage.calls += 1
        with connection, suppress(OSError):
            connection.settimeout(1)
            asked = re.match(rb"GET http://([^/:]+)", connection.recv(1 << 16))
            if asked:
                stage.hosts.append(asked[1].decode())
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
