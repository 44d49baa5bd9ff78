"""A skill's copy -> one archive, the same for the same content, and back into a folder that is proven to be it."""

from __future__ import annotations

import io
import os
import secrets
import tarfile
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from skillkit.core.exceptions import ContentChangedError, ScriptRefusedError
from skillkit.core.models.digest import SIGNATURE_FILE, SKILL_BYTES, SKILL_DEPTH, SKILL_ENTRIES, forget, manifest_of
from skillkit.core.paths import require_own_folder
from skillkit.core.paths.files import Folder
from skillkit.core.paths.trees import remove_tree, size_of_tree
from skillkit.core.values.runs import Manifest

__all__ = ["PACKAGE_BYTES", "clear_drafts", "kept_in", "pack", "unpack"]

PACKAGE_BYTES = 100_000_000
LEVEL = 6
FILE_MODE, PROGRAM_MODE = 0o644, 0o755
DRAFT = ".new-"
KEPT_NAMES = 4
KEPT_BYTES = 20_000_000_000
"""Of one content, folders; and of all of them. Who orders chooses both, approved or not: the longest unused go."""
DRAFT_SECONDS = 3_600.0
"""Nobody unpacks for so long: what is older was left by a process that was killed."""


def pack(copy: Path, manifest: Manifest) -> bytes:
    """Of the entries of its manifest alone; ScriptRefusedError where that is more than a database should carry."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for relative, content in manifest.entries:
            entry = tarfile.TarInfo(relative)
            if content.startswith("link "):
                entry.type, entry.linkname = tarfile.SYMTYPE, content.removeprefix("link ")
                archive.addfile(entry)
                continue
            path = copy / relative
            with path.open("rb") as file:
                status = os.fstat(file.fileno())
                entry.size = status.st_size
                entry.mode = PROGRAM_MODE if status.st_mode & 0o111 else FILE_MODE
                archive.addfile(entry, file)
    packed = zlib.compress(stream.getvalue(), LEVEL)
    if len(packed) > PACKAGE_BYTES:
        reason = f"The skill takes {len(packed):,} bytes packed; {PACKAGE_BYTES:,} can be sent to a worker"
        raise ScriptRefusedError.because(reason, "Leave large files out of it; name a volume for data.")
    return packed


def unpack(packed: bytes, digest: str, name: str, folder: Path) -> Path:
    """The skill in a folder of this name below `folder`; there already or written now, and hashed in either case."""
    if name.startswith(DRAFT):
        raise ScriptRefusedError.because(f"No skill's folder is named {name!r} here", "Give it another name.")
    place = folder / digest / name
    if os.path.isdir(place):
        if manifest_of(place).digest == digest:
            os.utime(place.parent)
            return place
        remove_tree(place)  # nobody but us writes here: it was altered
        forget(place)
    for each in (folder, place.parent):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
        require_own_folder(each)
    new = place.parent / f"{DRAFT}{secrets.token_hex(8)}"
    new.mkdir(mode=0o700)
    try:
        _write(packed, new)
        if manifest_of(new).digest != digest:
            raise ContentChangedError.because("The skill's bytes are not what the order says", "Run it again.")
        with suppress(OSError):  # another process makes room too
            _make_room(folder, new)
        _put(new, place)
    finally:
        forget(new)
        if os.path.isdir(new):
            remove_tree(new)
    return place


def _make_room(folder: Path, new: Path) -> None:
    """For what was just unpacked; what goes is fetched again when it is ordered, and what runs has a copy."""
    for name in _oldest_first(kept_in(new.parent))[: -(KEPT_NAMES - 1)]:
        _drop(name)
    sizes = {each: size_of_tree(each).bytes for each in _oldest_first(folder.iterdir())}
    above = sum(sizes.values()) - KEPT_BYTES
    for each, size in sizes.items():
        if above > 0 and each != new.parent:
            for name in (*kept_in(each), each):
                _drop(name)
            above -= size


def kept_in(folder: Path) -> list[Path]:
    """All that is unpacked of one content, by whatever names; without what is being unpacked."""
    return sorted(each for each in folder.glob("*") if not each.name.startswith(DRAFT))


def _oldest_first(paths: Iterable[Path]) -> list[Path]:
    return sorted(paths, key=lambda path: path.lstat().st_mtime_ns)


def _drop(place: Path) -> None:
    remove_tree(place)
    forget(place)


def clear_drafts(folder: Path) -> None:
    """What killed processes left half unpacked below it."""
    for draft in folder.glob(f"*/{DRAFT}*"):
        with suppress(OSError):
            if time.time() - draft.lstat().st_mtime > DRAFT_SECONDS:
                remove_tree(draft)


def _put(new: Path, place: Path) -> None:
    """Another thread or process may have been first; then its folder is as good."""
    try:
        os.rename(new, place)
    except OSError:
        if not os.path.isdir(place):
            raise


def _write(packed: bytes, folder: Path) -> None:
    try:
        inflater = zlib.decompressobj()
        plain = inflater.decompress(packed, SKILL_BYTES + SKILL_ENTRIES * tarfile.BLOCKSIZE * 4)
        if inflater.unconsumed_tail or not inflater.eof:
            raise ScriptRefusedError.because("The skill's archive is too large, or not whole", "Send it again.")
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive, Folder.of(folder) as top:
            for count, entry in enumerate(archive):
                if count >= SKILL_ENTRIES:
                    raise ScriptRefusedError.because("The skill's archive has too many files", "Send a smaller skill.")
                _write_entry(archive, entry, top)
    except (tarfile.TarError, zlib.error, ValueError, OSError) as error:
        raise ScriptRefusedError.because(
            f"The skill's archive cannot be unpacked: {error}", "Send it again."
        ) from error


def _write_entry(archive: tarfile.TarFile, entry: tarfile.TarInfo, top: Folder) -> None:
    """By descriptor, through no link; only files and links, each once."""
    *folders, name = entry.name.split("/")
    if len(folders) >= SKILL_DEPTH or any(each in ("", ".", "..") for each in (*folders, name)):
        raise ScriptRefusedError.because(f"The skill's archive names {entry.name!r}", "Send it again.")
    if entry.name == SIGNATURE_FILE:
        return
    with top.below(folders, make=True) as into:
        if entry.issym():
            into.new_link(name, os.fsencode(entry.linkname))
            return
        content = archive.extractfile(entry) if entry.isreg() else None
        if content is None:
            raise ScriptRefusedError.because(f"{entry.name!r} in the skill's archive is no file", "Send it again.")
        into.write_new(name, content.read(), PROGRAM_MODE if entry.mode & 0o111 else FILE_MODE)
