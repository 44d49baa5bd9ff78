"""Skill folder -> its scripts in the order of their paths: what language each is written in, what it says of itself."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from skillkit.core.exceptions import ContentLoadError
from skillkit.core.models.detect.commanded import commanded_paths
from skillkit.core.models.detect.descriptions import description_of
from skillkit.core.models.detect.languages import (
    DATA_EXTENSIONS,
    INTERPRETER_MAP,
    LANGUAGE_INTERPRETERS,
    language_of,
)
from skillkit.core.values.skills import ScriptMetadata

__all__ = ["INTERPRETER_MAP", "LANGUAGE_INTERPRETERS", "SHORTAGES", "ScriptDetector", "language_at"]

_HEAD_BYTES = 8192
_SHEBANG_LIMIT = 256  # characters; Linux reads no more
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_LEFT_OUT_FILES = frozenset(("__init__.py", "conftest.py"))
_LEFT_OUT_FOLDERS = frozenset(("node_modules", "__pycache__", "venv"))
_DECLARATIONS = (".d.ts", ".d.mts", ".d.cts")

# A file may become a pipe or a link between listing and opening: neither may block or lead away.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)

SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What passes; a list without what could not be read meanwhile would stay."""

# Junctions do not call themselves links.
_ANY_FOLDER_MAY_BE_A_LINK = os.name == "nt"


class ScriptDetector:
    """Finds scripts in `scripts/`, at most `max_depth` folders below it, beside `SKILL.md`, and where that says so."""

    __slots__ = ("max_depth",)

    def __init__(self, max_depth: int = 5) -> None:
        if max_depth < 0:
            raise ValueError(f"max_depth counts folders below scripts/ and cannot be negative: {max_depth}.")
        self.max_depth = max_depth

    def detect_scripts(self, base_dir: Path, instructions: Callable[[], str] | None = None) -> list[ScriptMetadata]:
        """Never raises for what is on disk: what cannot be listed or read is left out.

        In other folders of a skill, the files that its instructions write as a command are scripts too. While
        descriptors or memory are short, nobody can tell what there is: ContentLoadError.
        """
        try:
            root = os.path.realpath(base_dir)
        except (OSError, RecursionError, ValueError):
            return []
        walk = _Walk(root, self.max_depth)
        walk.gather()
        if instructions is not None:
            walk.gather_named(commanded_paths(instructions()))
        scripts = [_script_at(relative, walk.files[relative]) for relative in sorted(walk.files)]
        return [script for script in scripts if script is not None]


def _script_at(relative: str, place: str) -> ScriptMetadata | None:
    if not _is_candidate(relative):
        return None
    head = _head_of(place)
    language = language_of(_suffix_of(relative), _shebang_of(head))
    path = Path(relative)
    return ScriptMetadata(path.stem, path, language, description_of(head, language)) if language else None


def language_at(path: Path) -> str | None:
    """The language of one file as it is now; `None` when it is not a script or cannot be read."""
    name = path.name
    if not os.path.isfile(path) or not _is_candidate(name):
        return None
    return language_of(
        _suffix_of(name), _shebang_of(_head_of(os.path.realpath(path) if os.path.islink(path) else str(path)))
    )


@dataclass(slots=True)
class _Walk:
    """One pass over a skill: `files` gathers the path inside the skill and the path to open."""

    root: str
    max_depth: int
    files: dict[str, str] = field(default_factory=dict)
    _entered: set[str] = field(default_factory=set)
    _folders: list[tuple[str, str, int]] = field(default_factory=list)
    _linked_folders: list[tuple[str, str, int]] = field(default_factory=list)

    def gather(self) -> None:
        """A folder reached by its own path and by links is listed once, by its own path."""
        self._entered.add(self.root)
        for entry in _entries(self.root):
            self._note(entry, entry.name, 0 if entry.name == "scripts" else None)
        while self._folders or self._linked_folders:
            if not self._folders:
                self._linked_folders.sort(reverse=True)
                self._folders.append(self._linked_folders.pop())
            relative, path, depth = self._folders.pop()
            if path not in self._entered:
                self._entered.add(path)
                self._list_folder(relative, path, depth)

    def gather_named(self, paths: Iterable[str]) -> None:
        """Those of `paths` that are files of this skill, and of no other skill below it."""
        for relative in paths:
            path = f"{self.root}/{relative}"
            if relative in self.files or not os.path.isfile(path):
                continue
            real = self._inside(path)
            if real is not None and not self._is_foreign(os.path.dirname(real)):
                self.files[relative] = real

    def _is_foreign(self, folder: str) -> bool:
        while folder != self.root:
            if any(_marks_foreign_folder(entry.name) for entry in _entries(folder)):
                return True
            folder = os.path.dirname(folder)
        return False

    def _list_folder(self, relative: str, path: str, depth: int) -> None:
        entries = _entries(path)
        if depth and any(_marks_foreign_folder(entry.name) for entry in entries):
            return
        inner_depth = depth + 1 if depth < self.max_depth else None
        for entry in entries:
            self._note(entry, f"{relative}/{entry.name}", inner_depth)

    def _note(self, entry: os.DirEntry[str], relative: str, depth: int | None) -> None:
        """Without a depth only files count."""
        kind = _kind_of(entry)
        if kind == "file":
            self.files[relative] = entry.path
        elif kind == "link":
            self._note_link(entry, relative, depth)
        elif kind == "folder" and depth is not None and _is_folder_of_interest(entry.name):
            self._folders.append((relative, entry.path, depth))

    def _note_link(self, entry: os.DirEntry[str], relative: str, depth: int | None) -> None:
        try:
            # The system gives up on a chain of links long before Python does, and says so.
            mode = os.stat(entry.path).st_mode
        except OSError:
            return
        real = self._inside(entry.path)
        if real is None or not _is_folder_of_interest(entry.name):
            return
        if stat.S_ISREG(mode):
            self.files[relative] = real
        elif stat.S_ISDIR(mode) and depth is not None and _is_folder_of_interest(os.path.basename(real)):
            self._linked_folders.append((relative, real, depth))

    def _inside(self, path: str) -> str | None:
        """Where the path really leads, or `None` when that is outside or in a folder that is left out."""
        real = os.path.realpath(path)
        prefix = self.root.rstrip(os.sep) + os.sep
        if not real.startswith(prefix):
            return None
        folders = os.path.dirname(real[len(prefix) :]).split(os.sep)
        return real if all(map(_is_folder_of_interest, folders)) else None


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            return list(listing)
    except (OSError, ValueError) as error:
        _require_no_shortage(error, folder)
        return []


def _require_no_shortage(error: Exception, path: str) -> None:
    if getattr(error, "errno", None) in SHORTAGES:
        raise ContentLoadError(f"{path} cannot be read now: {error}. Close files or wait, then try again.") from error


def _kind_of(entry: os.DirEntry[str]) -> str:
    """`file`, `folder` or `link`; empty for pipes, sockets, devices and what the system will not tell."""
    try:
        if entry.is_file(follow_symlinks=False):
            return "file"
        if entry.is_symlink() or (_ANY_FOLDER_MAY_BE_A_LINK and entry.is_dir()):
            return "link"
        return "folder" if entry.is_dir(follow_symlinks=False) else ""
    except OSError:
        return ""


def _is_folder_of_interest(name: str) -> bool:
    return not name.startswith(".") and name not in _LEFT_OUT_FOLDERS


def _marks_foreign_folder(name: str) -> bool:
    """Another skill or a virtual environment: its files are not scripts of this skill."""
    return name == "pyvenv.cfg" or name.lower() == "skill.md"


def _is_candidate(relative: str) -> bool:
    """Whether the name alone leaves open that the file is a script."""
    name = relative.rpartition("/")[2]
    return not (
        name.startswith(".")
        or name in _LEFT_OUT_FILES
        or _suffix_of(relative) in DATA_EXTENSIONS
        or name.lower().endswith(_DECLARATIONS)
    )


def _suffix_of(relative: str) -> str:
    _, dot, extension = relative.rpartition("/")[2].rpartition(".")
    return dot + extension.lower() if dot else ""


def _shebang_of(head: str) -> str:
    return head[:_SHEBANG_LIMIT].partition("\n")[0] if head.startswith("#!") else ""


def _head_of(path: str) -> str:
    """Empty when the file is binary or cannot be read."""
    try:
        descriptor = os.open(path, _OPEN_FLAGS)
        try:
            head = os.read(descriptor, _HEAD_BYTES)
        finally:
            os.close(descriptor)
    except OSError as error:
        _require_no_shortage(error, path)
        return ""
    if b"\0" in head:
        return ""
    return head.removeprefix(_BYTE_ORDER_MARK).decode("utf-8", "replace")
