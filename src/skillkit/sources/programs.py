"""git and ssh-keygen, started for skillkit itself: the user's own, with nothing that a project could make them obey."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Self

from skillkit.core.exceptions import SourceUnavailableError
from skillkit.core.run.own_programs import find_own_program, own_environment
from skillkit.core.run.process import ProcessRequest, run_process
from skillkit.core.values.runs import ProcessExit, RunControl
from skillkit.core.values.text import grouped

__all__ = ["PlaceWatch", "require_program", "run_program"]

LOOK_SECONDS = 0.2
OUTPUT_BYTES = 1_000_000
# What the user set for git itself; what names a repository, an index or a hook is not passed on.
PASSED_OF_GIT = frozenset(
    "GIT_SSL_CAINFO GIT_SSL_CAPATH GIT_SSH GIT_SSH_COMMAND GIT_SSH_VARIANT GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM "
    "GIT_CONFIG_SYSTEM".split()
)


def require_program(name: str, purpose: str) -> str:
    """Its path; the error says what it is for."""
    found = find_own_program(name)
    if not found:
        raise SourceUnavailableError(f"{name} is needed {purpose}, and none is on PATH. Install it.")
    return found


def run_program(
    argv: Sequence[str],
    *,
    cwd: str = "/",
    variables: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    seconds: float = 60.0,
    output: int = OUTPUT_BYTES,
    cancel: threading.Event | None = None,
) -> ProcessExit:
    """To its end or the end of its time, with nothing of it left running."""
    own = {name: value for name, value in own_environment().items() if _is_passed(name)}
    environment = {**own, "LC_ALL": "C", **(variables or {})}
    request = ProcessRequest(tuple(argv), cwd, environment, stdin, seconds, output)
    try:
        return run_process(request, RunControl(cancel))
    except OSError as error:
        raise SourceUnavailableError(f"{argv[0]} cannot be started: {error.strerror or error}. Check it.") from error


def _is_passed(name: str) -> bool:
    return name in PASSED_OF_GIT or not (name.startswith("GIT_") or name == "SSH_ASKPASS")


class PlaceWatch:
    """Looks at a folder while a program fills it: tells how much there is, and stops the program at a limit."""

    def __init__(self, folder: str, limit: int, on_progress: Callable[[str], None] | None) -> None:
        self.cancel = threading.Event()
        self.is_too_large = False
        self._folder = folder
        self._limit = limit
        self._on_progress = on_progress
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, name="skillkit-fetch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(LOOK_SECONDS):
            size = _size_below(self._folder)
            if size > self._limit:
                self.is_too_large = True
                self.cancel.set()
                return
            if self._on_progress is not None:
                self._on_progress(f"{grouped(size // 1000)} kB fetched")


def _size_below(folder: str) -> int:
    total = 0
    for above, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(above, name)).st_size
    return total
