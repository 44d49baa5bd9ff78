"""Makers and watchers for tests that run real scripts: skills, managers, records, processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from skillkit import TRUSTED, ScriptPolicy, SkillManager
from skillkit.core.record import AuditLog, Record
from skillkit.core.store.state import StateStore
from support.skill_folders import skill_folder

__all__ = [
    "STORM",
    "anybody_runs",
    "beats_go_on",
    "kinds",
    "made_manager",
    "needs",
    "only_record",
    "ordinary_user",
    "records_of",
    "runnable",
    "said_by_user",
    "wait_for",
]

# Three chains; each process leaves its session, forks and ends after 2 ms, and leaves a beat behind.
STORM = """
import os, sys, time
beats = sys.argv[1]
stop, until = os.path.join(beats, "stop"), time.monotonic() + 30
def chain(number):
    while time.monotonic() < until and not os.path.exists(stop):
        os.setsid()
        with open(f"{beats}/{number}", "ab") as file:
            file.write(b".")
        time.sleep(0.002)
        if os.fork():
            os._exit(0)
    os._exit(0)
for number in range(3):
    if os.fork() == 0:
        chain(number)
while sum(os.path.exists(f"{beats}/{number}") for number in range(3)) < 3:
    time.sleep(0.005)
print("raging", flush=True)
time.sleep(float(sys.argv[2]))
"""


def needs(program: str) -> None:
    """Skips where the program is missing; on a build machine that would hide something, so it fails."""
    if shutil.which(program) is None:
        if os.environ.get("CI"):
            pytest.fail(f"{program} is not installed")
        pytest.skip(f"{program} is not installed")


def made_manager(
    folder: Path,
    files: Mapping[str, str] | None = None,
    *,
    frontmatter: str | None = None,
    policy: ScriptPolicy | None = TRUSTED,
    **settings: Any,
) -> SkillManager:
    """A manager of one skill, `folder/skills/demo`; it runs without walls unless another policy is given."""
    skill_folder(folder / "skills", "demo", frontmatter=frontmatter, files=files or {})
    settings.setdefault("state_dir", folder / "state")
    return SkillManager(folder / "skills", "", [], [], policy=policy, **settings)


@contextmanager
def runnable(folder: Path, text: str, *, name: str = "scripts/run.sh", **settings: Any) -> Iterator[SkillManager]:
    """A manager whose one skill has one script."""
    with made_manager(folder, {name: textwrap.dedent(text)}, **settings) as manager:
        yield manager


def records_of(folder: Path) -> list[Record]:
    """Everything on record in `folder/state`."""
    store = StateStore(folder / "state")
    try:
        return list(AuditLog(store).records())
    finally:
        store.close()


def kinds(folder: Path) -> list[str]:
    return [record.kind for record in records_of(folder)]


def only_record(folder: Path, kind: str) -> Mapping[str, Any]:
    """The fields of the one record of this kind."""
    (fields,) = [record.fields for record in records_of(folder) if record.kind == kind]
    return fields


def wait_for(condition: Callable[[], object], seconds: float = 10) -> bool:
    """Whether it comes true in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def anybody_runs(mark: str) -> list[int]:
    """Processes that have `mark` on their command line or in their environment, except this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                said = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            except OSError:
                continue
            if mark.encode() in said:
                found.append(int(entry.name))
    return found


def beats_go_on(folder: Path) -> bool:
    """Whether a storm that beats in `folder` is still alive."""

    def beats() -> int:
        return sum(file.stat().st_size for file in folder.iterdir())

    before = beats()
    time.sleep(0.1)
    return beats() != before


@contextmanager
def ordinary_user() -> Iterator[Path]:
    """A folder that an ordinary user owns, for `said_by_user`; the test's own user unless that is root."""
    with tempfile.TemporaryDirectory() as folder:
        if os.getuid() == 0:
            os.chmod(folder, 0o755)
            os.chown(folder, 65534, 65534)
        yield Path(folder)
        for path, names, _ in os.walk(folder):
            for name in names:
                os.chmod(os.path.join(path, name), 0o755, follow_symlinks=True)


def said_by_user(code: str, folder: Path) -> str:
    """What a program prints that runs as an ordinary user in `folder`, with skillkit at hand."""
    libraries = folder / "libraries"
    if not libraries.exists():
        copy_libraries(libraries)
    is_root = os.getuid() == 0
    program = "/usr/bin/python3" if is_root else sys.executable
    if is_root and not Path(program).exists():
        pytest.skip("no system-wide python3 that another user could run")
    ended = subprocess.run(
        [program, "-c", textwrap.dedent(code)],
        user=65534 if is_root else None,
        group=65534 if is_root else None,
        extra_groups=[] if is_root else None,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "PYTHONPATH": str(libraries), "TMPDIR": str(folder)},
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def copy_libraries(target: Path) -> None:
    """skillkit and the pure parts of what it imports, readable by everybody."""
    import platformdirs
    import yaml

    import skillkit

    for module in (skillkit, yaml, platformdirs):
        assert module.__file__ is not None
        source = Path(module.__file__).parent
        shutil.copytree(source, target / source.name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for path, _, names in os.walk(target):
        os.chmod(path, 0o755)
        for name in names:
            os.chmod(os.path.join(path, name), 0o644)
