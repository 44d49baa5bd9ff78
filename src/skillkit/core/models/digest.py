"""A skill's folder -> its manifest: every file and link with what it holds, and one digest of that list.

Theory of operation. A person approves content, so everything that can take part in a run enters the digest: files by
the SHA-256 of their bytes, links by their text, folders only through what they hold. `.git` is left out: it changes
all the time and nothing in it is run; so is `SKILL.sig` at the top, which signs the digest. The digest must be right at
each run, and to read everything each time would cost more than the run itself. So there are three looks, from cheap to
thorough:

1. By key: device, inode, size, and the times of change of every path that was looked at (`_readings`, for the whole
   folder). A folder's own key tells that nothing came or went, so an unchanged skill is a handful of `lstat` calls.
2. By file: where some key differs, the folder is listed again, and only files whose key is new are read (`_hashes`).
   The key is taken before the first byte is read, and compared with that of the file that was really opened.
3. By content: `by_content` reads every byte. A file that a program has mapped into its memory can change without a
   sign in its key; who runs a folder in place, and not a copy, asks for this.

A key is believed only when it had settled: a file changed twice within one tick of its clock looks unchanged. What
cannot be told by a key (unreadable, special, vanished, exchanged meanwhile) is looked at anew each time.

A skill may have `SKILL_ENTRIES` files, links and folders, `SKILL_DEPTH` folders inside each other and `SKILL_BYTES`
in its files, holes counted; `.git` does not count. More is an error that names the limit: hashing and copying come
before any question, so nobody could say no to what would fill a disk.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from skillkit.core.exceptions import ContentLoadError, SizeLimitExceededError
from skillkit.core.paths import SETTLED_NANOSECONDS
from skillkit.core.values.runs import Manifest

__all__ = [
    "LEFT_OUT",
    "SETTLED_NANOSECONDS",
    "SIGNATURE_FILE",
    "SKILL_BYTES",
    "SKILL_DEPTH",
    "SKILL_ENTRIES",
    "content_of",
    "file_hash",
    "forget",
    "manifest_from",
    "manifest_of",
]

SKILL_ENTRIES = 100_000
SKILL_DEPTH = 100
SKILL_BYTES = 1_000_000_000
LEFT_OUT = ".git"
SIGNATURE_FILE = "SKILL.sig"
"""At the top of a skill it is no part of it, and not there when a script runs."""
CHUNK_BYTES = 1 << 20
OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
KEPT_HASHES = 50_000
KEPT_PATHS = 100_000  # of all readings together: about 65 MB

FileKey = tuple[int, int, int, int, int]
Entries = tuple[tuple[str, str], ...]
key_of: Callable[[os.stat_result], FileKey] = attrgetter("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")


class _Reading(NamedTuple):
    """A folder as it was read: what it holds, and the keys by which every part of it is known to be the same."""

    paths: tuple[str, ...]
    keys: tuple[FileKey, ...]
    manifest: Manifest


_hashes: dict[str, tuple[FileKey, str]] = {}
_readings: dict[str, _Reading] = {}


def manifest_of(base_directory: Path | str, *, by_content: bool = False) -> Manifest:
    """Every file, link and folder is looked at each time; read again only when one of them is not as it was.

    `by_content` reads all of it, whatever the keys say.
    """
    folder = os.fspath(base_directory)
    known = _readings.get(folder)
    if known is not None and _is_as_it_was(known) and not (by_content and _has_other_bytes(folder, known)):
        return known.manifest
    if by_content:
        _readings.pop(folder, None)
    began = time.time_ns()
    seen: dict[str, FileKey | None] = {}
    entries = tuple(sorted(_entries_below(folder, seen, again=by_content)))
    manifest = Manifest(_digest_of(entries), entries)
    _keep_reading(folder, seen, manifest, began)
    return manifest


def manifest_from(contents: Mapping[str, bytes], links: Mapping[str, str]) -> Manifest:
    """Of a skill that is not written yet: what `manifest_of` will give for a folder with these files and links."""
    entries = [(path, f"sha256 {sha256(content).hexdigest()}") for path, content in contents.items()]
    entries += [(path, f"link {target}") for path, target in links.items()]
    ordered = tuple(sorted(entry for entry in entries if entry[0] != SIGNATURE_FILE))
    return Manifest(_digest_of(ordered), ordered)


def forget(folder: Path | str) -> None:
    """What was read of a folder, and of each file in it."""
    text = os.fspath(folder)
    _readings.pop(text, None)
    for path in [path for path in tuple(_hashes) if path.startswith(f"{text}/")]:
        _hashes.pop(path, None)


def _is_as_it_was(known: _Reading) -> bool:
    try:
        return tuple(map(key_of, map(os.lstat, known.paths))) == known.keys
    except OSError:
        return False


def _has_other_bytes(folder: str, known: _Reading) -> bool:
    """Reads every file: quicker than to list the folder as well, which its keys answer for."""
    try:
        return any(
            file_hash(f"{folder}/{relative}")[1] != content.removeprefix("sha256 ")
            for relative, content in known.manifest.entries
            if content.startswith("sha256 ")
        )
    except OSError:
        return True


def _keep_reading(folder: str, seen: Mapping[str, FileKey | None], manifest: Manifest, began: int) -> None:
    """Only where all of it can be told by its keys, and had settled before it was read."""
    keys = tuple(key for key in seen.values() if key is not None)
    if len(keys) == len(seen) and _is_settled(max(key[-1] for key in keys), began):
        # No lock: a fork would copy it as it is, and a few too many do no harm.
        if sum(len(each.paths) for each in tuple(_readings.values())) + len(keys) > KEPT_PATHS:
            _readings.clear()
        _readings[folder] = _Reading(tuple(seen), keys, manifest)


def _is_settled(changed: int, began: int) -> bool:
    """By the time at which reading began: what takes long to read may be changed meanwhile."""
    return began - changed > SETTLED_NANOSECONDS


def _digest_of(entries: Entries) -> str:
    summary = sha256()
    for relative, content in entries:
        # Neither a name nor a link's text can hold a NUL, so no two skills give the same list.
        summary.update(os.fsencode(relative) + b"\0" + os.fsencode(content) + b"\0")
    return summary.hexdigest()


def _entries_below(folder: str, seen: dict[str, FileKey | None], *, again: bool = False) -> Iterator[tuple[str, str]]:
    """Each file and link with its content; `seen` gets a key for all that was looked at, taken before reading."""
    pending = [(folder, "")]
    left = _Left(folder)
    while pending:
        path, inside = pending.pop()
        left.require_depth(inside)
        try:
            seen[f"{path}/"] = key_of(os.stat(path))
            with os.scandir(path) as listing:
                for entry in listing:
                    left.take_entry()
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name != LEFT_OUT:
                            pending.append((entry.path, f"{inside}{entry.name}/"))
                    elif not inside and entry.name == SIGNATURE_FILE:
                        continue
                    elif entry.is_symlink():
                        seen[entry.path] = key_of(os.lstat(entry.path))
                        yield inside + entry.name, f"link {os.readlink(entry.path)}"
                    else:
                        seen[entry.path], content = _keyed_content(entry.path, left, again=again)
                        yield inside + entry.name, content
        except OSError as error:
            raise ContentLoadError(
                f"{error.filename or path} cannot be read: {error.strerror}. "
                "A skill runs only when all of it can be checked."
            ) from error


class _Left:
    """What a skill may still have while it is being read."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._entries = SKILL_ENTRIES
        self._bytes = SKILL_BYTES

    def take_entry(self) -> None:
        self._entries -= 1
        if self._entries < 0:
            raise self._exceeded("more than {:,} files, links and folders", SKILL_ENTRIES + 1, SKILL_ENTRIES)

    def take_bytes(self, size: int) -> None:
        self._bytes -= size
        if self._bytes < 0:
            raise self._exceeded("more than {:,} bytes in its files", SKILL_BYTES - self._bytes, SKILL_BYTES)

    def require_depth(self, inside: str) -> None:
        if (depth := inside.count("/")) > SKILL_DEPTH:
            raise self._exceeded("folders more than {:,} deep inside each other", depth, SKILL_DEPTH)

    def _exceeded(self, rule: str, size: int, limit: int) -> SizeLimitExceededError:
        return SizeLimitExceededError(
            f"{self._folder} has {rule.format(limit)}, which is too large for a skill. "
            "Move what its scripts do not need to another place.",
            size=size,
            limit=limit,
        )


def content_of(path: str, *, again: bool = False) -> str:
    """`sha256 ...` of a regular file; what is not a regular file or unreadable is said to be so.

    `again` reads it whatever is known of it.
    """
    return _keyed_content(path, again=again)[1]


def _keyed_content(path: str, left: _Left | None = None, *, again: bool = False) -> tuple[FileKey | None, str]:
    """Hashed again only when something about the file changed, or when asked to; no key where it could not be."""
    began = time.time_ns()
    try:
        status = os.lstat(path)
        if left is not None:
            left.take_bytes(status.st_size)
        key, known = key_of(status), None if again else _hashes.get(path)
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
    if _is_settled(status.st_ctime_ns, began):
        if len(_hashes) >= KEPT_HASHES:
            _hashes.clear()
        _hashes[path] = (key, content)
    return key, content


def file_hash(path: str) -> tuple[FileKey, str]:
    """Which file was opened, as it was before the first byte was read, and what was in it."""
    digest = sha256()
    descriptor = os.open(path, OPEN_FLAGS)
    try:
        key = key_of(os.fstat(descriptor))
        unread = key[2]
        # What it grows meanwhile changes its key, and is not read: it may never end.
        while unread > 0 and (chunk := os.read(descriptor, min(CHUNK_BYTES, unread))):
            unread -= len(chunk)
            digest.update(chunk)
    finally:
        os.close(descriptor)
    return key, digest.hexdigest()
