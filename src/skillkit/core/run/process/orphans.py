"""This process -> a keeper beside it that ends what it runs, should it be killed (Linux).

Theory of operation. Nothing of a killed program runs any more, so somebody else has to notice: a shell that waits for
the end of a pipe of which only this process holds the other end. It is started once, before the first run, and costs a
run nothing: every process of a run carries a mark in its environment that begins the same, so that nobody has to be
told of runs that begin and end. At a normal end the shell is told that there is nothing to do; at any other it becomes
the small program `orphan_killer.py`, whose text it was given at the start.

The kernel ends bubblewrap's walls with the thread that started them, but only once they have asked for it. Who is
killed in the millisecond before leaves a script behind that nobody bounds, or a bubblewrap that waits for ever for its
other half.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path

from skillkit.core.run.process.spawn import FIRST_FREE_FD, move, start_beside
from skillkit.core.run.process.survivors import has_processes, own_mark

__all__ = ["start_keeper"]

# A process of its own, so that it is nobody's child who waits for any; its input is not that of the shell that ends.
WAIT = 'exec 3<&0; (read -r _ <&3 || exec "$@") & '


class _Keeper:
    """Of one process; a fork has none until it runs something itself."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._writer: int | None = None
        self._has_ended = False

    def start(self) -> None:
        """Once; where it cannot be, scripts may outlive this process if it is killed, and the next run tries again."""
        if self._writer is not None or self._has_ended or sys.platform != "linux" or not sys.executable:
            return
        with self._lock, suppress(OSError):
            if self._writer is None:
                self._writer = _started(own_mark())
                atexit.register(partial(_let_go, self, os.getpid()))

    def end(self) -> None:
        """A run that goes on in another thread does not outlive us either: then nothing is said."""
        writer, self._writer, self._has_ended = self._writer, None, True
        if writer is not None:
            with suppress(OSError):
                if not has_processes():
                    os.write(writer, b"\n")
            os.close(writer)

    def forget(self) -> None:
        """In a fork: only the process that started it keeps it waiting."""
        if self._writer is not None:
            with suppress(OSError):
                os.close(self._writer)
        self._begin()


def _started(mark: str) -> int:
    """The end that keeps it waiting."""
    killer = Path(__file__).with_name("orphan_killer.py").read_text(encoding="utf-8")
    reader, first = os.pipe()
    writer = move(first, FIRST_FREE_FD)  # a program without standard streams would print to it
    if writer != first:
        os.close(first)
    try:
        start_beside((sys.executable, "-I", "-S", "-c", killer, mark), reader, WAIT)
    except BaseException:
        os.close(writer)
        raise
    finally:
        os.close(reader)
    return writer


def _let_go(keeper: _Keeper, owner: int) -> None:
    if os.getpid() == owner:
        keeper.end()


_keeper = _Keeper()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_keeper.forget)


def start_keeper() -> None:
    _keeper.start()
