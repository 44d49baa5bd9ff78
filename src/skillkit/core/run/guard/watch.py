"""Folders -> those in which an entry came, went or changed its name or mode since the last look (inotify)."""

from __future__ import annotations

import errno
import os
import struct
import sys
from typing import Any, Self

__all__ = ["Watch"]

# From sys/inotify.h.
MODES, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x4, 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF = 0x400, 0x800
UNMOUNT, OVERFLOW, IGNORED = 0x2000, 0x4000, 0x8000
ONLY_FOLDERS, NO_LINKS = 0x01000000, 0x02000000
ASKED = MODES | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF | ONLY_FOLDERS | NO_LINKS
EVENT = struct.Struct("iIII")
READ_BYTES = 1 << 18


class Watch:
    """One inotify descriptor. News that got lost mean that everything may have changed."""

    def __init__(self, library: Any, descriptor: int) -> None:  # noqa: ANN401 - the system's, by ctypes
        self._add, self._remove = library.inotify_add_watch, library.inotify_rm_watch
        self._descriptor = descriptor
        self._paths: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._news: set[str] = set()
        self._is_lost = False

    @classmethod
    def open(cls) -> Self | None:
        """None where the system has none, or no more of them."""
        if sys.platform != "linux":
            return None
        import ctypes

        library = ctypes.CDLL(None, use_errno=True)
        descriptor = library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        return cls(library, descriptor) if descriptor >= 0 else None

    def add(self, path: str, *, is_news: bool = False) -> bool:
        """Whether the folder is watched from now on; one that is gone meanwhile needs no watch.

        With `is_news` it counts as changed at the next look: it was listed before it was watched.
        """
        import ctypes

        number = self._add(self._descriptor, os.fsencode(path), ASKED)
        if number < 0:
            return ctypes.get_errno() in (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP)
        other = self._paths.get(number)
        if other is not None and other != path:  # one folder by two paths: it was moved, and news of that are to come
            self._numbers.pop(other, None)
        self._paths[number], self._numbers[path] = path, number
        if is_news:
            self._news.add(path)
        return True

    def is_same(self, path: str) -> bool:
        """Whether the folder at `path` is still the one that is watched."""
        known = self._numbers.get(path)
        return known is not None and self._add(self._descriptor, os.fsencode(path), ASKED) == known

    def forget(self, path: str) -> None:
        number = self._numbers.pop(path, None)
        if number is not None and self._paths.get(number) == path:
            del self._paths[number]
            self._remove(self._descriptor, number)

    def changed(self) -> set[str] | None:
        """Paths of the folders with news; None when news were lost."""
        paths, self._news = self._news, set()
        while news := self._read():
            at = 0
            while at < len(news):
                number, mask, _, length = EVENT.unpack_from(news, at)
                at += EVENT.size + length
                if mask & (OVERFLOW | UNMOUNT):
                    self._is_lost = True
                elif mask & (DELETE_SELF | MOVE_SELF | IGNORED):
                    paths.add(os.path.dirname(self._paths.get(number, "")))
                elif number in self._paths:
                    paths.add(self._paths[number])
        return None if self._is_lost else paths

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1

    def _read(self) -> bytes:
        try:
            return os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return b""
