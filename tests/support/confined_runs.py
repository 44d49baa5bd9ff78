"""Runs confined commands for real: descriptors for contents, an own session, an unprivileged user when root."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from skillkit.core.run.process.spawn import FIRST_FREE_FD
from skillkit.core.run.sandbox.base import Confined, Reach, Sandbox, descriptor
from skillkit.core.run.sandbox.bubblewrap import BubblewrapSandbox
from skillkit.core.run.sandbox.machine import this_machine
from skillkit.core.values.runs import Isolation

__all__ = [
    "ENVIRONMENT",
    "NOBODY",
    "Room",
    "bubblewrap",
    "bubblewrap_refusal",
    "ended",
    "open_folder",
    "probe",
    "started",
    "users",
]

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
NOBODY = 65534


def started(
    confined: Confined, *, pass_fds: tuple[int, ...] = (), user: int | None = None, stdin: int = subprocess.DEVNULL
) -> subprocess.Popen[str]:
    """The process, in a session of its own; each content is a descriptor of the same number on both sides."""
    files = []
    for content in confined.contents:
        low = os.memfd_create("content")
        os.write(low, content)
        os.lseek(low, 0, os.SEEK_SET)
        files.append(fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE_FD))
        os.close(low)
    places: dict[str, str] = {descriptor(number): str(fd) for number, fd in enumerate(files)}
    try:
        return subprocess.Popen(
            [places.get(word, word) for word in confined.argv],
            cwd=confined.cwd,
            env=dict(confined.environment),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
            pass_fds=(*files, *pass_fds),
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
    finally:
        for fd in files:
            os.close(fd)


def ended(process: subprocess.Popen[str], *, timeout: float = 60) -> tuple[int, str, str]:
    """Status, output and errors; when the process is over, whatever is left of its group is killed."""
    outputs: list[str] = []
    reader = threading.Thread(target=lambda: outputs.extend(process.communicate()))
    reader.start()
    end = time.monotonic() + timeout
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    reader.join(timeout=10)
    assert len(outputs) == 2, "somebody out of reach keeps the output open"
    return process.returncode, outputs[0], outputs[1]


def probe(confined: Confined) -> tuple[int, str]:
    status, _, stderr = ended(started(confined))
    return status, stderr


def bubblewrap(*, user: int | None = None, dies_with_thread: bool = False) -> BubblewrapSandbox:
    """For the user that runs the tests, or for another when root runs them."""
    machine = this_machine()
    if user is not None:
        machine = replace(machine, uid=user, gid=user, is_root=False)
    return BubblewrapSandbox(
        program=shutil.which("bwrap") or "/usr/bin/bwrap",
        prlimit=shutil.which("prlimit") or "/usr/bin/prlimit",
        stat=shutil.which("stat") or "/usr/bin/stat",
        machine=machine,
        dies_with_thread=dies_with_thread,
    )


@cache
def bubblewrap_refusal() -> str:
    """Why bubblewrap does not work here; empty when it does."""
    try:
        walls = Reach(skill="/usr", snapshot=None, work="/var/tmp", interpreter=())
        status, stderr = probe(bubblewrap().confine(("/bin/true",), "/", ENVIRONMENT, walls))
    except OSError as error:
        return str(error)
    return stderr or f"status {status}" if status else ""


def users() -> list[int | None]:
    """Who runs attacks: the user of the tests, and nobody when that is root."""
    return [None, NOBODY] if os.getuid() == 0 else [None]


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter, removed afterwards."""
    path = Path(tempfile.mkdtemp(prefix="skillkit-room-"))
    path.chmod(0o755)
    try:
        yield path.resolve()
    finally:
        shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Room:
    """A skill, a work folder and a place outside, all owned by the user that runs there; None: the tests' own."""

    root: Path
    sandbox: Sandbox
    walls: Reach
    user: int | None = None

    @classmethod
    def made(cls, root: Path, *, user: int | None = None, dies_with_thread: bool = False) -> Room:
        for name in ("skill", "work", "outside"):
            (root / name).mkdir()
        room = cls(
            root,
            bubblewrap(user=user, dies_with_thread=dies_with_thread),
            Reach(skill=str(root / "skill"), snapshot=None, work=str(root / "work"), interpreter=()),
            user,
        )
        room.hand_over()
        return room

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    @property
    def skill(self) -> Path:
        return self.root / "skill"

    @property
    def work(self) -> Path:
        return self.root / "work"

    def hand_over(self) -> None:
        """Everything belongs to the user of the room."""
        if self.user is not None:
            for path in (self.root, *self.root.rglob("*")):
                os.chown(path, self.user, self.user, follow_symlinks=False)

    def with_walls(self, **walls: object) -> Room:
        return replace(self, walls=replace(self.walls, **walls))  # type: ignore[arg-type] # the fields of Reach

    def confined(self, *argv: str) -> Confined:
        return self.sandbox.confine(argv, str(self.skill), ENVIRONMENT, self.walls)

    def bare(self, *argv: str) -> Confined:
        environment = {**ENVIRONMENT, "HOME": str(self.work), "TMPDIR": str(self.work)}
        return Confined(argv, str(self.skill), environment, (), Isolation())

    def start(self, confined: Confined, *, pass_fds: tuple[int, ...] = ()) -> subprocess.Popen[str]:
        return started(confined, user=self.user, pass_fds=pass_fds)

    def run(self, *argv: str, timeout: float = 60) -> tuple[int, str, str]:
        """Inside the walls: status, output, errors."""
        return ended(self.start(self.confined(*argv)), timeout=timeout)

    def run_warm(self, *argv: str, script_arguments: tuple[str, ...] = (), timeout: float = 60) -> tuple[int, str, str]:
        """The same as `run` in walls that stood before, with a Python that waited in them."""
        from skillkit.core.run.process import run_confined
        from skillkit.core.run.sandbox.waiting import attaching, walls_ahead
        from skillkit.core.run.warm import python
        from skillkit.core.run.warm.spare import Request, Spare, Told

        assert isinstance(self.sandbox, BubblewrapSandbox)
        waiting = walls_ahead(self.sandbox, argv, ENVIRONMENT, self.walls, python.hook(is_renamed=True))
        assert waiting, "it cannot wait"
        nothing: Any = None
        spare = Spare(nothing, waiting, python.request, self.work, ExitStack(), waiting.confined, lambda: None)
        try:
            imports = (("json", ()), ("socket", ()), ("subprocess", ()))
            order = {"imports": imports, "shadows": (), "own_only": False, "is_renamed": True}
            spare.start(python.framed(order), has_input=False)
            until = time.monotonic() + timeout
            while not spare.is_ready and time.monotonic() < until:
                spare.look(0.05)
            assert (spare.is_ready, spare.is_spoiled, spare.done) == (True, False, 3)
            environment = self.confined(*argv).environment
            told = Told((*argv, *script_arguments), script_arguments, environment, str(self.skill), 60)
            attached = attaching(self.sandbox, waiting, self.walls)
            request = Request(attached, told.names, python.request(told, {}))
            ahead = spare.hand_over(request, lambda: False, lambda _: None)
            assert ahead, "it was not taken"
            ran = run_confined(waiting.confined, b"", timeout, 1_000_000, ahead=ahead)
            return ran.status, ran.stdout.decode(errors="replace"), ran.stderr.decode(errors="replace")
        finally:
            spare.end()

    def run_bare(self, *argv: str, timeout: float = 60) -> tuple[int, str, str]:
        """Without walls, never as root: the control that shows that an attack works at all."""
        assert self.user or os.getuid(), "a control is never run as root"
        return ended(self.start(self.bare(*argv)), timeout=timeout)
