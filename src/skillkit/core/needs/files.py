"""A skill's folder -> the files that tell its needs, each cut to a bound; links and other skills are left out."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field

from skillkit.core.models.detect.languages import DATA_EXTENSIONS, language_of
from skillkit.core.needs.manifests import is_manifest
from skillkit.core.paths import is_inside, real_path

__all__ = ["CodeFile", "SkillFiles", "code_at", "files_of"]

FILES = 200
FILE_BYTES = 128_000
ALL_BYTES = 1_000_000
ENTRIES = 5_000
DEPTH = 8
SHEBANG_CHARACTERS = 256
LEFT_OUT = frozenset("node_modules __pycache__ venv dist build site-packages tests test __tests__ fixtures".split())
LEFT_OUT_FILES = frozenset(("conftest.py", "setup.py"))
OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class CodeFile:
    """A file of code: its path inside the skill, its language, and its text as far as it was read."""

    path: str
    language: str
    text: str
    is_cut: bool = False


@dataclass(slots=True)
class SkillFiles:
    """What was read of one skill."""

    code: dict[str, CodeFile] = field(default_factory=dict)
    manifests: dict[str, str] = field(default_factory=dict)
    """Files that list packages, by path."""
    folders: set[str] = field(default_factory=set)
    """Names of folders with code in them: Python takes each for a package."""


def files_of(root: str) -> SkillFiles:
    """Never raises for what is on disk; in the order of paths, until enough was read."""
    files = SkillFiles()
    left = ALL_BYTES
    for relative in sorted(_paths(root), key=lambda path: (path.count("/"), path)):
        if left <= 0 or len(files.code) >= FILES:
            break
        text, size = _text_of(root, relative, left)
        left -= size
        if text and is_manifest(relative.rpartition("/")[2]):
            files.manifests[relative] = text
        elif file := _code_in(relative, text, size):
            files.code[relative] = file
            files.folders.update(relative.split("/")[:-1])
    return files


def code_at(root: str, relative: str) -> CodeFile | None:
    """One file that somebody names, wherever in the skill it lies; None for what is no code or lies elsewhere."""
    if not is_inside(real_path(os.path.join(root, relative)), real_path(root)):
        return None
    return _code_in(relative, *_text_of(root, relative, FILE_BYTES))


def _text_of(root: str, relative: str, left: int) -> tuple[str, int]:
    """The beginning of a file, and how much was read; no text for what is none."""
    content = _head_of(os.path.join(root, relative), min(left, FILE_BYTES) + 1)
    if b"\0" in content:
        return "", len(content)
    kept = content[:FILE_BYTES].removeprefix(b"\xef\xbb\xbf")
    return kept.decode("utf-8", "replace").replace("\r\n", "\n"), len(content)


def _code_in(relative: str, text: str, size: int) -> CodeFile | None:
    language = language_of(_suffix_of(relative), _shebang_of(text)) if text or not size else None
    return CodeFile(relative, language, text, is_cut=size > FILE_BYTES) if language else None


def _paths(root: str) -> list[str]:
    """Of regular files that may be code or list packages; other skills inside are not this one."""
    found: list[str] = []
    pending = [("", 0)]
    seen = 0
    while pending and seen < ENTRIES:
        folder, depth = pending.pop()
        entries = _entries(os.path.join(root, folder))
        seen += len(entries)
        if depth and any(entry.name.lower() in ("skill.md", "pyvenv.cfg") for entry in entries):
            continue
        for entry in entries[:ENTRIES]:
            relative = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name.startswith(".") or entry.name in LEFT_OUT:
                continue
            if entry.is_dir(follow_symlinks=False):
                pending += [(relative, depth + 1)] if depth < DEPTH else []
            elif entry.is_file(follow_symlinks=False) and _may_tell(entry.name):
                found.append(relative)
    return found


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            return sorted(listing, key=lambda entry: entry.name)
    except (OSError, ValueError):
        return []


def _may_tell(name: str) -> bool:
    if is_manifest(name):
        return True
    suffix = _suffix_of(name)
    is_code = language_of(suffix, "") is not None and not name.endswith((".d.ts", ".d.mts", ".min.js"))
    return (is_code or not suffix) and suffix not in DATA_EXTENSIONS and name not in LEFT_OUT_FILES


def _head_of(path: str, limit: int) -> bytes:
    try:
        descriptor = os.open(path, OPEN_FLAGS)
    except (OSError, ValueError):
        return b""
    try:
        return os.read(descriptor, limit) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _suffix_of(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _shebang_of(text: str) -> str:
    return text[:SHEBANG_CHARACTERS].partition("\n")[0] if text.startswith("#!") else ""
