"""The world that every runtime is put into: skills whose scripts try things, a home folder, a secret, a server."""

from __future__ import annotations

import os
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

__all__ = ["LASTS_SECONDS", "OUTPUT_BYTES", "Stage", "staged"]

LASTS_SECONDS = 10
OUTPUT_BYTES = 50_000_000
SECRET_NAME = "DEMO_API_KEY"
SKILL = "---\nname: {name}\ndescription: Scripts to measure a runtime with.\n---\n\nRun the scripts.\n"
BASH, PYTHON = "#!/usr/bin/env bash\n", "#!/usr/bin/env python3\n"

# Each script has a name of its own: one of the runtimes does not tell noop.sh from noop.py.
WORK = {
    "noop.sh": BASH + ":\n",
    "pass.py": PYTHON + "pass\n",
    "hang.py": PYTHON + "import time\ntime.sleep({lasts})\n",
    "tree.sh": BASH + "sleep {child} &\nsetsid sleep {own_session} &\nsleep {foreground}\n",
    "daemon.sh": BASH + "sleep {child} >/dev/null 2>&1 &\nsetsid sleep {own_session} >/dev/null 2>&1 &\necho done\n",
    "holder.sh": BASH + "sleep {child} &\necho done\n",
    "flood.sh": BASH + "head -c {output} /dev/zero | tr '\\0' x\n",
    "secret.sh": BASH + 'if [ -n "${secret}" ]; then echo it-is-seen; else echo it-is-absent; fi\n',
    "read.sh": BASH + "cat {home}/private.txt\n",
    "write.sh": BASH + "echo here >{home}/written.txt\n",
    "connect.py": PYTHON + 'import socket\nsocket.create_connection(("127.0.0.1", {port}), 5).close()\n',
}
UNSEEN = {"greet.sh": BASH + "echo it-ran\n"}


@dataclass(slots=True)
class Stage:
    """What scripts can reach, and whether they did."""

    folder: Path
    nonce: str = field(default_factory=lambda: f"{secrets.randbelow(10**9):09d}")
    calls: int = 0

    @property
    def skills(self) -> Path:
        return self.folder / "skills"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def environment(self) -> dict[str, str]:
        """The caller's: no version manager's shim in front of python3, and a secret to find."""
        path = f"{Path(sys.base_prefix) / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        # Workers are killed in the end: what they leave goes with the stage.
        places = {"PATH": path, "HOME": str(self.home), "TMPDIR": str(self.folder)}
        return {**places, "LANG": "C.UTF-8", SECRET_NAME: f"key-{self.nonce}"}

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
def staged(folder: Path) -> Iterator[Stage]:
    """Everything in `folder`, with a server on loopback; no process is left when it ends."""
    stage = Stage(folder)
    stage.home.mkdir(parents=True)
    (stage.home / "private.txt").write_text(f"private-{stage.nonce}\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        places = {
            "home": stage.home,
            "port": server.getsockname()[1],
            "secret": SECRET_NAME,
            "output": OUTPUT_BYTES,
            "lasts": LASTS_SECONDS,
            **stage.lengths(),
        }
        make_skill(stage.skills / "work", {name: text.format(**places) for name, text in WORK.items()})
        make_skill(stage.skills / "unseen", UNSEEN)
        answering = threading.Thread(target=count_calls, args=(server, stage), daemon=True)
        answering.start()
        try:
            yield stage
        finally:
            stage.clear()
            server.shutdown(socket.SHUT_RDWR)
            answering.join()


def make_skill(folder: Path, scripts: Mapping[str, str]) -> None:
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL.format(name=folder.name))
    for name, text in scripts.items():
        path = folder / "scripts" / name
        path.write_text(text)
        path.chmod(0o755)


def count_calls(server: socket.socket, stage: Stage) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:  # closed: the stage has ended
            return
        connection.close()
        stage.calls += 1
