"""A skill and its manifest -> a read-only copy of exactly that in the state folder, held while somebody uses it.

Theory of operation. A copy is named by its digest. Beside the copies lies one small file for each: it says which
skill's folder the copy was made of, its time says when it was used last, and a shared lock on it says that it is in
use now. When a new copy is made, those of the same folder that are neither among the newest, nor approved, nor in use
go at once. A lock ends with its process, so nothing that was killed keeps a copy for ever.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from skillkit.core.exceptions import ContentChangedError, StateUnavailableError
from skillkit.core.models.digest import SKILL_BYTES, forget, manifest_of
from skillkit.core.paths import real_path, require_own_file, require_own_folder
from skillkit.core.paths.files import Folder, copy_content, replace_file
from skillkit.core.paths.trees import remove_tree
from skillkit.core.store.compiled import forget_compiled
from skillkit.core.values.runs import Manifest

__all__ = ["KEPT_COPIES", "Snapshots", "end_of_search"]

KEPT_COPIES = 4
"""Of one skill's folder, the newest, beside those that are approved or in use."""
UNUSED_SECONDS = 30 * 86_400
UNFINISHED_SECONDS = 86_400
COPIED = ("sha256 ", "link ")  # what is unreadable or no file cannot take part in a run
USES = ".uses"
UNFINISHED = (".new-", ".old-")
LONGEST_PATH = 65_536
# What a file system says when its files are others than they were; anything else is about the state.
GONE = frozenset((errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EPERM, errno.ELOOP, errno.EINVAL, errno.EFBIG))
HAS_LOCKS = os.name == "posix"
"""Elsewhere nobody can tell whether a copy is in use; there each stays a month."""
NAME = re.compile(r"[0-9a-f]{64}")
FOLDER = "snapshots"
END_OF_SEARCH = "package.json"
"""Beside the copies, with nothing in it: node asks the folders above a script for one, and gives up at one that walls
without mounts keep from it."""
NOTHING = b"{}\n"
USE = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def end_of_search(skill: str, state_folder: str) -> str | None:
    """The file beside it, where that path is a copy's."""
    folder = os.path.join(state_folder, FOLDER)
    return os.path.join(folder, END_OF_SEARCH) if os.path.dirname(skill) == folder else None


class _Use(NamedTuple):
    """What is known of a copy without looking at it."""

    used_at: int
    digest: str
    made_of: str


class Snapshots:
    """The copies of one world; copies with `approved` digests are kept: the next question shows what changed since."""

    def __init__(self, state_folder: Path, approved: Callable[[], Collection[str]] = frozenset) -> None:
        self.folder = state_folder / FOLDER
        self._uses = self.folder / USES
        self._state_folder = state_folder
        self._approved = approved

    @contextmanager
    def hold(self, base_directory: Path, manifest: Manifest) -> Iterator[Path]:
        """The copy, which nobody removes while the block lasts; ContentChangedError when the skill differs from it."""
        self._make_folders()
        copy, use = self.folder / manifest.digest, self._lock_use(manifest.digest)
        try:
            if not os.path.lexists(copy):
                self._make(copy, base_directory, manifest)
                os.write(use, os.fsencode(base_directory))
                with suppress(OSError):  # what cannot go now goes later
                    self._drop_others(os.fspath(base_directory))
            _require_same(copy, manifest)
            os.utime(self._uses / manifest.digest)
            yield Path(real_path(copy))  # a home folder may lie behind a link; walls follow none
        finally:
            os.close(use)
            if not os.path.lexists(copy):
                self._remove(manifest.digest)

    def approved_copy(self, digest: str | None) -> Path | None:
        """What was approved under this digest, to be compared with; None when there is no such copy any more."""
        copy = self.folder / (digest or "")
        if not digest or not os.path.isdir(copy):
            return None
        require_own_folder(self._state_folder, may_be_link=True)
        require_own_folder(self.folder)
        require_own_folder(copy)
        return copy

    def _make_folders(self) -> None:
        for folder in (self._state_folder, self.folder, self._uses):
            if not os.path.isdir(folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            require_own_folder(folder, may_be_link=folder is self._state_folder)
        self._end_searches()

    def _end_searches(self) -> None:
        """All of that file or nothing, and nothing else in it: what it says would count for every copy."""
        file = self.folder / END_OF_SEARCH
        require_own_file(file)
        with suppress(FileNotFoundError):
            if file.read_bytes() == NOTHING:
                return
        replace_file(file, NOTHING)

    def _lock_use(self, digest: str) -> int:
        """The descriptor that says that a copy is in use, until it is closed."""
        while True:
            use = os.open(self._uses / digest, USE | os.O_CREAT, 0o600)
            # Waits only for somebody who removes the copy, and the file with it.
            if _try_lock(use, shared=True) and _is_at(use, self._uses / digest):
                return use
            os.close(use)

    def _make(self, copy: Path, base_directory: Path, manifest: Manifest) -> None:
        work = self.folder / f".new-{secrets.token_hex(8)}"
        work.mkdir(mode=0o700)
        try:
            _copy_entries(base_directory, work, _entries_to_copy(manifest))
            if manifest_of(work).entries != _entries_to_copy(manifest):
                forget(base_directory)  # it changed without a sign
                raise _changed(base_directory)
            _make_read_only(work)
            with suppress(OSError):  # another process was first; its copy is the same
                os.rename(work, copy)
        finally:
            remove_tree(work)

    def _drop_others(self, made_of: str) -> None:
        """Of this folder all but the newest; of others what no run used for a month; never what is approved."""
        uses = sorted(self._known_uses(), reverse=True)
        limit = time.time_ns() - UNUSED_SECONDS * 1_000_000_000
        own = [use for use in uses if use.made_of == made_of] if HAS_LOCKS else []
        old = [use for use in uses if use.used_at < limit]
        gone = {use.digest for use in (*own[KEPT_COPIES:], *old)}
        kept = self._approved() if gone else ()
        for digest in gone.difference(kept):
            self._remove(digest)
        for name in os.listdir(self.folder):
            if name.startswith(UNFINISHED) and time.time() - _changed_at(self.folder / name) > UNFINISHED_SECONDS:
                remove_tree(self.folder / name)

    def _known_uses(self) -> Iterator[_Use]:
        """A copy without a file beside it is of an earlier skillkit."""
        listed = set(filter(NAME.fullmatch, os.listdir(self._uses)))
        for digest in listed:
            with suppress(OSError):
                use = os.open(self._uses / digest, USE)
                try:
                    made_of = os.fsdecode(os.read(use, LONGEST_PATH))
                    yield _Use(os.fstat(use).st_mtime_ns, digest, made_of)
                finally:
                    os.close(use)
        for name in os.listdir(self.folder):
            if NAME.fullmatch(name) and name not in listed:
                yield _Use(int(_changed_at(self.folder / name) * 1_000_000_000), name, "")

    def _remove(self, digest: str) -> None:
        """Renamed first: whoever comes meanwhile finds all of it or nothing. What is in use stays."""
        path, aside = self._uses / digest, self.folder / f".old-{secrets.token_hex(8)}"
        with suppress(OSError):
            use = os.open(path, USE | os.O_CREAT, 0o600)
            try:
                if not _try_lock(use, shared=False) or not _is_at(use, path):
                    return
                with suppress(FileNotFoundError):
                    os.rename(self.folder / digest, aside)
                os.unlink(path)
                forget_compiled(self.folder, digest)
            finally:
                os.close(use)
        remove_tree(aside)


def _changed(place: Path | str) -> ContentChangedError:
    return ContentChangedError.because(f"{place} changed while it was being copied", "Run it again.")


def _entries_to_copy(manifest: Manifest) -> tuple[tuple[str, str], ...]:
    return tuple(entry for entry in manifest.entries if entry[1].startswith(COPIED))


def _require_same(copy: Path, manifest: Manifest) -> None:
    """All of it is looked at: a copy under another's name, or with other bytes, never runs."""
    require_own_folder(copy)
    found = manifest_of(copy)
    if found.digest != manifest.digest and found.entries != _entries_to_copy(manifest):
        raise StateUnavailableError(
            f"The copy of a skill in {copy} is not what its name says: it was altered or damaged. "
            "Look who did, then remove that folder; a new copy is made from the skill."
        )


def _copy_entries(base_directory: Path, work: Path, entries: Collection[tuple[str, str]]) -> None:
    """By descriptor, no link followed, holes kept; together no more than a skill may have."""
    left = SKILL_BYTES
    try:
        with Folder.of(os.path.realpath(base_directory)) as source, Folder.of(work) as target:
            for relative, content in entries:
                *folders, name = relative.split("/")
                with source.below(folders) as from_folder, target.below(folders, make=True) as into:
                    if content.startswith("link "):
                        os.symlink(content.removeprefix("link "), work / relative)
                    else:
                        left -= _copy_file(from_folder, into, name, work / relative, left)
    except OSError as error:
        if error.errno not in GONE:
            raise
        raise _changed(error.filename or base_directory) from error


def _copy_file(source: Folder, target: Folder, name: str, path: Path, limit: int) -> int:
    descriptor = source.open_file(name)
    try:
        status = os.fstat(descriptor)
        copy = target.new_file(name, 0o600)
        try:
            written = copy_content(descriptor, copy, limit=limit)
        finally:
            os.close(copy)
    finally:
        os.close(descriptor)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.chmod(path, 0o444 | (status.st_mode & 0o111))
    return written


def _make_read_only(folder: Path) -> None:
    """Its folders; files are made so."""
    waiting = [str(folder)]
    while waiting:
        path = waiting.pop()
        with os.scandir(path) as listing:
            waiting += [entry.path for entry in listing if entry.is_dir(follow_symlinks=False)]
        # The top stays writable for its owner: a folder that may not change may not be renamed either.
        # Others may look: walls show it to other users of a namespace.
        os.chmod(path, 0o755 if path == str(folder) else 0o555)


def _try_lock(use: int, *, shared: bool) -> bool:
    """Together with others after waiting, or alone and at once."""
    if not HAS_LOCKS:
        return True
    import fcntl

    try:
        fcntl.flock(use, fcntl.LOCK_SH if shared else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the path still means this file."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _changed_at(path: Path) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return time.time()
