"""A skill's modules and the interpreter that will use them -> what is kept of them, and what a run is given of it."""

from __future__ import annotations

import io
import json
import marshal
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from skillkit.core.run.process import run_confined
from skillkit.core.run.sandbox.base import Confined, Reach, Sandbox
from skillkit.core.run.work import WorkFolders
from skillkit.core.values.policy import Limits
from skillkit.core.values.runs import Manifest, ScriptCommand

__all__ = ["LONGEST_SECONDS", "Job", "Preface", "has_modules", "loaded", "made"]

COMPILE_SECONDS = 5.0
LONGEST_SECONDS = 10.0
ATTEMPTS = 3
MOST_FILES = 500
LARGEST_TABLE = 4_000_000
OUTPUT_BYTES = 16_000_000
LENGTH_BYTES = 8
FIELDS = 5
# Of a compiled file: that it is taken unseen, and two numbers that mean nothing then.
UNCHECKED = (1).to_bytes(4, "little") + bytes(8)


@dataclass(frozen=True)
class Preface:
    """What a run is given beside its script."""

    users: frozenset[str]
    """Scripts that import modules of the skill; others gain nothing."""
    magic: bytes
    """By which the interpreter knows what is compiled for it."""
    hook: bytes
    table: bytes
    is_unseen: bool
    """Whether a Python that is given it when it starts has nothing open afterwards that it would not have without."""

    @cached_property
    def archive(self) -> bytes:
        """For a Python that starts: it takes `sitecustomize` from an archive."""
        import zipfile

        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr(zipfile.ZipInfo("sitecustomize.pyc"), self.magic + UNCHECKED + self.hook)
            file.writestr(zipfile.ZipInfo("table"), self.table)
        return archive.getvalue()

    @property
    def parts(self) -> tuple[bytes, ...]:
        """For a Python that waits already."""
        return self.hook, self.table

    def before(self, confined: Confined) -> Confined:
        """The same command, which is given it when it starts; the script must not notice."""
        return confined._replace(preface=self.archive) if self.is_unseen else confined


class Job(NamedTuple):
    """What is to be compiled, within which walls."""

    command: ScriptCommand
    manifest: Manifest
    base_directory: Path
    sandbox: Sandbox
    reach: Reach
    hold: Callable[[Path], AbstractContextManager[Path]]
    """The skill's folder -> what runs of it, which nobody removes meanwhile."""
    work_folders: WorkFolders


class _Record(NamedTuple):
    """What the compiler says of one file."""

    path: str
    sha256: str
    source: bytes
    code: bytes
    names: frozenset[str]


def has_modules(manifest: Manifest) -> bool:
    """More than one file of Python: one may be the script."""
    found = (path for path, _ in manifest.entries if path.endswith(".py"))
    return next(found, None) is not None and next(found, None) is not None


def made(job: Job) -> bytes:
    """What is kept, to be `loaded` again."""
    hashes = dict(job.manifest.entries)
    left = [path for path in hashes if path.endswith(".py") and hashes[path].startswith("sha256 ")][:MOST_FILES]
    hook, kept = _Record("", "", b"", b"", frozenset()), list[_Record]()
    until = time.monotonic() + COMPILE_SECONDS
    for _ in range(ATTEMPTS):
        told = list(_records(_compile(job, left, until - time.monotonic())))
        if not told:
            break
        hook, *found = told
        # What comes out of the walls is of use only for the content that was decided about.
        kept += [each for each in found if each.code and hashes.get(each.path) == f"sha256 {each.sha256}"]
        left = left[len(found) + 1 :]  # what it ended at is left out
        if not left or time.monotonic() >= until:
            break
    return _packed(hook, kept)


def _compile(job: Job, names: list[str], seconds: float) -> bytes:
    """What the compiler said until it ended, however it did."""
    with job.hold(job.base_directory) as folder, ExitStack() as used:
        walls, work = job.reach, job.work_folders.new()
        used.callback(job.work_folders.tidy, work)
        reach = Reach(
            walls.skill,
            walls.snapshot and str(folder),
            os.path.realpath(work),
            walls.interpreter,
            masked=walls.masked,
            environments=walls.environments,
            hidden=walls.hidden,
            protected=walls.hidden,
            limits=Limits(),
            timeout=COMPILE_SECONDS,
        )
        words = (job.command.argv[0], "-I", "-S", "-X", "utf8", "-c", _text("compiler.py"))
        confined = job.sandbox.confine(words, "/", {"PATH": os.defpath}, reach)
        told = b"".join(os.fsencode(each) + b"\0" for each in (walls.skill, _text("hook.py"), *names))
        return run_confined(confined, told, max(seconds, 0.1), OUTPUT_BYTES).stdout


def _records(output: bytes) -> Iterator[_Record]:
    """Those that are whole. What is inside may have said anything: nothing here believes more than a length."""
    at = 0
    while True:
        parts = []
        for _ in range(FIELDS):
            size = int.from_bytes(output[at : at + LENGTH_BYTES], "big")
            at += LENGTH_BYTES + size
            if at > len(output):
                return
            parts.append(output[at - size : at])
        path, digest, source, code, names = parts
        told = frozenset(names.decode("utf-8", "replace").split("\0"))
        yield _Record(os.fsdecode(path), digest.decode("ascii", "replace"), source, code, told)
        if at == len(output):
            return


def _packed(hook: _Record, records: list[_Record]) -> bytes:
    """A line that tells the parts; then the hook, then the table of what somebody imports."""
    called = frozenset[str]().union(*(each.names for each in records))
    imported = {each.path: (each.source, each.code) for each in records if _name(each.path) in called}
    own = {_name(path) for path in imported}
    # A script that is imported itself, and by itself alone, is no reason.
    users = sorted(each.path for each in records if each.names & (own - {_name(each.path)}))
    table = marshal.dumps(imported, 2)
    if not users or not hook.code or len(table) > LARGEST_TABLE:
        users, hook, table = [], hook._replace(code=b""), b""
    told = {"users": users, "magic": hook.source.hex(), "hook": len(hook.code), "unseen": hook.path == "0"}
    return json.dumps(told).encode() + b"\n" + hook.code + table


def _name(path: str) -> str:
    """What it is imported as, without what it lies in."""
    folder, _, file = path.rpartition("/")
    return os.path.basename(folder) if file == "__init__.py" else file.removesuffix(".py")


def loaded(content: bytes) -> Preface:
    """ValueError, KeyError or TypeError where it is damaged."""
    line, _, rest = content.partition(b"\n")
    told = json.loads(line)
    size = told["hook"]
    users, magic = frozenset(told["users"]), bytes.fromhex(told["magic"])
    return Preface(users, magic, rest[:size], rest[size:], bool(told["unseen"]))


@cache
def _text(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
