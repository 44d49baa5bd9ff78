"""A skill's folder -> the digest of everything in it, and a read-only copy of exactly that."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Collection
from hashlib import sha256
from pathlib import Path

from skillkit.core.exceptions import ContentChangedError, ContentLoadError
from skillkit.core.runs import Manifest

__all__ = ["LEFT_OUT", "content_of", "known_content", "manifest_of", "snapshot_of"]

LEFT_OUT = ".git"
COPIED = ("sha256 ", "link ")  # what is unreadable or no file cannot take part in a run
CHUNK_BYTES = 1 << 20
# A file changed twice within one tick of its clock looks unchanged; so a fresh file's hash is not kept.
SETTLED_NANOSECONDS = 2_000_000_000
KEPT_HASHES = 50_000
KEPT_LISTINGS = 10_000
KEPT_MANIFESTS = 256
UNUSED_SECONDS = 30 * 86_400

FILE, LINK, FOLDER = "file", "link", "folder"

FileKey = tuple[int, int, int, int, int]
Listing = tuple[tuple[str, str], ...]

_hashes: dict[str, tuple[FileKey, str]] = {}
_listings: dict[str, tuple[FileKey, Listing]] = {}
_manifests: dict[tuple[tuple[str, str], ...], Manifest] = {}
_lock = threading.Lock()


def manifest_of(base_directory: Path) -> Manifest:
    """Links enter as their text, folders only through what they hold; `.git` is left out."""
    entries = tuple(sorted(entries_below(os.fspath(base_directory))))
    known = _manifests.get(entries)
    if known is None:
        known = Manifest(digest_of(entries), entries)
        with _lock:
            if len(_manifests) >= KEPT_MANIFESTS:
                _manifests.clear()
            _manifests[entries] = known
    return known


def digest_of(entries: tuple[tuple[str, str], ...]) -> str:
    summary = sha256()
    for relative, content in entries:
        # Neither a name nor a link's text can hold a NUL, so no two skills give the same list.
        summary.update(os.fsencode(relative) + b"\0" + os.fsencode(content) + b"\0")
    return summary.hexdigest()


def entries_below(folder: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    pending = [(folder, "")]
    while pending:
        path, inside = pending.pop()
        try:
            for name, kind in listing_of(path):
                entry, relative = f"{path}/{name}", inside + name
                if kind == FILE:
                    found.append((relative, known_content(entry) or content_of(entry)))
                elif kind == LINK:
                    found.append((relative, f"link {os.readlink(entry)}"))
                elif name != LEFT_OUT:
                    pending.append((entry, f"{relative}/"))
        except OSError as error:
            raise ContentLoadError(
                f"{error.filename or path} cannot be read: {error.strerror}. "
                "A skill runs only when all of it can be checked."
            ) from error
    return found


def listing_of(folder: str) -> Listing:
    """Names and kinds; read again only when the folder's own clock says that an entry came, went or was renamed."""
    key = key_of(os.stat(folder))
    known = _listings.get(folder)
    if known is not None and known[0] == key:
        return known[1]
    with os.scandir(folder) as entries:
        listing = tuple((entry.name, kind_of(entry)) for entry in entries)
    if time.time_ns() - key[-1] > SETTLED_NANOSECONDS:
        with _lock:
            if len(_listings) >= KEPT_LISTINGS:
                _listings.clear()
            _listings[folder] = (key, listing)
    return listing


def kind_of(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return LINK
    return FOLDER if entry.is_dir(follow_symlinks=False) else FILE


def known_content(path: str) -> str:
    """What was hashed before, if nothing about the file changed since; else empty."""
    known = _hashes.get(path)
    if known is None:
        return ""
    try:
        return known[1] if known[0] == key_of(os.lstat(path)) else ""
    except OSError:
        return ""


def key_of(status: os.stat_result) -> FileKey:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def content_of(path: str) -> str:
    """`sha256 ...` of a regular file; what is no regular file or unreadable is said to be so."""
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode):
            return "special"
        content = f"sha256 {file_hash(path)}"
    except PermissionError:
        # Nobody who runs as this user can read it either, so it cannot take part in a run.
        return "unreadable"
    except FileNotFoundError:
        return "vanished"
    if time.time_ns() - status.st_ctime_ns > SETTLED_NANOSECONDS:
        keep_hash(path, key_of(status), content)
    return content


def keep_hash(path: str, key: FileKey, content: str) -> None:
    with _lock:
        if len(_hashes) >= KEPT_HASHES:
            _hashes.clear()
        _hashes[path] = (key, content)


def file_hash(path: str) -> str:
    digest = sha256()
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb", buffering=0) as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


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
