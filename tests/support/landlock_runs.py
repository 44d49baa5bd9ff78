"""A small real runner for the Landlock tier: descriptors for the contents, a session, pipes, the marker."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import skillkit
from skillkit.core.run.sandbox import landlock
from skillkit.core.run.sandbox.base import Confined, Reach, descriptor

NOBODY = 65_534
IS_ROOT = os.geteuid() == 0
NEEDS_LANDLOCK = pytest.mark.skipif(landlock.abi() < 1, reason="this kernel has no Landlock")
PATH = "/usr/local/bin:/usr/bin:/bin"


def system_python() -> str:
    """One that an ordinary user can run as well, wherever the tests' own python lives."""
    for name in ("python3", "python3.11", "python3.12", "python3.13"):
        found = shutil.which(name, path="/usr/bin:/usr/local/bin")
        if found and subprocess.run([found, "-I", "-S", "-c", "import ctypes"], check=False).returncode == 0:
            return found
    return sys.executable


PYTHON = system_python()
PREFIX = () if PYTHON.startswith("/usr/") else (sys.base_prefix, sysconfig.get_path("stdlib"))


@dataclass(slots=True)
class Place:
    """A skill, a work folder and the user's things, in a folder that an ordinary user owns."""

    root: Path
    user: int | None
    parts: str
    """Where a copy of the keeper lies that every user can read."""
    skill: Path = field(init=False)
    work: Path = field(init=False)
    outside: Path = field(init=False)

    def __post_init__(self) -> None:
        self.skill, self.work, self.outside = (self.folder(name) for name in ("skill", "work", "outside"))

    def folder(self, name: str) -> Path:
        made = self.root / name
        made.mkdir(parents=True)
        self.give(made)
        return made

    def file(self, name: str, content: str = "secret\n", mode: int = 0o644) -> Path:
        path = self.root / name
        path.write_text(content)
        path.chmod(mode)
        self.give(path)
        return path

    def give(self, path: Path) -> None:
        if self.user is not None:
            os.chown(path, self.user, self.user)

    def walls(self, **changes: Any) -> Reach:
        walls = Reach(skill=str(self.skill), snapshot=None, work=str(self.work), interpreter=PREFIX)
        return replace(walls, **changes)

    def environment(self) -> dict[str, str]:
        return {"PATH": PATH, "LANG": "C.UTF-8", "HOME": str(self.outside), "SKILLKIT_RUN": "0123456789abcdef"}

    def confined(self, argv: tuple[str, ...], *, version: int | None = None, **changes: Any) -> Confined:
        sandbox = landlock.LandlockSandbox(
            PYTHON, version=landlock.abi() if version is None else version, is_root=self.user is None and IS_ROOT
        )
        made = sandbox.confine(argv, str(self.skill), self.environment(), self.walls(**changes))
        return made._replace(argv=tuple(self.parts if each == landlock.PARTS else each for each in made.argv))

    def run(
        self,
        *argv: str,
        stdin: bytes = b"",
        version: int | None = None,
        pass_fds: tuple[int, ...] = (),
        **changes: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Inside the walls, to its end."""
        confined = self.confined(argv, version=version, **changes)
        with self.started(confined, pass_fds=pass_fds) as process:
            out, err = process.communicate(stdin, timeout=60)
        return subprocess.CompletedProcess(argv, process.returncode, out.decode(), err.decode())

    def run_bare(self, *argv: str, stdin: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
        """Without walls: what a positive control does, never as root."""
        return subprocess.run(
            argv,
            stdin=stdin,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.skill,
            env=self.environment(),
            user=self.user,
            group=self.user,
            extra_groups=None if self.user is None else [],
            start_new_session=True,
            timeout=60,
        )

    @contextmanager
    def started(
        self, confined: Confined, *, pass_fds: tuple[int, ...] = (), stdin: int = subprocess.PIPE
    ) -> Iterator[subprocess.Popen[bytes]]:
        """As a runner starts it; on leaving, its group is killed and nothing more is done."""
        with descriptors(confined.contents) as numbers:
            places: dict[str, str] = {descriptor(at): str(number) for at, number in enumerate(numbers)}
            process = subprocess.Popen(
                [places.get(each, each) for each in confined.argv],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=confined.cwd,
                env=dict(confined.environment),
                pass_fds=(*numbers, *pass_fds),
                start_new_session=True,
                user=self.user,
                group=self.user,
                extra_groups=None if self.user is None else [],
            )
        with process:
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, 9)


@contextmanager
def descriptors(contents: tuple[bytes, ...]) -> Iterator[tuple[int, ...]]:
    numbers = []
    try:
        for content in contents:
            numbers.append(os.memfd_create("content"))
            os.write(numbers[-1], content)
        yield tuple(numbers)
    finally:
        for number in numbers:
            os.close(number)


@contextmanager
def place(*, user: int | None) -> Iterator[Place]:
    """Under the system's temporary folder: pytest's own are closed to other users."""
    with tempfile.TemporaryDirectory(prefix="skillkit-test-") as name:
        root = Path(name)
        root.chmod(0o755)
        parts = root / "parts"
        shutil.copytree(
            Path(skillkit.__file__).parent / "core/run/sandbox",
            parts / "sandbox",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        yield Place(root, user, str(parts))


def users() -> list[int | None]:
    """Whom the tests run scripts as: themselves and, when that is root, an ordinary user too."""
    return [NOBODY, None] if IS_ROOT else [None]


def name_of(user: int | None) -> str:
    return "root" if user is None and IS_ROOT else "user"


def alive(marker: str) -> list[int]:
    """Processes with `marker` on their command line; a zombie has none."""
    found = []
    for name in os.listdir("/proc"):
        with suppress(OSError, ValueError):
            if marker.encode() in Path(f"/proc/{int(name)}/cmdline").read_bytes():
                found.append(int(name))
    return found
