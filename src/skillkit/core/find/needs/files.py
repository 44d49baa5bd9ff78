"""A skill's folder -> the files that tell its needs, each cut to a bound, and which of them names in its code mean."""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePath

from skillkit.core.find.needs.found import Facts
from skillkit.core.find.needs.manifests import is_manifest
from skillkit.core.find.needs.packages import is_standard
from skillkit.core.models.detect.languages import DATA_EXTENSIONS, language_of
from skillkit.core.paths import is_inside, is_sayable, real_path

__all__ = ["CodeFile", "OwnFiles", "SkillFiles", "code_at", "files_of"]

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
    if not (is_sayable(relative) and is_inside(real_path(os.path.join(root, relative)), real_path(root))):
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


SCRIPT_ENDINGS = (
    "",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".mts",
    ".cts",
    ".jsx",
    ".tsx",
    "/index.js",
    "/index.mjs",
    "/index.ts",
)
MODULE_PARTS = 6


class OwnFiles:
    """The code of one skill, by path, by file name and by the name under which Python imports it."""

    def __init__(self, files: SkillFiles) -> None:
        self._code = files.code
        self._folders = files.folders
        self._by_name: dict[str, list[str]] = {}
        self._modules: dict[str, list[str]] = {}
        for path in files.code:
            name = path.rpartition("/")[2]
            self._by_name.setdefault(name, []).append(path)
            if name.endswith(".py"):
                self._modules.setdefault(name[:-3], []).append(path)

    def script(self, named: str | PurePath) -> str | None:
        """By its path inside the skill, below scripts/, its file name or its stem, if that means one file."""
        written = posixpath.normpath(named.as_posix() if isinstance(named, PurePath) else str(named))
        for path in (written, f"scripts/{written}"):
            if path in self._code:
                return path
        fitting = self._by_name.get(written) or [path for path in self._code if PurePath(path).stem == written]
        return fitting[0] if len(fitting) == 1 else None

    def used_by(self, path: str, facts: Facts) -> Iterator[str]:
        """The files that one file imports, sources or starts."""
        for module in facts.imports:
            yield from self._module(path, module)
        for name in facts.uses:
            if name.startswith(("./", "../")):
                yield from self._beside(path, name)
            elif name.startswith("."):
                yield from self._relative_module(path, name)
            else:
                yield from self._named(path, name)

    def is_foreign(self, path: str, module: str) -> bool:
        """Whether neither Python nor the skill has the module."""
        top = module.partition(".")[0]
        return not is_standard(module) and top not in self._folders and not any(self._module(path, module))

    def _module(self, path: str, module: str) -> Iterator[str]:
        """Beside the file, from the skill's folder, or wherever the skill has one of that name: paths are changed."""
        folder = posixpath.dirname(path)
        parts = module.split(".")[:MODULE_PARTS]
        is_found = False
        for base in dict.fromkeys((folder, "", "scripts")):
            for each in self._in_package(base, parts):
                is_found = True
                yield each
        if not is_found and not is_standard(module):
            yield from self._modules.get(parts[0], ())[:1]
            if len(parts) > 1 and parts[0] in self._folders:
                yield from (each for part in parts[1:] for each in self._modules.get(part, ())[:1])

    def _in_package(self, base: str, parts: list[str]) -> Iterator[str]:
        for length in range(1, len(parts) + 1):
            place = posixpath.join(base, *parts[:length])
            for path in (f"{place}.py", f"{place}/__init__.py"):
                if path in self._code:
                    yield path

    def _relative_module(self, path: str, name: str) -> Iterator[str]:
        module = name.lstrip(".")
        folder = posixpath.dirname(path)
        for _ in range(min(len(name) - len(module) - 1, MODULE_PARTS)):
            folder = posixpath.dirname(folder)
        yield from self._in_package(folder, module.split(".")[:MODULE_PARTS])

    def _beside(self, path: str, name: str) -> Iterator[str]:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        bare = place.removesuffix(".js")
        candidates = (f"{each}{ending}" for each in dict.fromkeys((place, bare)) for ending in SCRIPT_ENDINGS)
        yield from [found for found in candidates if found in self._code][:1]

    def _named(self, path: str, name: str) -> Iterator[str]:
        """One file of that name, the one beside it first; where several are meant, all might be."""
        fitting = [each for each in self._by_name.get(name, ()) if each != path]
        beside = posixpath.join(posixpath.dirname(path), name)
        yield from [beside] if beside in fitting else fitting
