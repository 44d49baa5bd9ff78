"""Compiled files of a skill's modules, kept beside its copies: bound to the digest and to the interpreter.

They lie in the state folder, which no script can write. What is kept is read again only where it is a plain file of
ours. It goes with the copy of the skill, or when nobody used it for a month.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from contextlib import suppress
from pathlib import Path

from skillkit.core.paths import require_own_folder
from skillkit.core.paths.files import replace_file

__all__ = ["CompiledFiles", "forget_compiled", "interpreter_key"]

FOLDER = ".compiled"
LARGEST = 8_000_000
MOST_FILES = 500
UNUSED_SECONDS = 30 * 86_400
USED_AGAIN_SECONDS = 86_400
READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def interpreter_key(program: str) -> str:
    """Which interpreter a path means now; another one, or a newer one in its place, has another key."""
    seen = os.stat(program)
    told = (os.path.realpath(program), seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns)
    return hashlib.sha256(repr(told).encode("utf-8", "surrogateescape")).hexdigest()[:32]


class CompiledFiles:
    """Of one world, beside the copies in `snapshots`."""

    def __init__(self, snapshots: Path) -> None:
        self._folder = snapshots / FOLDER

    def read(self, digest: str, interpreter: str) -> bytes | None:
        """None where nothing was made yet, or what is there is not ours."""
        path = self._folder / f"{digest}-{interpreter}"
        try:
            number = os.open(path, READ)
        except OSError:
            return None
        with open(number, "rb") as file:
            seen = os.fstat(number)
            is_ours = stat.S_ISREG(seen.st_mode) and seen.st_size <= LARGEST and not seen.st_mode & 0o022
            if not is_ours or (hasattr(os, "geteuid") and seen.st_uid != os.geteuid()):
                return None
            require_own_folder(self._folder)
            if time.time() - seen.st_mtime > USED_AGAIN_SECONDS:
                with suppress(OSError):
                    os.utime(path)
            return file.read()

    def write(self, digest: str, interpreter: str, content: bytes) -> None:
        """All of it or nothing; what was there before goes."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_own_folder(self._folder)
        self._tidy()
        replace_file(self._folder / f"{digest}-{interpreter}", content)

    def _tidy(self) -> None:
        """Unused for a month, or more than can be of use."""
        found = sorted(((each.stat().st_mtime, each.path) for each in os.scandir(self._folder)), reverse=True)
        limit = time.time() - UNUSED_SECONDS
        for number, (changed, path) in enumerate(found):
            if changed < limit or number >= MOST_FILES:
                with suppress(OSError):
                    os.unlink(path)


def forget_compiled(snapshots: Path, digest: str) -> None:
    """The copy is gone, and so is what was made of it."""
    with suppress(OSError):
        for name in os.listdir(snapshots / FOLDER):
            if name.startswith(f"{digest}-"):
                (snapshots / FOLDER / name).unlink(missing_ok=True)
