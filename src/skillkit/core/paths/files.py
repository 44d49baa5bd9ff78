"""Folders that scripts can write to -> files made, copied and read in them, never through a link.

A path that is looked at by name and then used by name may mean something else by then. Here every step is taken from
a folder that is held open, and a link is an error.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress

from skillkit.core.paths import is_roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Self

__all__ = ["Folder", "copy_content", "replace_file", "write_new_file"]

LINKS = 8
"""Of the system's own, followed one after the other: `/tmp` is one on some machines."""
CHUNK_BYTES = 1 << 20
# Without `O_PATH` a folder must be readable; Windows opens none, and there a folder is known by its path alone.
HAS_DESCRIPTORS = os.open in os.supports_dir_fd
COMMON = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
AS_FOLDER = COMMON | getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
AS_LISTED = COMMON | os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
NEW = COMMON | os.O_WRONLY | os.O_CREAT | os.O_EXCL
READ = COMMON | os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
USABLE = stat.S_IWUSR | stat.S_IXUSR
A_LINK = "a link is in the way, and a script may have put it there"


class Folder:
    """A folder held open: whatever its name comes to mean, this is the one that was meant."""

    def __init__(self, path: str, descriptor: int | None) -> None:
        self.path = path
        self.descriptor = descriptor

    @classmethod
    def of(cls, path: str | Path) -> Self:
        """One of our own: we made what leads there, so only its own name may not be a link."""
        return cls._open(os.path.abspath(path), os.fspath(path), None)

    @classmethod
    def named(cls, path: str | Path, *, make: bool = False) -> Self:
        """One that a person named, perhaps among things that scripts made: no link on the way is followed.

        But for those that only the system's owner can make, as `/tmp` on some machines.
        """
        absolute = os.path.abspath(path)
        top, names = os.path.splitdrive(absolute)[0] + os.sep, _names_in(absolute)
        for _ in range(LINKS):
            reached = cls._reach(top, names, make=make)
            if not isinstance(reached, list):
                return reached
            names = reached
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(path))

    @classmethod
    def _reach(cls, top: str, names: list[str], *, make: bool) -> Self | list[str]:
        """The folder, or the names by which a link of the system's says it is reached."""
        folder = cls.of(top)
        for place, name in enumerate(names, 1):
            with folder:
                try:
                    below = folder.folder(name, make=make)
                except OSError:
                    target = folder.target_of_system_link(name)
                    if target is None:
                        raise
                    return _names_in(os.path.normpath(os.path.join(folder.path, target))) + names[place:]
            folder = below
        return folder

    @classmethod
    def _open(cls, path: str, name: str, parent: int | None) -> Self:
        status = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if not stat.S_ISDIR(status.st_mode):
            is_link = stat.S_ISLNK(status.st_mode)
            number = errno.ELOOP if is_link else errno.ENOTDIR
            raise OSError(number, A_LINK if is_link else os.strerror(number), path)
        # A link that comes between is refused by the call itself.
        return cls(path, os.open(name, AS_FOLDER, dir_fd=parent) if HAS_DESCRIPTORS else None)

    def folder(self, name: str, *, make: bool = False) -> Self:
        """The one of this name inside; `make` makes it where there is none."""
        place = self._place(name)
        if make:
            with suppress(FileExistsError):
                os.mkdir(place, dir_fd=self.descriptor)
        return self._open(os.path.join(self.path, name), place, self.descriptor)

    def below(self, names: Sequence[str], *, make: bool = False) -> Self:
        """The folder that these names lead to, one after the other."""
        folder = self._again()
        for name in names:
            with folder:
                folder = folder.folder(name, make=make)
        return folder

    def new_folder(self, name: str, mode: int = 0o777) -> Self:
        """FileExistsError where anything has the name."""
        os.mkdir(self._place(name), mode, dir_fd=self.descriptor)
        return self.folder(name)

    def new_file(self, name: str, mode: int = 0o666) -> int:
        """A descriptor to write to; FileExistsError where anything has the name, a link that leads nowhere too."""
        return os.open(self._place(name), NEW, mode, dir_fd=self.descriptor)

    def write_new(self, name: str, content: bytes, mode: int = 0o666) -> None:
        """All of it, or nothing that has the name."""
        with open(self.new_file(name, mode), "wb") as file:
            try:
                file.write(content)
                file.flush()
            except OSError:
                self.remove(name)
                raise

    def new_link(self, name: str, target: bytes) -> None:
        """FileExistsError where anything has the name."""
        os.symlink(os.fsdecode(target), self._place(name), dir_fd=self.descriptor)

    def replace(self, name: str, content: bytes, mode: int = 0o666, draft: str = "") -> None:
        """In one step: whoever looks sees the old file or the new one. Only a plain file is replaced.

        `draft` is how it is called until then, for who may have to find it after a kill.
        """
        status = self.status(name)
        if status is not None and not stat.S_ISREG(status.st_mode):
            reason = A_LINK if stat.S_ISLNK(status.st_mode) else "what is there is no plain file"
            raise OSError(errno.ELOOP, reason, os.path.join(self.path, name))
        draft = draft or f".new-{os.urandom(8).hex()}"
        self.write_new(draft, content, mode)
        try:
            self.move(draft, self, name)
        except OSError:
            self.remove(draft)
            raise

    def open_file(self, name: str) -> int:
        """A descriptor to read from, of a plain file only: neither a link is followed nor a pipe waited for."""
        return self._plain(os.open(self._place(name), READ, dir_fd=self.descriptor), name)

    def open_file_below(self, names: Sequence[str]) -> int:
        """The same of a file that these names lead to, through folders only: one call for each, where many are read."""
        *folders, name = map(self._place, names)
        if self.descriptor is None:
            with self.below(names[:-1]) as folder:
                return folder.open_file(names[-1])
        parent = self.descriptor
        try:
            for each in folders:
                below = os.open(each, AS_FOLDER, dir_fd=parent)  # refuses links itself
                if parent != self.descriptor:
                    os.close(parent)
                parent = below
            return self._plain(os.open(name, READ, dir_fd=parent), name)
        finally:
            if parent != self.descriptor:
                os.close(parent)

    def _plain(self, descriptor: int, name: str) -> int:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.EINVAL, "it is no plain file", os.path.join(self.path, name))
        return descriptor

    def status(self, name: str) -> os.stat_result | None:
        """Of whatever has the name, a link itself; None for nothing."""
        try:
            return os.stat(self._place(name), dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def is_still_at(self, path: str | Path) -> bool:
        """Whether the path still means this folder, and no link stands in its place."""
        try:
            now = os.lstat(path)
        except OSError:
            return False
        return self.descriptor is None or os.path.samestat(now, os.fstat(self.descriptor))

    def remove(self, name: str) -> bool:
        """Whether it went: a file, a link itself, or a folder with nothing in it."""
        for remove in (os.unlink, os.rmdir):
            with suppress(OSError):
                remove(self._place(name), dir_fd=self.descriptor)
                return True
        return False

    def move(self, name: str, other: Folder, new_name: str) -> None:
        """Into another folder of the same disk; a link as it is. A file that has the name there is replaced."""
        source, target = self._place(name), other._place(new_name)
        os.replace(source, target, src_dir_fd=self.descriptor, dst_dir_fd=other.descriptor)

    def names(self) -> list[str]:
        if self.descriptor is None:
            return os.listdir(self.path)
        listed = os.open(".", AS_LISTED, dir_fd=self.descriptor)
        try:
            return os.listdir(listed)
        finally:
            os.close(listed)

    def allow_all(self) -> None:
        """To its owner, by the descriptor: a name could have become a link's."""
        self._set_mode(0o700)

    @contextmanager
    def writable(self) -> Iterator[None]:
        """Entries can be moved and removed meanwhile, also where its owner had closed it."""
        mode = stat.S_IMODE(os.stat(self.path if self.descriptor is None else self.descriptor).st_mode)
        is_closed = mode & USABLE != USABLE
        if is_closed:
            self._set_mode(mode | 0o700)
        try:
            yield
        finally:
            if is_closed:
                self._set_mode(mode)

    def _set_mode(self, mode: int) -> None:
        with suppress(OSError):
            if self.descriptor is None:
                os.chmod(self.path, mode)
            elif hasattr(os, "O_PATH"):  # one that was opened so takes no fchmod
                os.chmod(f"/proc/self/fd/{self.descriptor}", mode)
            else:
                os.fchmod(self.descriptor, mode)

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _again(self) -> Self:
        return type(self)(self.path, None if self.descriptor is None else os.dup(self.descriptor))

    def _place(self, name: str) -> str:
        """What to call an entry; only a single name can be one."""
        if name in ("", os.curdir, os.pardir) or os.sep in name or (os.altsep or os.sep) in name:
            raise OSError(errno.EINVAL, "it is no plain name", name)
        return name if HAS_DESCRIPTORS else os.path.join(self.path, name)

    def target_of_system_link(self, name: str) -> str | None:
        """Where it leads, if it lies where no script can put one: among root's own, for root only at the very top."""
        if self.descriptor is None or not is_roots(self.descriptor):
            return None
        if os.geteuid() == 0 and self.path != os.sep:
            return None
        with suppress(OSError):
            return os.readlink(name, dir_fd=self.descriptor)
        return None


def write_new_file(path: str | Path, content: bytes, mode: int = 0o666) -> None:
    """In a folder that a person named; FileExistsError where anything has the name."""
    above, name = os.path.split(os.path.abspath(path))
    with Folder.named(above) as folder:
        folder.write_new(name, content, mode)


def replace_file(path: str | Path, content: bytes, *, drafts: str | Path | None = None) -> None:
    """In a folder of ours alone, for its owner alone: a reader sees the old file or the new one, never a part.

    `drafts` is where it is written meanwhile, where whoever looks at its own folder would take it for something else.
    """
    draft = os.path.join(drafts or os.path.dirname(path), f".new-{os.urandom(8).hex()}")
    try:
        with open(os.open(draft, NEW, 0o600), "wb") as file:
            file.write(content)
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


def copy_content(source: int, target: int, *, limit: int | None = None) -> int:
    """Copies one open file to another that is empty; holes stay holes. How many bytes were written.

    OSError before more than `limit` bytes are. What the source grows meanwhile is not copied.
    """
    size = os.fstat(source).st_size
    written = 0
    for start, end in _data_ranges(source, size):
        if limit is not None and written + end - start > limit:
            raise OSError(errno.EFBIG, "it is larger than the limit")
        written += _copy_range(source, target, start, end)
    os.ftruncate(target, size)
    return written


def _data_ranges(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """Where there is data; all of it where the system cannot tell."""
    end = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
            end = min(os.lseek(descriptor, start, os.SEEK_HOLE), size)
        except (AttributeError, OSError) as error:
            if getattr(error, "errno", 0) != errno.ENXIO:  # which means that a hole is all that follows
                yield end, size
            return
        yield start, end


def _copy_range(source: int, target: int, start: int, end: int) -> int:
    os.lseek(source, start, os.SEEK_SET)
    os.lseek(target, start, os.SEEK_SET)
    left = end - start
    while left > 0 and (chunk := os.read(source, min(CHUNK_BYTES, left))):
        left -= len(chunk)
        rest = memoryview(chunk)
        while rest:
            rest = rest[os.write(target, rest) :]
    return end - start - left


def _names_in(absolute: str) -> list[str]:
    return [name for name in os.path.splitdrive(absolute)[1].split(os.sep) if name]
