"""Walls that stand -> somebody inside them who attaches what comes late: the helper `sandbox/attacher.py`."""

from __future__ import annotations

import os
import socket
import struct
import sys
import threading
from pathlib import Path

from skillkit.core.run.process.spawn import start_beside
from skillkit.core.run.sandbox.waiting import Waiting
from skillkit.core.run.sandbox.waiting import __file__ as beside

__all__ = ["enter", "sender_of"]

SPEAK_SECONDS = 10.0
CREDENTIALS = struct.Struct("3i")  # process, user, group
PROGRAM = str(Path(beside).with_name("attacher.py"))


class _Helper:
    """Started at first use, one for this process, none for a fork."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def enter(self, mounts: int, waiting: Waiting, renamed: int) -> socket.socket:
        """By which to talk to a copy of the helper inside; it says first whether it took off what is staged.

        `renamed` is the first process inside, where the one that waits has to be renamed; else 0.
        """
        with self._lock:
            if self._socket is None:
                self._socket = _started()
            ours, theirs = socket.socketpair()
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            with theirs:
                try:
                    place = waiting.hook.place.encode()
                    request = b"%d %d %s %s" % (renamed, len(waiting.late), place, os.fsencode(waiting.stage))
                    socket.send_fds(self._socket, [request], [mounts, theirs.fileno()])
                except OSError:  # it is gone: the next one gets a new one
                    self._socket.close()
                    self._socket = None
                    ours.close()
                    raise
            return ours

    def forget(self) -> None:
        """In a fork: the helper is its parent's."""
        if self._socket is not None:
            self._socket.close()
        self._begin()


def sender_of(talk: socket.socket) -> int:
    """The process that speaks first, which is not heard by this; 0 where nobody does. The kernel tells who it is."""
    size = socket.CMSG_SPACE(CREDENTIALS.size)
    talk.settimeout(SPEAK_SECONDS)
    try:
        told = talk.recvmsg(1, size, socket.MSG_PEEK)[1]
    except OSError:
        return 0
    finally:
        talk.settimeout(None)
    found = [content for level, kind, content in told if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS)]
    return int(CREDENTIALS.unpack(found[0])[0]) if found else 0


def _started() -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            start_beside((sys.executable, "-I", "-S", "-X", "utf8", PROGRAM, "0", str(os.getpid())), theirs.fileno())
        except BaseException:
            ours.close()
            raise
    return ours


_helper = _Helper()
enter = _helper.enter
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helper.forget)
