"""A skill's folder -> the digest of everything in it, and a read-only copy of exactly that."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from skillkit.core.exceptions import ContentChangedError, ContentLoadError
from skillkit.core.runs import Manifest

__all__ = ["LEFT_OUT", "content_of", "is_settled", "manifest_of", "snapshot_of"]

LEFT_OUT = ".git"
COPIED = ("sha256 ", "link ")  # what is unreadable or no file cannot take part in a run
CHUNK_BYTES = 1 << 20
# A file changed twice within one tick of its clock looks unchanged; so a fresh file's hash is not kept.
SETTLED_NANOSECONDS = 2_000_000_000
KEPT_HASHES = 50_000
KEPT_PATHS = 100_000  # of all readings together: about 65 MB
UNUSED_SECONDS = 30 * 86_400

FileKey = tuple[int, int, int, int, int]
Entries = tuple[tuple[str, str], ...]
key_of: Callable[[os.stat_result], FileKey] = attrgetter("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")


class Reading(NamedTuple):
    """A folder as it was read: what it holds, and the keys by which every part of it is known to be the same."""

    paths: tuple[str, ...]
    keys: tuple[FileKey, ...]
    manifest: Manifest


_hashes: dict[str, tuple[FileKey, str]] = {}
_readings: dict[str, Reading] = {}


def manifest_of(base_directory: Path | str) -> Manifest:
    """Links enter as their text, folders only through what they hold; `.git` is left out.

    Every file, link and folder is looked at each time; read again only when one of them is not as it was.
    """
    folder = os.fspath(base_directory)
    known = _readings.get(folder)
    if known is not None and is_as_it_was(known):
        return known.manifest
    began = time.time_ns()
    seen: dict[str, FileKey | None] = {}
    entries = tuple(sorted(entries_below(folder, seen)))
    manifest = Manifest(digest_of(entries), entries)
    keep_reading(folder, seen, manifest, began)
    return manifest


def is_as_it_was(known: Reading) -> bool:
    try:
        return tuple(map(key_of, map(os.lstat, known.paths))) == known.keys
    except OSError:
        return False


def keep_reading(folder: str, seen: Mapping[str, FileKey | None], manifest: Manifest, began: int) -> None:
    """Only where all of it can be told by its keys, and had settled before it was read."""
    keys = tuple(key for key in seen.values() if key is not None)
    if len(keys) == len(seen) and is_settled(max(key[-1] for key in keys), began):
        # No lock: a fork would copy it as it is, and a few too many do no harm.
        if sum(len(each.paths) for each in tuple(_readings.values())) + len(keys) > KEPT_PATHS:
            _readings.clear()
        _readings[folder] = Reading(tuple(seen), keys, manifest)


def is_settled(changed: int, began: int) -> bool:
    """By the time at which reading began: what takes long to read may be changed meanwhile."""
    return began - changed > SETTLED_NANOSECONDS


def digest_of(entries: Entries) -> str:
    summary = sha256()
    for relative, content in entries:
        # Neither a name nor a link's text can hold a NUL, so no two skills give the same list.
        summary.update(os.fsencode(relative) + b"\0" + os.fsencode(content) + b"\0")
    return summary.hexdigest()


def entries_below(folder: str, seen: dict[str, FileKey | None]) -> Iterator[tuple[str, str]]:
    """Each file and link with its content; `seen` gets a key for all that was looked at, taken before reading."""
    pending = [(folder, "")]
    while pending:
        path, inside = pending.pop()
        try:
            seen[f"{path}/"] = key_of(os.stat(path))
            with os.scandir(path) as listing:
                for entry in listing:
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name != LEFT_OUT:
                            pending.append((entry.path, f"{inside}{entry.name}/"))
                    elif entry.is_symlink():
                        seen[entry.path] = key_of(os.lstat(entry.path))
                        yield inside + entry.name, f"link {os.readlink(entry.path)}"
                    else:
                        seen[entry.path], content = keyed_content(entry.path)
                        yield inside + entry.name, content
        except OSError as error:
            raise ContentLoadError(
                f"{error.filename or path} cannot be read: {error.strerror}. "
                "A skill runs only when all of it can be checked."
            ) from error


def content_of(path: str) -> str:
    """`sha256 ...` of a regular file; what is no regular file or unreadable is said to be so."""
    return keyed_content(path)[1]


def keyed_content(path: str) -> tuple[FileKey | None, str]:
    """Hashed again only when something about the file changed; no key where it could not be hashed."""
    began = time.time_ns()
    try:
        status = os.lstat(path)
        key, known = key_of(status), _hashes.get(path)
        if known is not None and known[0] == key:
            return known
        if not stat.S_ISREG(status.st_mode):
            return None, "special"
        opened, digest = file_hash(path)
        content = f"sha256 {digest}"
    except PermissionError:
        # Nobody who runs as this user can read it either, so it cannot take part in a run.
        return None, "unreadable"
    except FileNotFoundError:
        return None, "vanished"
    if opened != key:  # another file came to its place meanwhile, or it was changed
        return None, content
    if is_settled(status.st_ctime_ns, began):
        keep_hash(path, key, content)
    return key, content


def keep_hash(path: str, key: FileKey, content: str) -> None:
    if len(_hashes) >= KEPT_HASHES:
        _hashes.clear()
    _hashes[path] = (key, content)


def file_hash(path: str) -> tuple[FileKey, str]:
    """Which file was opened, as it was before the first byte was read, and what was in it."""
    digest = sha256()
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb", buffering=0) as file:
        key = key_of(os.fstat(descriptor))
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return key, digest.hexdigest()


def snapshot_of(
    base_directory: Path, manifest: Manifest, folder: Path, approved: Callable[[], Collection[str]] = frozenset
) -> Path:
    """A read-only copy below `folder`, named by digest; ContentChangedError when the skill differs from it.

    Copies with `approved` digests are kept however old: the next question shows what changed since.
    """
    target = folder / manifest.digest
    if target.is_dir():
        os.utime(target)
        return target
    drop_unused(folder, approved)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=folder, prefix=".new-"))
    try:
        copied = tuple(entry for entry in manifest.entries if entry[1].startswith(COPIED))
        for relative, content in copied:
            copy_entry(base_directory / relative, work / relative, content)
        if manifest_of(work).entries != copied:
            raise changed(base_directory)
        make_read_only(work)
        with contextlib.suppress(OSError):  # another process was first; its copy is the same
            os.rename(work, target)
    finally:
        remove_copy(work)
    return target


def drop_unused(folder: Path, approved: Callable[[], Collection[str]]) -> None:
    """Copies that no run used for a month and no approval is about."""
    with contextlib.suppress(OSError):
        unused = [copy for copy in folder.iterdir() if time.time() - copy.stat().st_mtime > UNUSED_SECONDS]
        kept = approved() if unused else ()
        for copy in unused:
            if copy.name not in kept:
                remove_copy(copy)


def copy_entry(source: Path, target: Path, content: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        if content.startswith("link "):
            os.symlink(os.readlink(source), target)
        elif content.startswith("sha256 "):
            shutil.copy2(source, target, follow_symlinks=False)
    except OSError as error:
        raise changed(source) from error


def changed(place: Path) -> ContentChangedError:
    reason = f"{place} changed while it was being copied"
    return ContentChangedError(f"{reason}. Run it again.", reasons=[reason])


def make_read_only(folder: Path) -> None:
    for path, _, names in os.walk(folder, topdown=False):
        for name in names:
            file = os.path.join(path, name)
            if not os.path.islink(file):
                os.chmod(file, 0o444 | (os.stat(file).st_mode & 0o111))
        if path != str(folder):
            os.chmod(path, 0o555)  # noqa: S103 - walls show it to other users of a namespace
    # The top stays writable for its owner: a folder that may not change may not be renamed either.
    os.chmod(folder, 0o755)  # noqa: S103 - as above


def remove_copy(folder: Path) -> None:
    if folder.exists():
        for path, _, _ in os.walk(folder):
            os.chmod(path, 0o700)
        shutil.rmtree(folder, ignore_errors=True)
