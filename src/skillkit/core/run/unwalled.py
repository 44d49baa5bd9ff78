"""Programs of the user's own that skillkit starts for itself, without walls: a browser, a version manager."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from skillkit.core.run.own_programs import own_environment, startable_path, startable_program
from skillkit.core.run.process import ProcessRequest, run_process
from skillkit.core.run.process.spawn import DEVNULL, popen

__all__ = ["read_output", "spawn_detached"]

OUTPUT_SECONDS = 10.0
OUTPUT_BYTES = 100_000


def spawn_detached(argv: Sequence[str]) -> bool:
    """Whether it started. It has the person's environment, no input and no output, and goes on when we end."""
    try:
        started = popen(argv, "/", own_environment(), (DEVNULL, DEVNULL, DEVNULL))
    except OSError:
        return False
    # Nobody else waits for it, and one that is not waited for stays in the table of processes.
    threading.Thread(target=started.wait, name="skillkit-detached", daemon=True).start()
    return True


def read_output(argv: Sequence[str], path: str) -> str:
    """What it prints; nothing where it fails. For asking a version manager where the real program is.

    A shim looks for programs itself, so it gets the PATH without the folders of skill and workspace. What a script may
    have made in an earlier run, in whatever workspace, is asked nothing.
    """
    program = startable_program(argv[0])
    if not program:
        return ""
    environment = {**own_environment(), "PATH": startable_path(path)}
    try:
        ended = run_process(ProcessRequest((program, *argv[1:]), "/", environment, b"", OUTPUT_SECONDS, OUTPUT_BYTES))
    except OSError:
        return ""
    return ended.stdout.decode("utf-8", "replace") if ended.status == 0 else ""
